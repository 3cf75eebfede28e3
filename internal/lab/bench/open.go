package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/app"
	"rankcache/internal/cli"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/load"
	"rankcache/internal/lab/measure"
	"rankcache/wire"
)

// openBench is one run of rankcache-lab bench open.
type openBench struct {
	replayBench         // of the board that is opened
	boards      int     // that are refilled at once
	small       int     // members of each; 0: smallMembers
	rate        float64 // reads a second of the other board
	window      time.Duration
	apart       bool
	dir         string
	data        load.Target
	args        []string // further ones of the sidecar
	env         []string // in addition, the sidecar's
	core        int      // the sidecar's; below 0 none of its own
	filled      map[rankcache.BoardID]*fill.Board
	shared      *sharedBoards // what the small boards are; nil: each has its own topic
	// do measures, with the sidecar running; openBench.measure unless another bench sets it.
	do func(ctx context.Context, sidecar int) error
	// all has it measured by beside once, or with one sidecar after another; nil: once.
	all func(ctx context.Context) error
}

// otherMembers is the size of the board that is read meanwhile, and smallMembers that of
// each board that is refilled.
const otherMembers, smallMembers = 21_000, 2_100

// What the sidecar does in a window.
const (
	atRest    = "nothing"
	control   = "nothing (control)" // another process reads the log of the large board
	refilling = "refills"
	opening   = "opens"
)

// openRow is the stable JSON of one window. Latencies are in milliseconds, from when each
// read was due.
type openRow struct {
	At         float64 `json:"at_s"`    // the window's beginning, after that began
	Sidecar    string  `json:"sidecar"` // what it does beside answering
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
	Reads      int     `json:"reads"`
	Unanswered int     `json:"unanswered"`
}

type openReport struct {
	Kafka         string    `json:"kafka"`
	Members       int       `json:"members"`
	Boards        int       `json:"boards"`
	Cores         string    `json:"cores"` // which of them the sidecar has
	OpenSeconds   float64   `json:"open_s"`
	RefillSeconds float64   `json:"refill_s"`
	Rows          []openRow `json:"rows"`
}

// quietWindows are measured while the sidecar has nothing else to do.
const quietWindows = 3

func newBenchOpenCommand() *cobra.Command {
	b := &openBench{}
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Measure reads of a board while others are refilled, and a large one opens",
		Long: `Start a sidecar with a super-hot board of 21,000 members and read its page at a steady
rate: while it has nothing else to do; while another process reads the large board's
log (the control: how late this machine alone makes the answers); while all of many
small boards are refilled, because Redis has them under a new run; and while a large
board becomes super-hot, until it is open. A read that could not be sent in time counts from
when it was due. The sidecar has the last core, load and servers have the others. Needs
Linux, and redis-server and h2load (Debian's package nghttp2-client) in PATH.`,
		Example: "  rankcache-lab bench open\n  rankcache-lab bench open --members 210000 --rate 500 -o json",
	}
	flags := cmd.Flags()
	flags.StringVar(&b.kafka, "kafka", "", "`brokers` to use instead of an own one; topics are made there and stay")
	flags.IntVar(&b.members, "members", 2_000_000, "members of the board that is opened")
	flags.IntVar(&b.boards, "boards", 200, "boards of 2,100 members that are refilled at once; 0 for none")
	flags.BoolVar(&b.apart, "apart", true, "give the sidecar a core of its own, where there are two")
	flags.Float64Var(&b.rate, "rate", 250, "reads a second of the other board, at most 500")
	flags.DurationVar(&b.window, "window", 2*time.Second, "time over which a row is measured")
	return reporting(cmd, &b.progress, b.run, (*openReport).print)
}

func (b *openBench) run(ctx context.Context) (report *openReport, err error) {
	if b.members < 1 || b.boards < 0 || b.rate <= 0 || b.rate > 500 || b.window <= 0 {
		return nil, cli.Usagef("want --members of 1 or more, --boards of 0 or more, a --rate of at most 500 and a positive --window")
	}
	if err := load.Installed("h2load"); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "rankcache-bench"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.dir)
	core, undo, err := b.part()
	if b.core = core; err != nil {
		return nil, err
	}
	defer undo()
	stop, err := b.start(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := b.fillBoards(ctx); err != nil {
		return nil, err
	}
	report = &openReport{Kafka: b.kafkaWhat, Members: b.members, Boards: b.boards, Cores: "shared by all"}
	if core >= 0 {
		report.Cores = fmt.Sprintf("the sidecar has core %d of %d", core, runtime.NumCPU())
	}
	if b.do == nil {
		b.do = func(ctx context.Context, _ int) error { return b.measure(ctx, report) }
	}
	if b.all != nil {
		return report, b.all(ctx)
	}
	return report, b.beside(ctx)
}

