package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
)

// liveBench is one run of rankcache-lab bench live.
type liveBench struct {
	openBench
	quiet   int // further boards that seldom change
	streams int // of each board
	rate    float64
	rounds  int
	memory  string // GOMEMLIMIT
	rpc     string // address
	report  *liveReport
}

// liveReport is the stable JSON of bench live. Figures are medians over the rounds. Delays
// are from the broker's acknowledgement of an update to the event that has it.
type liveReport struct {
	Kafka         string  `json:"kafka"`
	Cores         string  `json:"cores"`
	Rounds        int     `json:"rounds"`
	Boards        int     `json:"boards"`
	Watchers      int     `json:"watchers"`
	EventsPerS    float64 `json:"events_per_s"`
	CPUPerEvent   float64 `json:"cpu_us_per_event"` // of the sidecar beyond what the updates cost without streams
	Busy          float64 `json:"sidecar_busy"`     // cores, with updates, reads and streams
	BusyWithout   float64 `json:"sidecar_busy_without_streams"`
	QuietP99      float64 `json:"quiet_p99_ms"` // first change of a board that had none for a while
	BusyP99       float64 `json:"busy_p99_ms"`
	ReadsP99      float64 `json:"reads_p99_ms"` // page reads beside the streams
	ReadsWithout  float64 `json:"reads_p99_without_streams_ms"`
	ReadsP99Ratio float64 `json:"reads_p99_ratio"`
}

func newBenchLiveCommand() *cobra.Command {
	b := &liveBench{}
	cmd := &cobra.Command{
		Use:   "live",
		Short: "Measure live pages: CPU for each event, and how late events and page reads are",
		Long: `Start a sidecar with many super-hot boards that change at a steady rate, and read pages
beside. In turns measure it with some streams of each board and without: the CPU time that an
event costs, how late it is after the broker has acknowledged the update, and how late page reads
are. Some further boards change once in a second or two: their events are first changes. All are
boards of one class, whose updates share a topic.

The sidecar has the last core, everything else the others. GOMAXPROCS is 2, as in a pod with a CPU
limit of 1. Needs Linux, and redis-server and h2load (Debian's package nghttp2-client) in PATH.`,
		Example: "  rankcache-lab bench live\n  rankcache-lab bench live --boards 50 --streams 2 -o json",
	}
	flags := cmd.Flags()
	flags.StringVar(&b.kafka, "kafka", "", "`brokers` to use instead of an own one; topics are made there and stay")
	flags.IntVar(&b.boards, "boards", 500, "boards of 2,100 members that change")
	flags.IntVar(&b.quiet, "quiet", 20, "further boards that change once in a second or two")
	flags.IntVar(&b.streams, "streams", 10, "streams of each board")
	flags.Float64Var(&b.rate, "changes", 10, "changes a second of each board")
	flags.DurationVar(&b.window, "window", 30*time.Second, "time over which a round is measured, without streams and with them")
	flags.IntVar(&b.rounds, "rounds", 5, "rounds")
	flags.StringVar(&b.memory, "go-memory", "670MiB", "GOMEMLIMIT of the sidecar: what a pod with a limit of 768 MiB leaves for Go")
	return reporting(cmd, &b.progress, func(ctx context.Context) (*liveReport, error) {
		err := b.run(ctx)
		return b.report, err
	}, (*liveReport).print)
}

func (b *liveBench) run(ctx context.Context) error {
	if b.boards < 1 || b.quiet < 1 || b.streams < 1 || b.rate <= 0 || b.rate > 20 || b.rounds < 1 || b.window <= 0 {
		return cli.Usagef("want --boards, --quiet, --streams and --rounds of 1 or more, --changes of at most 20 and a positive --window")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(ownGarbage))
	dir, err := os.MkdirTemp("", "rankcache-live")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.rpc = dir + "/rpc.sock"
	changing := b.boards
	b.boards += b.quiet
	if b.shared, err = newSharedBoards(b.boards, time.Now()); err != nil {
		return err
	}
	b.members, b.apart, b.do = smallMembers, true, b.measureLive
	b.args = []string{"--rpc", "unix:" + b.rpc, "--live-streams", fmt.Sprint(b.boards * b.streams)}
	b.env = []string{"GOMAXPROCS=2", "GOMEMLIMIT=" + b.memory}
	b.openBench.rate = 250
	b.report = &liveReport{Rounds: b.rounds, Boards: changing, Watchers: b.boards * b.streams}
	done, err := b.openBench.run(ctx)
	if done != nil {
		b.report.Kafka, b.report.Cores = done.Kafka, done.Cores
	}
	return err
}

// ownGarbage has this process, which changes the boards and reads thousands of streams, collect
// garbage each half a minute instead of each six seconds: its reads stand still for a moment of each.
const ownGarbage = 400

// liveRound is one measurement.
type liveRound struct {
	busy                       float64 // cores of the sidecar
	events, readsP95, readsP99 float64 // each second; ms
	reads                      int
	quiet, lively              []time.Duration
}

