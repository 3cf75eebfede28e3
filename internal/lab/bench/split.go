package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/cli"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/load"
	"rankcache/internal/lab/servers"
	"rankcache/internal/serve"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/httpapi"
	"rankcache/wire"
)

// splitBench is one run of rankcache-lab bench split.
type splitBench struct {
	members, shards, rounds int
	window                  time.Duration
	progress                io.Writer
	redis                   *redis.Client
	pid                     int // of Redis
}

// splitFigure is a cost on one board and on a split one, in microseconds: medians over the rounds.
type splitFigure struct {
	One   float64 `json:"one_us"`
	Split float64 `json:"split_us"`
	Ratio float64 `json:"ratio"` // median of the rounds' ratios
}

// splitReport is the stable JSON of bench split.
type splitReport struct {
	Members       int         `json:"members"`
	Shards        int         `json:"shards"`
	Page          splitFigure `json:"page_http_cpu"`       // of 50 rows in memory, the same bytes again and again, with the sockets
	Top           splitFigure `json:"top_local"`           // the same without HTTP
	Standing      splitFigure `json:"standing_local"`      // without HTTP
	RedisTop      splitFigure `json:"top_redis_cpu"`       // of Redis's CPU
	RedisStanding splitFigure `json:"standing_redis_cpu"`  // of members that share their score with few
	RedisTied     splitFigure `json:"tied_redis_cpu"`      // of members that share theirs with thousands
	RedisIncr     splitFigure `json:"increment_redis_cpu"` // a ZINCRBY that moves the member
	Union         float64     `json:"zunionstore_ms"`      // of the shards, in one command
	Writes        splitWrites `json:"writes"`
}

const (
	splitClassText = "classes: [{name: world, board: \"world:{kind}\", period: none, shards: %d}]\nboards: [{match: one, mode: super-hot}, {match: \"world:local\", mode: super-hot}]\n"
	splitLocal     = rankcache.BoardID("world:local")
	splitRedis     = rankcache.BoardID("world:redis")
	splitOne       = rankcache.BoardID("one") // in memory
	splitOneRedis  = rankcache.BoardID("single")
	splitRows      = 50
)

func newBenchSplitCommand() *cobra.Command {
	b := &splitBench{}
	cmd := &cobra.Command{
		Use:   "split",
		Short: "Measure what reads of a split board cost, beside one board of the same members",
		Long: `Fill one board and the shards of a split one with the same members, in memory and in a
redis-server, and read both in turn, round after round: a page of 50 rows over HTTP (by h2load, CPU time of this
process) and without it, standings in memory, and pages, standings and increments in Redis, by its own CPU time. Then
add the shards up with ZUNIONSTORE. Last post increments to a writer of a cluster of three masters, to one board and to
the shards of another: as the masters share this machine, what they can take together is computed from their CPU time
for a command, and from that of the busiest. Needs Linux, redis-server and h2load.`,
		Example: "  rankcache-lab bench split -o json\n  rankcache-lab bench split --members 16000000 --shards 16",
		Args:    cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.IntVar(&b.members, "members", 1_000_000, "members of each board")
	flags.IntVar(&b.shards, "shards", 16, "shards of the split one")
	flags.IntVar(&b.rounds, "rounds", 5, "rounds; the figures are medians over them")
	flags.DurationVar(&b.window, "window", 300*time.Millisecond, "how long each figure is measured in a round")
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

func (b *splitBench) run(ctx context.Context) (*splitReport, error) {
	if b.members < 1000 || b.shards < class.MinShards || b.shards > class.MaxShards || b.rounds < 1 || b.window <= 0 {
		return nil, cli.Usagef("want --members of 1000 or more, --shards of %d to %d, --rounds of 1 or more and a positive --window", class.MinShards, class.MaxShards)
	}
	if err := load.Installed("h2load"); err != nil {
		return nil, err
	}
	server, err := servers.StartRedis(ctx, servers.RedisOptions{})
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	defer server.Close()
	b.redis, b.pid = redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, ReadTimeout: time.Minute}), server.Pid()
	defer b.redis.Close()
	reader, scores, err := b.fill(ctx)
	if err != nil {
		return nil, err
	}
	m := &splitMeasures{splitBench: b, reader: reader, members: benchPlaces(b.members)}
	clear(scores)
	runtime.GC()
	r, err := m.run(ctx)
	if err == nil {
		r.Writes, err = b.writes(ctx)
	}
	return r, err
}