// beside measures with a sidecar.
func (b *openBench) beside(ctx context.Context) error {
	sidecar, err := b.startSidecar(ctx, b.redis.Options().Addr)
	if err != nil {
		return err
	}
	defer sidecar.Wait()
	defer sidecar.Process.Signal(os.Interrupt)
	if b.core >= 0 {
		if err := load.Pin(sidecar.Process.Pid, b.core); err != nil {
			return err
		}
	}
	return b.do(ctx, sidecar.Process.Pid)
}

// part ties this process, and the servers that it will start, to all cores but the last,
// which it returns: it is the sidecar's. Below 0 all share the cores.
func (b *openBench) part() (last int, undo func(), err error) {
	cores, err := load.Cores()
	if err != nil || !b.apart || len(cores) < 2 {
		return -1, func() {}, err
	}
	rest := cores[:len(cores)-1]
	return cores[len(rest)], func() { _ = load.Pin(os.Getpid(), cores...) }, load.Pin(os.Getpid(), rest...)
}

const (
	otherBoard = rankcache.BoardID("bench_other")
	largeBoard = rankcache.BoardID("bench_large")
)

func (b *openBench) smallBoards() []rankcache.BoardID {
	if b.shared != nil {
		return b.shared.ids
	}
	ids := make([]rankcache.BoardID, b.boards)
	for i := range ids {
		ids[i] = rankcache.BoardID(fmt.Sprintf("bench_small_%d", i))
	}
	return ids
}

func (b *openBench) fillBoards(ctx context.Context) error {
	fmt.Fprintf(b.progress, "filling %d boards and one with %d members\n", b.boards+1, b.members)
	if b.filled = make(map[rankcache.BoardID]*fill.Board); b.shared != nil {
		if err := b.shared.fill(ctx, b); err != nil {
			return err
		}
	} else {
		for _, id := range b.smallBoards() {
			if err := b.fillBoard(ctx, id, cmp.Or(b.small, smallMembers)); err != nil {
				return err
			}
		}
	}
	return errors.Join(b.fillBoard(ctx, otherBoard, otherMembers), b.fillBoard(ctx, largeBoard, b.members), b.writeRooms(append(b.smallBoards(), otherBoard)...))
}

// fillBoard makes a board in Redis and in its topic: each member once.
func (b *openBench) fillBoard(ctx context.Context, id rankcache.BoardID, members int) error {
	filled := b.replayBench
	filled.members, filled.updates = members, members
	board, err := filled.fill(ctx, id)
	b.filled[id] = board
	return err
}

// writeRooms replaces the rooms file, which the sidecar follows.
func (b *openBench) writeRooms(ids ...rankcache.BoardID) error {
	text, file := "boards:\n", b.roomsFile()
	if b.shared != nil {
		text = b.shared.classes + text
		ids = ids[len(b.shared.ids):]
	}
	for _, id := range ids {
		text += fmt.Sprintf("- {match: %q, mode: super-hot}\n", id)
	}
	return errors.Join(os.WriteFile(file+".next", []byte(text), 0o600), os.Rename(file+".next", file))
}

func (b *openBench) roomsFile() string { return filepath.Join(b.dir, "rooms.yaml") }

// startSidecar runs this program again as the deployed one.
func (b *openBench) startSidecar(ctx context.Context, redisAddr string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b.data = load.Target{Network: "unix", Addr: filepath.Join(b.dir, "data.sock")}
	cmd := exec.CommandContext(ctx, self, append([]string{"bench", "rankcache", "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--socket", b.data.Addr, "--rooms", b.roomsFile(), "--redis", "redis://" + redisAddr, "--kafka", b.kafka, "--hot-source", "none",
		"--memory-budget", "0", "--give-up-after", "5m", "--drain", "0s", "--log-level", "warn"}, b.args...)...)
	cmd.Env = append(os.Environ(), b.env...)
	cmd.Stderr = os.Stderr // written by another goroutine than the progress
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the sidecar: %w", err)
	}
	return cmd, nil
}

