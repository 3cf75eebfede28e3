package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
	"rankcache/internal/lab/servers"
)

// tailBench is one run of rankcache-lab bench tail.
type tailBench struct {
	openBench
	updates, profiles, connections, rounds int
	procs                                  []int
	pages                                  float64 // a second; 0 until it is chosen
	health                                 string  // the sidecar's port

	rivals *benchServers
	report tailReport
}

// tailRow is the stable JSON of one window: latencies of a server's pages while the sidecar applies updates and opens
// the large board, from when each was due.
type tailRow struct {
	Procs      int     `json:"gomaxprocs"` // of the sidecar
	Server     string  `json:"server"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	P999       float64 `json:"p999_ms"`
	Max        float64 `json:"max_ms"`
	Pages      int     `json:"pages"`
	Unanswered int     `json:"unanswered"`
	Updates    float64 `json:"updates_per_s"`  // sent to Kafka meanwhile
	Visible    float64 `json:"visible_p99_ms"` // at most: from their commands to their publication, by the sidecar's histogram
	Open       float64 `json:"open_s"`         // of the large board
	Busy       float64 `json:"sidecar_busy"`   // cores
}

// tailReport is the stable JSON of bench tail.
type tailReport struct {
	Kafka   string    `json:"kafka"`
	Cores   string    `json:"cores"`
	Pages   float64   `json:"pages_per_s"` // wanted, of every server
	Missing []string  `json:"missing,omitempty"`
	Rows    []tailRow `json:"rows"`
}

const (
	tailTick   = 10 * time.Millisecond // the updates of so long are sent together
	tailClosed = 2 * time.Second       // as many pages as are answered, to know the half
	tailPage   = "/top?limit=50&profiles=1"
)

func newBenchTailCommand() *cobra.Command {
	b := &tailBench{}
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Measure the slowest pages of a busy sidecar beside a fixed body and nginx",
		Long: `Start a sidecar with many super-hot boards that change at a steady rate and profiles in its memory, and
read pages with profiles, of all boards in turn, at half of the rate that it can answer. In each window a large board opens. Windows of the
sidecar, of a fixed body and of nginx take turns: of all three at the same rate, on the core that the sidecar works on meanwhile, so that all have
the same noise. First with GOMAXPROCS=1 of the sidecar, then with 2. Updates go to Redis and Kafka, as a writer would send them. Needs
Linux, and redis-server and h2load in PATH; without nginx its rows are left out.`,
		Example: "  rankcache-lab bench tail\n  rankcache-lab bench tail --window 20s --members 1 --profiles 0 --updates 0 --procs 2 -o json\n  rankcache-lab bench tail --boards 20 --updates 10000 --profiles 0 --procs 2",
	}
	flags := cmd.Flags()
	flags.StringVar(&b.kafka, "kafka", "", "`brokers` to use instead of an own one; topics are made there and stay")
	flags.IntVar(&b.boards, "boards", 50, "boards that change and are read")
	flags.IntVar(&b.small, "board-members", 57_000, "members of each")
	flags.IntVar(&b.updates, "updates", 50_000, "updates a second of all boards together")
	flags.IntVar(&b.profiles, "profiles", 500_000, "profiles in memory; beside those of the boards that are read; no more than the large board has members")
	flags.IntVar(&b.members, "members", 2_000_000, "members of the board that is opened in each window")
	flags.Float64Var(&b.pages, "rate", 0, "pages a second; 0: half of what the sidecar answers, at most 100 for each connection")
	flags.IntVar(&b.connections, "connections", 200, "connections at once")
	flags.DurationVar(&b.window, "window", time.Minute, "time over which a row is measured")
	flags.IntVar(&b.rounds, "rounds", 1, "rounds of the servers in turns")
	flags.IntSliceVar(&b.procs, "procs", []int{1, 2}, "GOMAXPROCS of the sidecar, one after another")
	flags.BoolVar(&b.apart, "apart", true, "give the sidecar and its rivals a core of their own, where there are two")
	return reporting(cmd, &b.progress, func(ctx context.Context) (tailReport, error) {
		err := b.run(ctx)
		return b.report, err
	}, tailReport.print)
}

func (b *tailBench) run(ctx context.Context) (err error) {
	if b.boards < 1 || b.small < 50 || b.updates < 0 || b.profiles < 0 || b.profiles > b.members || b.connections < 1 || b.rounds < 1 || b.pages < 0 || b.pages > 100*float64(b.connections) {
		return cli.Usagef("want --boards, --connections and --rounds of 1 or more, 50 or more --board-members, no more --profiles than --members, and a --rate of at most 100 for each connection")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(ownGarbage))
	if b.rivals, err = newBenchServers(ctx, &readBench{progress: b.progress, members: 1000}); err != nil {
		return err
	}
	defer b.rivals.close()
	if b.health, err = servers.FreeAddr(); err != nil {
		return err
	}
	b.args = []string{"--health", b.health, "--profile-redis-key", "profile:<member>", "--profile-budget-mib", fmt.Sprint(profileBudget >> 20)}
	b.rate, b.all = 1, func(ctx context.Context) error {
		if err := errors.Join(b.fillProfiles(ctx, 0, b.small), b.fillProfiles(ctx, max(b.members-b.profiles, b.small), b.members)); err != nil {
			return err
		}
		for _, procs := range b.procs {
			b.env = []string{fmt.Sprint("GOMAXPROCS=", procs)}
			b.do = func(ctx context.Context, sidecar int) error { return b.measureTail(ctx, procs, sidecar) }
			if err := errors.Join(b.writeRooms(append(b.smallBoards(), otherBoard)...), b.beside(ctx)); err != nil {
				return err
			}
		}
		return nil
	}
	done, err := b.openBench.run(ctx)
	if done != nil {
		b.report.Kafka, b.report.Cores, b.report.Pages, b.report.Missing = done.Kafka, done.Cores, b.pages, b.rivals.missing
	}
	return err
}

// fillProfiles writes those of some members into Redis.
func (b *tailBench) fillProfiles(ctx context.Context, from, to int) error {
	for from < to {
		next := min(from+1000, to)
		_, err := b.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			for ; from < next; from++ {
				member := benchMember(from)
				p.Set(ctx, "profile:"+member, fmt.Sprintf(`{"nick":"member number %s","avatar":"https://cdn.example.com/a/%s/face-128.webp"}`, member, member), 0)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("write profiles: %w", err)
		}
	}
	return nil
}

// measureTail measures all servers beside one sidecar.
func (b *tailBench) measureTail(ctx context.Context, procs, sidecar int) error {
	if err := b.awaitOpen(ctx, 0, append(b.smallBoards(), otherBoard)...); err != nil {
		return err
	}
	if err := b.warm(ctx); err != nil {
		return err
	}
	b.rivals.started["rankcache"] = &benchServer{unix: b.data.Addr, close: func() error { return nil }}
	if err := b.startRivals(); err != nil {
		return err
	}
	updates, err := newTailUpdates(ctx, &b.openBench, b.updates)
	if err != nil {
		return err
	}
	defer updates.close()
	cfg := load.Config{Connections: b.connections, Window: b.window, Pids: []int{sidecar}}
	if b.pages == 0 {
		if err := b.choosePace(ctx, cfg); err != nil {
			return err
		}
	}
	cfg.Rate = b.pages
	for range b.rounds {
		for _, name := range []string{"rankcache", "fixed", "nginx"} {
			if server := b.rivals.started[name]; server != nil {
				cfg.Target, cfg.Question = server.target("unix"), b.question(name)
				if err := b.tailRow(ctx, cfg, tailRow{Procs: procs, Server: name}, updates); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	return nil
}

// warm has the sidecar load the profiles: it opens the large board, and reads it and a small one page by page.
func (b *tailBench) warm(ctx context.Context) error {
	if b.profiles == 0 {
		return nil
	}
	fmt.Fprintf(b.progress, "loading %d profiles\n", b.profiles)
	if err := b.openLarge(ctx); err != nil {
		return err
	}
	return errors.Join(b.loadProfiles(ctx, largeBoard, b.profiles), b.loadProfiles(ctx, b.smallBoards()[0], b.small))
}

// loadProfiles reads pages until each of the first n rows has its profile.
func (b *tailBench) loadProfiles(ctx context.Context, id rankcache.BoardID, n int) error {
	until := time.Now().Add(openWithin)
	for start := 0; start < n; {
		q := get(fmt.Sprintf("/v1/boards/%s/top?start=%d&limit=%d&profiles=1", id, start, min(rankcache.MaxTop, n-start)))
		_, body, err := load.Ask(b.data, &q)
		if err == nil && strings.Contains(string(body), `"profiles_missing":0`) {
			start += rankcache.MaxTop
			continue
		}
		if time.Now().After(until) {
			return fmt.Errorf("profiles of %s from row %d: %v %.200s", id, start, err, body)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (b *tailBench) openLarge(ctx context.Context) error {
	return errors.Join(b.writeRooms(append(b.smallBoards(), otherBoard, largeBoard)...), b.awaitOpen(ctx, 0, largeBoard))
}

// closeLarge has the sidecar let the large board go.
func (b *tailBench) closeLarge(ctx context.Context) error {
	if err := b.writeRooms(append(b.smallBoards(), otherBoard)...); err != nil {
		return err
	}
	for q, until := topOf(largeBoard), time.Now().Add(openWithin); time.Now().Before(until); {
		resp, _, err := load.Ask(b.data, &q)
		if err != nil || resp.Header.Get("Rankcache-Source") != "local" {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("the sidecar holds %s for %v after it was taken out of the rooms file", largeBoard, openWithin)
}

// startRivals starts them, if they are not, with a page that the sidecar answered.
func (b *tailBench) startRivals() (err error) {
	s := b.rivals
	if s.started["fixed"] == nil {
		if err := s.write("/top50", "rankcache", "/v1/boards/"+string(b.smallBoards()[0])+tailPage); err != nil {
			return err
		}
		if s.started["fixed"], err = s.startFixed("fixed", "fixed", nil); err != nil {
			return err
		}
		if _, err := s.get("nginx"); err != nil {
			return err
		}
	}
	if b.core < 0 {
		return nil
	}
	return s.pin(b.core)
}

func (b *tailBench) question(server string) load.Question {
	if server != "rankcache" {
		return get("/top50")
	}
	q := get("")
	q.Paths = nil
	for _, id := range b.smallBoards() {
		q.Paths = append(q.Paths, "/v1/boards/"+string(id)+tailPage)
	}
	return q
}

// choosePace finds half of what the sidecar answers while it applies the updates.
func (b *tailBench) choosePace(ctx context.Context, cfg load.Config) error {
	cfg.Target, cfg.Question, cfg.Window = b.data, b.question("rankcache"), min(tailClosed, b.window)
	closed, err := load.Run(ctx, cfg)
	if err == nil && closed.Requests == 0 {
		err = fmt.Errorf("no page was answered: %w", closed.Error)
	}
	if err != nil {
		return err
	}
	b.pages = min(closed.Rate()/2, 100*float64(b.connections))
	fmt.Fprintf(b.progress, "the sidecar answers %.0f pages/s, read are %.0f\n", closed.Rate(), b.pages)
	return nil
}

// tailRow measures one window, at whose beginning the large board begins to open.
func (b *tailBench) tailRow(ctx context.Context, cfg load.Config, row tailRow, updates *tailUpdates) error {
	if err := b.closeLarge(ctx); err != nil {
		return err
	}
	before, err := b.published(ctx)
	if err != nil {
		return err
	}
	opened := make(chan error, 1)
	begin, sent := time.Now(), updates.sent.Load()
	go func() {
		err := b.openLarge(ctx)
		row.Open = time.Since(begin).Seconds()
		opened <- err
	}()
	result, err := load.Run(ctx, cfg)
	row.Updates = float64(updates.sent.Load()-sent) / time.Since(begin).Seconds()
	if err == nil && result.Errors > 0 {
		err = fmt.Errorf("%d pages failed: %w", result.Errors, result.Error)
	}
	if err := errors.Join(err, <-opened, updates.failure()); err != nil {
		return err
	}
	after, err := b.published(ctx)
	if err != nil {
		return err
	}
	row.Visible = visibleP99(before, after)
	ms := func(p float64) float64 { return result.Percentile(p).Seconds() * 1000 }
	row.P50, row.P99, row.P999, row.Max = ms(0.5), ms(0.99), ms(0.999), ms(1)
	row.Pages, row.Unanswered, row.Busy = result.Requests, result.Unanswered, result.Busy()
	b.report.Rows = append(b.report.Rows, row)
	fmt.Fprintf(b.progress, "  GOMAXPROCS=%d %s: p99 %.2f ms, p99.9 %.2f ms\n", row.Procs, row.Server, row.P99, row.P999)
	return nil
}

// visibleBounds are those of the sidecar's histogram of the time from a command to its publication, in seconds.
var visibleBounds = [...]float64{.005, .01, .025, .05, .075, .1, .15, .25, .5, 1, 2.5, 10, 60, math.Inf(1)}

// published returns how many publications there were within each of them.
func (b *tailBench) published(ctx context.Context) (n [len(visibleBounds)]float64, err error) {
	for i, bound := range visibleBounds {
		series := fmt.Sprintf(`rankcache_replay_visible_seconds_bucket{le="%v"}`, bound)
		if n[i], err = metricOf(ctx, b.health, series); err != nil {
			return n, err
		}
	}
	return n, nil
}

// visibleP99 returns the bound that 99 of 100 publications between two looks kept, in milliseconds.
func visibleP99(before, after [len(visibleBounds)]float64) float64 {
	last := len(visibleBounds) - 1
	for i, bound := range visibleBounds[:last] {
		if after[i]-before[i] >= 0.99*(after[last]-before[last]) {
			return bound * 1000
		}
	}
	return -1 // some took over a minute
}

func (r tailReport) print(to io.Writer) error {
	fmt.Fprintf(to, "broker: %s; %s; %.0f pages/s\n%10s %-10s %8s %8s %8s %8s %9s %10s %9s %10s %7s %7s\n", r.Kafka, r.Cores, r.Pages,
		"GOMAXPROCS", "server", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "pages", "unanswered", "updates/s", "visible ms", "open s", "busy")
	for _, row := range r.Rows {
		if _, err := fmt.Fprintf(to, "%10d %-10s %8.2f %8.2f %8.2f %8.2f %9d %10d %9.0f %10.0f %7.1f %7.2f\n", row.Procs, row.Server, row.P50, row.P99, row.P999, row.Max,
			row.Pages, row.Unanswered, row.Updates, row.Visible, row.Open, row.Busy); err != nil {
			return err
		}
	}
	return nil
}