// fill fills memory and Redis, and returns what reads them.
func (b *splitBench) fill(ctx context.Context) (*sidecar.Reader, map[string]float64, error) {
	file, err := rooms.Parse(fmt.Appendf(nil, splitClassText, b.shards))
	if err != nil {
		return nil, nil, err
	}
	tiers := file.Resolve(nil)
	boards, scores := localboard.NewBoards(), benchScores(b.members)
	parts := make([]map[string]float64, b.shards)
	for i := range parts {
		parts[i] = make(map[string]float64, b.members/b.shards)
	}
	for m, s := range scores {
		parts[class.ShardOf(m, b.shards)][m] = s
	}
	add := func(local, inRedis rankcache.BoardID, rows map[string]float64) error {
		fmt.Fprintf(b.progress, "%d members of %s\n", len(rows), local)
		entries := make([]rankcache.Entry, 0, len(rows))
		for m, s := range rows {
			entries = append(entries, rankcache.Entry{Member: m, Score: s})
		}
		board := boards.Create(local)
		if err := board.Load(uint64(len(rows)), entries); err != nil {
			return err
		}
		board.Publish()
		boards.Open(local)
		return fill.NewBoardOf(inRedis, rows, uint64(len(rows))).Redis(ctx, b.redis, wire.DefaultNames(), 0)
	}
	if err := add(splitOne, splitOneRedis, scores); err != nil {
		return nil, nil, err
	}
	for i, rows := range parts {
		if err := add(class.ShardID(splitLocal, i), class.ShardID(splitRedis, i), rows); err != nil {
			return nil, nil, err
		}
	}
	reader, err := sidecar.NewReader(sidecar.Config{Tiers: func() *rooms.Tiers { return tiers }, Boards: serve.OpenBoards{Boards: boards}, Origin: origin.New(b.redis, wire.DefaultNames())}, prometheus.NewRegistry())
	return reader, scores, err
}

// splitMeasures takes the figures.
type splitMeasures struct {
	*splitBench
	reader  *sidecar.Reader
	members []int // by place
	next    int
}

func (m *splitMeasures) run(ctx context.Context) (*splitReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	addr, err := m.serve(ctx)
	if err != nil {
		return nil, err
	}
	r := &splitReport{Members: m.splitBench.members, Shards: m.shards}
	head, tail := min(5000, len(m.members)/4), len(m.members)
	for _, f := range []struct {
		figure     *splitFigure
		one, split rankcache.BoardID
		measure    func(rankcache.BoardID) (float64, error)
	}{
		{&r.Page, splitOne, splitLocal, func(board rankcache.BoardID) (float64, error) { return m.http(ctx, addr, board) }},
		{&r.Top, splitOne, splitLocal, func(board rankcache.BoardID) (float64, error) {
			return m.local(ctx, rankcache.Query{Board: board, Limit: splitRows}, 0, 0)
		}},
		{&r.Standing, splitOne, splitLocal, func(board rankcache.BoardID) (float64, error) {
			return m.local(ctx, rankcache.Query{Board: board}, 0, tail)
		}},
		{&r.RedisTop, splitOneRedis, splitRedis, func(board rankcache.BoardID) (float64, error) {
			return m.inRedis(ctx, rankcache.Query{Board: board, Limit: splitRows}, 0, 0)
		}},
		{&r.RedisStanding, splitOneRedis, splitRedis, func(board rankcache.BoardID) (float64, error) {
			return m.inRedis(ctx, rankcache.Query{Board: board}, 0, head)
		}},
		{&r.RedisTied, splitOneRedis, splitRedis, func(board rankcache.BoardID) (float64, error) {
			return m.inRedis(ctx, rankcache.Query{Board: board}, tail/2, tail)
		}},
		{&r.RedisIncr, splitOneRedis, splitRedis, func(board rankcache.BoardID) (float64, error) { return m.incr(ctx, board) }},
	} {
		if err := m.compare(f.figure, f.one, f.split, f.measure); err != nil {
			return nil, err
		}
	}
	r.Union, err = m.union(ctx)
	return r, err
}

// compare measures one board and the split one in turn.
func (m *splitMeasures) compare(f *splitFigure, one, split rankcache.BoardID, measure func(rankcache.BoardID) (float64, error)) error {
	var ones, splits, ratios []float64
	for range m.rounds {
		a, err := measure(one)
		if err != nil {
			return err
		}
		b, err := measure(split)
		if err != nil {
			return err
		}
		ones, splits, ratios = append(ones, a), append(splits, b), append(ratios, b/a)
	}
	*f = splitFigure{median(ones), median(splits), median(ratios)}
	return nil
}

// serve serves the data port until ctx is done.
func (m *splitMeasures) serve(ctx context.Context) (addr string, err error) {
	server, err := httpapi.New(m.reader, httpapi.Config{}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		return "", err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = server.Serve(ctx, ln) }() // it ends with ctx
	return ln.Addr().String(), nil
}