// newSidecarCommand is rankcache itself, for bench open, which calls this program again.
func newSidecarCommand() *cobra.Command {
	return &cobra.Command{Use: "rankcache", Short: "The deployed program, for bench open", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Run(cmd.Context(), app.NewCommand(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}}
}

// measure reads one board beside each of the sidecar's works in turn.
func (b *openBench) measure(ctx context.Context, r *openReport) (err error) {
	if err := b.awaitOpen(ctx, 0, append(b.smallBoards(), otherBoard)...); err != nil {
		return err
	}
	for range quietWindows {
		if err := b.row(ctx, r, atRest, 0); err != nil {
			return err
		}
	}
	if _, err := b.during(ctx, r, control, b.readLog); err != nil {
		return err
	}
	if b.boards > 0 {
		if r.RefillSeconds, err = b.during(ctx, r, refilling, b.refill); err != nil {
			return err
		}
	}
	r.OpenSeconds, err = b.during(ctx, r, opening, func(ctx context.Context) error {
		return errors.Join(b.writeRooms(append(b.smallBoards(), otherBoard, largeBoard)...), b.awaitOpen(ctx, 0, largeBoard))
	})
	return err
}

// readLog reads the large board's log in a process of its own, which works the broker as a
// replay does.
func (b *openBench) readLog(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	reader := exec.CommandContext(ctx, self, "bench", "log", b.kafka, wire.DefaultNames().Topic(largeBoard))
	reader.Stderr = os.Stderr
	return reader.Run()
}

// newLogCommand reads a topic to its end and drops what it reads, for bench open.
func newLogCommand() *cobra.Command {
	return &cobra.Command{Use: "log", Short: "Read a topic to its end, for bench open", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, _, err := measure.Drain(cmd.Context(), args[0], args[1])
			return err
		}}
}

// refill gives each small board a new run with another score in Redis, as after a loss, and waits until
// all are open with it.
func (b *openBench) refill(ctx context.Context) error {
	since := uint64(time.Now().UnixMilli()) * 1024
	for _, id := range b.smallBoards() {
		rows, err := b.redis.ZRangeWithScores(ctx, wire.DefaultNames().BoardKey(id), 0, -1).Result()
		if err != nil {
			return err
		}
		scores := make(map[string]float64, len(rows))
		for _, row := range rows {
			scores[row.Member.(string)] = row.Score
		}
		scores[rows[0].Member.(string)]--
		if err := fill.NewBoardOf(id, scores, uint64(len(rows))).Redis(ctx, b.redis, wire.DefaultNames(), 0); err != nil {
			return err
		}
	}
	return b.awaitOpen(ctx, since, b.smallBoards()...)
}

// during measures windows until work has ended, and returns how many seconds that took.
func (b *openBench) during(ctx context.Context, r *openReport, what string, work func(context.Context) error) (seconds float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin, took, ended := time.Now(), 0.0, make(chan error, 1)
	go func() {
		err := work(ctx)
		took = time.Since(begin).Seconds()
		ended <- err
	}()
	for {
		if err := b.row(ctx, r, what, time.Since(begin)); err != nil {
			return 0, err
		}
		select {
		case err := <-ended:
			return took, err
		default:
		}
	}
}

// row measures one window.
func (b *openBench) row(ctx context.Context, report *openReport, what string, at time.Duration) error {
	result, err := load.Run(ctx, load.Config{Target: b.data, Connections: pacedConnections, Window: b.window, Rate: b.rate, Question: topOf(otherBoard)})
	if err == nil && result.Errors > 0 {
		err = fmt.Errorf("%d reads failed: %w", result.Errors, result.Error)
	}
	if err != nil {
		return err
	}
	ms := func(p float64) float64 { return result.Percentile(p).Seconds() * 1000 }
	report.Rows = append(report.Rows, openRow{at.Seconds(), what, ms(0.5), ms(0.99), ms(1), result.Requests, result.Unanswered})
	return nil
}

// pacedConnections are few, as each sends at its own time.
const pacedConnections = 5

func topOf(id rankcache.BoardID) load.Question {
	return get("/v1/boards/" + string(id) + "/top?limit=50")
}

// awaitOpen waits until each board is answered from memory, of a run or a later one.
func (b *openBench) awaitOpen(ctx context.Context, run uint64, ids ...rankcache.BoardID) error {
	for until := time.Now().Add(openWithin); len(ids) > 0; {
		q := topOf(ids[0])
		resp, body, err := load.Ask(b.data, &q)
		if err == nil && resp.Header.Get("Rankcache-Source") == "local" {
			if state, err := rankcache.ParseState(resp.Header.Get("Rankcache-State")); err == nil && state.Run >= run {
				ids = ids[1:]
				continue
			}
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s is not open after %v: %w %.200s", ids[0], openWithin, err, body)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

const openWithin = 5 * time.Minute

func (r *openReport) print(to io.Writer) error {
	fmt.Fprintf(to, "broker: %s; %s; %d boards refilled after %.1f s; %d members open after %.1f s\n%-18s %8s %8s %8s %8s %8s %11s\n",
		r.Kafka, r.Cores, r.Boards, r.RefillSeconds, r.Members, r.OpenSeconds, "the sidecar does", "at s", "p50 ms", "p99 ms", "max ms", "reads", "unanswered")
	for _, row := range r.Rows {
		if _, err := fmt.Fprintf(to, "%-18s %8.1f %8.2f %8.2f %8.2f %8d %11d\n", row.Sidecar, row.At, row.P50, row.P99, row.Max, row.Reads, row.Unanswered); err != nil {
			return err
		}
	}
	return nil
}
