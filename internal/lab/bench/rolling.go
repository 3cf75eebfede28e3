package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/class"
	"rankcache/controller"
	"rankcache/internal/cli"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/servers"
	"rankcache/rooms"
	"rankcache/wire"
)

// rollingBench is one run of rankcache-lab bench rolling.
type rollingBench struct {
	days, members, rate int
	window              time.Duration
	progress            io.Writer
	redis               *redis.Client
	health              string        // the controller's
	running             class.Board   // whose page is read
	next                class.Board   // the rolling board that is primed
	ended               []class.Board // whose sums it is given
}

// rollingReport is the stable JSON of bench rolling.
type rollingReport struct {
	Days         int     `json:"days"`
	Members      int     `json:"members"`
	Rate         int     `json:"prime_rate"`
	PrimeSeconds float64 `json:"prime_s"`              // from the controller's start
	PrimeRedis   float64 `json:"prime_redis_s"`        // CPU, the page reads beside it taken off
	LongestStall float64 `json:"longest_stall_ms"`     // the longest command of Redis while it is primed
	UnionStall   float64 `json:"zunionstore_stall_ms"` // of the days that are primed, in one command
	PageP99      float64 `json:"page_p99_ms"`          // of a page of Redis while it is primed
	PageP99Bare  float64 `json:"page_p99_without_ms"`  // before and after
	PageMax      float64 `json:"page_max_ms"`          // while it is primed
	UnionPageMax float64 `json:"zunionstore_page_max_ms"`
	HeapMiB      float64 `json:"controller_heap_mib"` // the most that was seen
}

const (
	rollingClasses = `classes:
- {name: day, board: "day:{period}", period: day, tz: %s, ops: [incr], keep: 2400h}
- {name: days, board: "days:{period}", keep: 2400h, rolling: {of: day, last: %d}}
`
	// rollingEvery is the time between two reads of a page.
	rollingEvery = 2 * time.Millisecond
	// slowCommand is from when Redis notes a command, in microseconds.
	slowCommand = 500
)

func newBenchRollingCommand() *cobra.Command {
	b := &rollingBench{}
	cmd := &cobra.Command{
		Use:   "rolling",
		Short: "Measure what priming a rolling board costs, and ZUNIONSTORE beside it",
		Long: `Make the boards of ended days in Redis, all with the same members, and have a writer and a
controller prime the next board of a class that sums them up, while the page of another
board is read 500 times a second; then add up the same days with ZUNIONSTORE. Stalls are
the longest command that Redis itself notes; a read counts from when it was due. Needs a
redis-server in PATH; the broker is kfake. All have the same cores.`,
		Example: "  rankcache-lab bench rolling -o json\n  rankcache-lab bench rolling --members 20000",
		Args:    cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.IntVar(&b.days, "days", 7, "ended days whose sums are primed, 1 to 60")
	flags.IntVar(&b.members, "members", 210_000, "members of each day's board")
	flags.IntVar(&b.rate, "prime-rate", controller.DefaultPrimeRate, "primes a second")
	flags.DurationVar(&b.window, "window", 20*time.Second, "how long pages are read before and after")
	output := cli.OutputFlag(flags, "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b.progress = cmd.ErrOrStderr()
		report, err := b.run(cmd.Context())
		if err != nil {
			return err
		}
		return cli.PrintAs(cmd.OutOrStdout(), *output, report, report.print)
	}
	return cmd
}

func (b *rollingBench) run(ctx context.Context) (*rollingReport, error) {
	if b.days < 1 || b.days > 60 || b.members < 1 || b.rate < 1 || b.window <= 0 {
		return nil, cli.Usagef("want --days of 1 to 60, --members and --prime-rate of 1 or more, and a positive --window")
	}
	server, err := servers.StartRedis(ctx, servers.RedisOptions{Args: []string{"--slowlog-log-slower-than", strconv.Itoa(slowCommand), "--slowlog-max-len", "100000"}})
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	defer server.Close()
	b.redis = redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, ReadTimeout: time.Minute})
	defer b.redis.Close()
	kafka, _, stopKafka, err := startBroker(ctx)
	if err != nil {
		return nil, err
	}
	defer stopKafka()
	dir, err := os.MkdirTemp("", "rankcache-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := b.fill(ctx, filepath.Join(dir, "rooms.yaml")); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	common := []string{"--redis", "redis://" + server.Addr(), "--kafka", kafka, "--rooms", filepath.Join(dir, "rooms.yaml"), "--log-level", "warn"}
	if _, _, err := startRankcache(ctx, append([]string{"write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--command-partitions", "1"}, common...)...); err != nil {
		return nil, err
	}
	if b.health, err = servers.FreeAddr(); err != nil {
		return nil, err
	}
	return b.measure(ctx, func() error {
		_, _, err := startRankcache(ctx, append([]string{"controller", "--health", b.health, "--prime-rate", strconv.Itoa(b.rate)}, common...)...)
		return err
	})
}