// measureLive measures with streams and without in turns.
func (b *liveBench) measureLive(ctx context.Context, sidecar int) error {
	ids := b.smallBoards()
	if err := b.awaitOpen(ctx, 0, append(ids, otherBoard)...); err != nil {
		return err
	}
	changes, err := newChanges(b, ids)
	if err != nil {
		return err
	}
	defer changes.close()
	var without, with []liveRound
	for round := range b.rounds {
		fmt.Fprintf(b.progress, "round %d of %d\n", round+1, b.rounds)
		one, err := b.round(ctx, sidecar, changes, b.streams)
		if err != nil {
			return err
		}
		other, err := b.round(ctx, sidecar, changes, 0)
		if err != nil {
			return err
		}
		with, without = append(with, one), append(without, other)
	}
	b.report.finish(without, with)
	return nil
}

// round changes the boards, reads pages and watches each board by some streams.
func (b *liveBench) round(ctx context.Context, sidecar int, c *changes, streams int) (r liveRound, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w, err := watchAll(b.rpc, c, streams)
	if err != nil {
		return r, err
	}
	defer w.close()
	if err := w.await(ctx); err != nil {
		return r, err
	}
	changed := make(chan error, 1)
	go func() { changed <- c.run(ctx) }()
	select { // what the first seconds are like counts for nothing
	case <-time.After(2 * time.Second):
	case err := <-changed:
		return r, fmt.Errorf("change boards: %w", err)
	}
	w.reset()
	if err = b.readPages(ctx, sidecar, c.boards[0].id, &r); err != nil {
		return r, err
	}
	var events int
	events, r.quiet, r.lively, err = w.results()
	r.events = float64(events) / b.window.Seconds()
	fmt.Fprintf(b.progress, "  %2d streams a board: %.0f events/s, %.2f cores, %d page reads, p95 %.2f ms, p99 %.2f ms\n",
		streams, r.events, r.busy, r.reads, r.readsP95, r.readsP99)
	stop()
	if failed := <-changed; !errors.Is(failed, context.Canceled) {
		err = errors.Join(err, failed)
	}
	return r, err
}

// readPages reads pages of one board for the window, and sets what was measured meanwhile.
func (b *liveBench) readPages(ctx context.Context, sidecar int, board rankcache.BoardID, r *liveRound) error {
	reads, err := load.Run(ctx, load.Config{Target: b.data, Connections: pacedConnections, Window: b.window, Rate: b.openBench.rate, Question: topOf(board), Pids: []int{sidecar}})
	if err == nil && reads.Errors > 0 {
		err = fmt.Errorf("%d reads failed: %w", reads.Errors, reads.Error)
	}
	if err != nil {
		return err
	}
	r.busy = reads.Busy()
	r.readsP95, r.readsP99 = reads.Percentile(0.95).Seconds()*1000, reads.Percentile(0.99).Seconds()*1000
	r.reads = reads.Requests
	return nil
}

func (r *liveReport) finish(without, with []liveRound) {
	of := func(rounds []liveRound, get func(*liveRound) float64) float64 {
		var values []float64
		for i := range rounds {
			values = append(values, get(&rounds[i]))
		}
		return median(values)
	}
	busy := func(l *liveRound) float64 { return l.busy }
	reads := func(l *liveRound) float64 { return l.readsP99 }
	r.Busy, r.BusyWithout = of(with, busy), of(without, busy)
	r.ReadsP99, r.ReadsWithout = of(with, reads), of(without, reads)
	r.EventsPerS = of(with, func(l *liveRound) float64 { return l.events })
	r.QuietP99 = of(with, func(l *liveRound) float64 { return p99(l.quiet) })
	r.BusyP99 = of(with, func(l *liveRound) float64 { return p99(l.lively) })
	var cost, ratio []float64
	for i := range with {
		cost = append(cost, (with[i].busy-without[i].busy)/with[i].events*1e6)
		ratio = append(ratio, with[i].readsP99/without[i].readsP99)
	}
	r.CPUPerEvent, r.ReadsP99Ratio = median(cost), median(ratio)
}

// p99 returns the 99th percentile in milliseconds, 0 of none.
func p99(delays []time.Duration) float64 {
	if len(delays) == 0 {
		return 0
	}
	slices.Sort(delays)
	return delays[len(delays)*99/100].Seconds() * 1000
}

func (r *liveReport) print(to io.Writer) error {
	_, err := fmt.Fprintf(to, `broker: %s; %s
%d boards, %d streams: %.0f events/s, each %.1f us of the sidecar's CPU; busy %.2f cores, %.2f without streams
first change of a quiet board, p99: %6.1f ms
changes of a busy board, p99:       %6.1f ms
page reads beside, p99:             %6.2f ms, %.2f without streams, ratio %.2f
`, r.Kafka, r.Cores, r.Boards, r.Watchers, r.EventsPerS, r.CPUPerEvent, r.Busy, r.BusyWithout, r.QuietP99, r.BusyP99, r.ReadsP99, r.ReadsWithout, r.ReadsP99Ratio)
	return err
}

// changedBoard is one board that changes, and when the broker had each change.
type changedBoard struct {
	id    rankcache.BoardID
	quiet bool
	acks  ackTimes
}