// http returns the CPU time of this process for one page.
func (m *splitMeasures) http(ctx context.Context, addr string, board rankcache.BoardID) (us float64, err error) {
	res, err := load.Run(ctx, load.Config{Target: load.Target{Network: "tcp", Addr: addr}, Question: load.Question{Paths: []string{fmt.Sprintf("/v1/boards/%s/top?limit=%d", board, splitRows)}, Status: 200},
		Connections: 16, Window: m.window, Pids: []int{os.Getpid()}})
	if err != nil {
		return 0, err
	}
	if res.Errors > 0 || res.Requests == 0 {
		return 0, fmt.Errorf("%s: %d pages, %d errors: %w", board, res.Requests, res.Errors, res.Error)
	}
	return float64(res.CPU.Microseconds()) / float64(res.Requests), nil
}

// read reads the board until the window is over, each time for the next member of those places, if there are any,
// and returns how often.
func (m *splitMeasures) read(ctx context.Context, q rankcache.Query, from, to int) (n int, took time.Duration, err error) {
	qs, as, member := []rankcache.Query{q}, make([]rankcache.Answer, 1), make([]string, 1)
	began := time.Now()
	for took < m.window {
		for range 100 {
			if from < to {
				m.next++
				member[0], qs[0].Members = benchMember(m.members[from+m.next*7919%(to-from)]), member
			}
			m.reader.Read(ctx, qs, as)
			if as[0].Err != nil {
				return n, took, as[0].Err
			}
			if from < to && as[0].Own[0].Rank == 0 {
				return n, took, fmt.Errorf("%s has no member %s", q.Board, member[0])
			}
			n++
		}
		took = time.Since(began)
	}
	return n, took, nil
}

// local returns the time of one read.
func (m *splitMeasures) local(ctx context.Context, q rankcache.Query, from, to int) (us float64, err error) {
	n, took, err := m.read(ctx, q, from, to)
	return float64(took.Nanoseconds()) / 1e3 / float64(n), err
}

// inRedis returns the CPU time of Redis for one read.
func (m *splitMeasures) inRedis(ctx context.Context, q rankcache.Query, from, to int) (us float64, err error) {
	return m.ofRedis(func() (n int, err error) {
		n, _, err = m.read(ctx, q, from, to)
		return n, err
	})
}

// ofRedis returns the CPU time of Redis for each of what do has done.
func (m *splitMeasures) ofRedis(do func() (int, error)) (us float64, err error) {
	before, err := load.CPU([]int{m.pid})
	if err != nil {
		return 0, err
	}
	n, err := do()
	if err != nil {
		return 0, err
	}
	after, err := load.CPU([]int{m.pid})
	return float64((after - before).Nanoseconds()) / 1e3 / float64(n), err
}

// incr moves members in pipelines of 100.
func (m *splitMeasures) incr(ctx context.Context, board rankcache.BoardID) (us float64, err error) {
	return m.ofRedis(func() (n int, err error) {
		for began := time.Now(); time.Since(began) < m.window && err == nil; n += 100 {
			_, err = m.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
				for range 100 {
					m.next++
					member, key := benchMember(m.members[m.next*7919%len(m.members)]), board
					if board == splitRedis {
						key = class.ShardID(board, class.ShardOf(member, m.shards))
					}
					p.ZIncrBy(ctx, string(key), 3, member)
				}
				return nil
			})
		}
		return n, err
	})
}

// union adds the shards up as people would do without merging.
func (m *splitMeasures) union(ctx context.Context) (ms float64, err error) {
	store := &redis.ZStore{}
	for i := range m.shards {
		store.Keys = append(store.Keys, string(class.ShardID(splitRedis, i)))
	}
	began := time.Now()
	err = m.redis.ZUnionStore(ctx, "union", store).Err()
	return float64(time.Since(began).Microseconds()) / 1e3, err
}

func (r *splitReport) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%d members, %d shards; us on one board, on the split one, ratio\n", r.Members, r.Shards); err != nil {
		return err
	}
	for _, f := range []struct {
		what string
		splitFigure
	}{
		{"page over HTTP", r.Page}, {"top in memory", r.Top}, {"standing in memory", r.Standing}, {"top of Redis, CPU", r.RedisTop},
		{"standing of Redis, CPU", r.RedisStanding}, {"the same, many ties", r.RedisTied}, {"increment of Redis, CPU", r.RedisIncr},
	} {
		if _, err := fmt.Fprintf(w, "%-24s %9.2f %9.2f %7.2f\n", f.what, f.One, f.Split, f.Ratio); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "ZUNIONSTORE of the shards: %.0f ms\nposts to %d masters: %.2f us of CPU a command on one board, %.2f on the split one (%.2f of the busiest master); by CPU they take %.2f times as many, %.2f if the shards were spread evenly\n",
		r.Union, r.Writes.Masters, r.Writes.One, r.Writes.Split, r.Writes.Busiest, r.Writes.Capacity, r.Writes.CapacityEven)
	return err
}