// startRankcache runs this program again as the deployed one, until ctx is done, and returns its process id and what is closed when it has ended.
func startRankcache(ctx context.Context, args ...string) (pid int, ended <-chan struct{}, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"bench", "rankcache"}, args...)...)
	cmd.Stderr = os.Stderr // written by another goroutine than the progress
	if err := cmd.Start(); err != nil {
		return 0, nil, fmt.Errorf("start rankcache %s: %w", args[0], err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed at the end
		close(done)
	}()
	return cmd.Process.Pid, done, nil
}

// fill writes the rooms file, the running rolling board, and those of the ended days.
func (b *rollingBench) fill(ctx context.Context, file string) error {
	now, err := b.redis.Time(ctx).Result()
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, rollingClasses, noon(now), b.days+2)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	classes, err := rooms.Parse(text)
	if err != nil {
		return err
	}
	day, days := classes.Class("day"), classes.Class("days")
	running, errRunning := days.At(nil, now)
	next, errNext := running.Next()
	if err := errors.Join(errRunning, errNext); err != nil {
		return err
	}
	b.running, b.next = running, next
	sources, err := days.Sources(next.Period)
	if err != nil {
		return err
	}
	names := wire.DefaultNames()
	for i, p := range sources {
		ended, err := day.In(nil, p)
		if err != nil {
			return err
		}
		b.ended = append(b.ended, ended)
		if err := b.fillBoard(ctx, ended, i+1, b.members, func(m *wire.Meta) { m.Life = wire.LifeClosed }); err != nil {
			return err
		}
		fmt.Fprintf(b.progress, "day %d of %d\n", i+1, len(sources))
	}
	return errors.Join(b.fillBoard(ctx, running, 1, 1000, func(m *wire.Meta) { m.Primed = true }), // its priming is another one's
		b.redis.ZAdd(ctx, names.Ends, redis.Z{Score: float64(running.Period.End.UnixMilli()), Member: string(running.ID)}).Err())
}

// noon returns a time zone in which it is about noon, so that no day's turn is measured.
func noon(now time.Time) string { return fmt.Sprintf("Etc/GMT%+d", now.UTC().Hour()-12) } // its signs are reversed

// fillBoard makes a board in Redis, and changes its meta.
func (b *rollingBench) fillBoard(ctx context.Context, board class.Board, score, members int, change func(*wire.Meta)) error {
	scores := make(map[string]float64, members)
	for i := range members {
		scores[benchMember(i)] = float64(score * (i + 1))
	}
	names := wire.DefaultNames()
	if err := fill.NewBoardOf(board.ID, scores, uint64(members)).Redis(ctx, b.redis, names, 0); err != nil {
		return err
	}
	meta, err := b.meta(ctx, board.ID)
	if err != nil {
		return err
	}
	change(&meta)
	return b.redis.Set(ctx, names.MetaKey(board.ID), wire.AppendMeta(nil, &meta), 0).Err()
}

func (b *rollingBench) meta(ctx context.Context, id rankcache.BoardID) (wire.Meta, error) {
	value, err := b.redis.Get(ctx, wire.DefaultNames().MetaKey(id)).Result()
	if err != nil {
		return wire.Meta{}, err
	}
	return wire.ParseMeta(value)
}

// measure reads pages all the time: alone, while the board is primed, alone, and while ZUNIONSTORE adds up the days.
func (b *rollingBench) measure(ctx context.Context, start func() error) (*rollingReport, error) {
	r := &rollingReport{Days: b.days, Members: b.members, Rate: b.rate}
	wait := func(ctx context.Context) error { return sleep(ctx, b.window) }
	before, err := b.reading(ctx, wait)
	if err != nil {
		return nil, err
	}
	priming, err := b.reading(ctx, func(ctx context.Context) error { return errors.Join(start(), b.awaitPrimed(ctx, r)) })
	if err != nil {
		return nil, err
	}
	after, err := b.reading(ctx, wait)
	if err != nil {
		return nil, err
	}
	union, err := b.reading(ctx, b.union)
	if err != nil {
		return nil, err
	}
	alone := (before.cpu + after.cpu) / (before.took + after.took).Seconds()
	r.PrimeSeconds = priming.took.Seconds()
	r.PrimeRedis = priming.cpu - alone*priming.took.Seconds()
	r.LongestStall, r.UnionStall = priming.stall, union.stall
	r.PageP99, r.PageMax, r.UnionPageMax = priming.page(0.99), priming.page(1), union.page(1)
	bare := &rollingWindow{pages: slices.Sorted(slices.Values(slices.Concat(before.pages, after.pages)))}
	r.PageP99Bare = bare.page(0.99)
	return r, nil
}

// rollingWindow is what was measured in one stretch of time.
type rollingWindow struct {
	took  time.Duration
	cpu   float64 // of Redis, in seconds
	stall float64 // the longest command of Redis, in milliseconds; 0: none was as long as it notes
	pages []time.Duration
}

// page returns a quantile of the pages' times, in milliseconds.
func (w *rollingWindow) page(quantile float64) float64 {
	n := int(quantile * float64(len(w.pages)-1))
	return float64(w.pages[n].Microseconds()) / 1000
}

// reading reads a page at a steady rate while something is done.
func (b *rollingBench) reading(ctx context.Context, do func(context.Context) error) (*rollingWindow, error) {
	if err := b.redis.SlowLogReset(ctx).Err(); err != nil {
		return nil, err
	}
	cpu, err := b.cpu(ctx)
	if err != nil {
		return nil, err
	}
	w, begun, done := &rollingWindow{}, time.Now(), make(chan error, 1)
	go func() { done <- do(ctx) }()
	for due := begun; ; due = due.Add(rollingEvery) {
		time.Sleep(time.Until(due))
		if err := b.redis.ZRevRangeWithScores(ctx, string(b.running.ID), 0, 49).Err(); err != nil {
			return nil, err
		}
		w.pages = append(w.pages, time.Since(due))
		select {
		case err := <-done:
			w.took = time.Since(begun)
			slices.Sort(w.pages)
			return w, errors.Join(err, b.redisTold(ctx, w, cpu))
		default:
		}
	}
}

// redisTold adds what Redis tells of itself.
func (b *rollingBench) redisTold(ctx context.Context, w *rollingWindow, before float64) error {
	after, err := b.cpu(ctx)
	if err != nil {
		return err
	}
	w.cpu = after - before
	slow, err := b.redis.SlowLogGet(ctx, -1).Result()
	for _, s := range slow {
		w.stall = max(w.stall, float64(s.Duration.Microseconds())/1000)
	}
	return err
}

func (b *rollingBench) cpu(ctx context.Context) (float64, error) {
	u, err := (&writeBench{redis: b.redis}).usage(ctx)
	return u.redis, err
}

// awaitPrimed returns when the board has all primes, and looks at the controller's heap until then.
func (b *rollingBench) awaitPrimed(ctx context.Context, r *rollingReport) error {
	for {
		heap, err := metricOf(ctx, b.health, "go_memstats_heap_alloc_bytes")
		if err == nil {
			r.HeapMiB = max(r.HeapMiB, heap/(1<<20))
		}
		m, err := b.meta(ctx, b.next.ID)
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if m.Primed {
			return b.check(ctx, &m)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// check compares the board with what it should be.
func (b *rollingBench) check(ctx context.Context, m *wire.Meta) error {
	first, last := benchMember(0), benchMember(b.members-1)
	scores, err := b.redis.ZMScore(ctx, string(b.next.ID), first, last).Result()
	if err != nil {
		return err
	}
	sum := float64(b.days * (b.days + 1) / 2)
	if m.Members != uint64(b.members) || scores[0] != sum || scores[1] != sum*float64(b.members) {
		return fmt.Errorf("the board has %d members, the first and last with %v: want %d, %v", m.Members, scores, b.members, []float64{sum, sum * float64(b.members)})
	}
	return nil
}

// metricOf returns the value of one series, named with its labels, of the process with a health port.
func metricOf(ctx context.Context, health, series string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("no %s among the metrics", series)
}

// union adds up the days in one command.
func (b *rollingBench) union(ctx context.Context) error {
	store := &redis.ZStore{}
	for _, ended := range b.ended {
		store.Keys = append(store.Keys, string(ended.ID))
	}
	return b.redis.ZUnionStore(ctx, "union", store).Err()
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (r *rollingReport) print(to io.Writer) error {
	_, err := fmt.Fprintf(to, "%d days of %d members, %d primes/s\nprimed in %.0f s, of which Redis worked %.2f s; longest command %.2f ms, ZUNIONSTORE %.0f ms\npage p99 %.2f ms, without %.2f ms; the slowest %.1f ms, beside ZUNIONSTORE %.0f ms\ncontroller's heap %.0f MiB at most\n",
		r.Days, r.Members, r.Rate, r.PrimeSeconds, r.PrimeRedis, r.LongestStall, r.UnionStall, r.PageP99, r.PageP99Bare, r.PageMax, r.UnionPageMax, r.HeapMiB)
	return err
}
