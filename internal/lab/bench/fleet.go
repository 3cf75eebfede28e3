package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/servers"
	"rankcache/wire"
)

// fleetBench is one run of rankcache-lab bench fleet.
type fleetBench struct {
	replayBench                 // its servers, members and rounds
	pods, boards                int
	settle, window, statesEvery time.Duration
	keeper                      string   // its health port, while there is one
	common                      []string // arguments of sidecars and keeper
}

// fleetReport is the stable JSON of bench fleet. Figures are medians of the rounds; ratios are of a pod's with a keeper
// to those without, medians of each round's.
type fleetReport struct {
	Kafka   string       `json:"kafka"`
	Pods    int          `json:"pods"`
	Boards  int          `json:"boards"`
	Members int          `json:"members"`
	Rounds  int          `json:"rounds"`
	Load    string       `json:"load"` // of the machine, at the end
	Idle    fleetFigures `json:"idle"` // Redis and broker, alone
	None    fleetFigures `json:"pod_without_keeper"`
	Kept    fleetFigures `json:"pod_with_keeper"`
	Keeper  fleetFigures `json:"keeper"`
	Ratios  fleetFigures `json:"ratios"`
	// Of a pod, by rankcache plan, and that divided by what was measured.
	PlanNone   fleetFigures `json:"plan_without_keeper"`
	PlanKept   fleetFigures `json:"plan_with_keeper"`
	PlanToNone fleetFigures `json:"plan_to_pod_without_keeper"`
	PlanToKept fleetFigures `json:"plan_to_pod_with_keeper"`
}

func newBenchFleetCommand() *cobra.Command {
	b := &fleetBench{}
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Measure what a pod at rest costs Redis and Kafka, with a keeper and without",
		Long: `Start sidecars with many super-hot boards at rest, without a keeper and beside one, in turn,
and measure what a pod takes of Redis and Kafka, and of itself. What Redis and Kafka take
when nobody asks, and what the keeper takes of them when it is alone, is taken off. Kafka's bytes are what
the broker reads and writes, of an own broker, or of kfake where there is none. A run in which
the keeper publishes much less than 3.3 times a second tells nothing: the machine was too
busy. Beside it is what rankcache plan expects of such a pod, and its ratio to what was measured.
Needs Linux, and a redis-server in PATH.`,
		Example: "  rankcache-lab bench fleet --pods 20 -o json\n  rankcache-lab bench fleet --pods 3 --rounds 1 --window 10s",
	}
	flags := cmd.Flags()
	flags.IntVar(&b.pods, "pods", 4, "sidecars, 1 to 100")
	flags.IntVar(&b.boards, "boards", 100, "super-hot boards, each with a topic")
	flags.IntVar(&b.members, "members", 2000, "members of each board")
	flags.IntVar(&b.rounds, "rounds", 3, "how often each is measured")
	flags.DurationVar(&b.settle, "settle", 15*time.Second, "wait before each window")
	flags.DurationVar(&b.window, "window", 20*time.Second, "over which each is measured")
	flags.DurationVar(&b.statesEvery, "states-every", 300*time.Millisecond, "the keeper's")
	return reporting(cmd, &b.progress, b.run, (*fleetReport).print)
}

func (b *fleetBench) run(ctx context.Context) (*fleetReport, error) {
	if b.pods < 1 || b.pods > 100 || b.boards < 1 || b.members < 1 || b.rounds < 1 || b.settle < 0 || b.window <= 0 {
		return nil, cli.Usagef("want --pods of 1 to 100, --boards, --members and --rounds of 1 or more, and a positive --window")
	}
	r := &fleetReport{Pods: b.pods, Boards: b.boards, Members: b.members, Rounds: b.rounds}
	return r, b.within(ctx, func(ctx context.Context, _ string) error {
		r.Kafka = b.kafkaWhat
		return b.measure(ctx, r)
	})
}

// within starts and fills the servers, and has do measure, which may use a folder.
func (b *fleetBench) within(ctx context.Context, do func(ctx context.Context, dir string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop, err := b.replayBench.start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	dir, err := os.MkdirTemp("", "rankcache-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.common = []string{"--redis", "redis://" + b.redis.Options().Addr, "--kafka", b.kafka, "--rooms", filepath.Join(dir, "rooms.yaml"), "--give-up-after", "10m", "--log-level", "error"}
	if err := b.fillBoards(ctx, filepath.Join(dir, "rooms.yaml")); err != nil {
		return err
	}
	return do(ctx, dir)
}

// fillBoards makes the boards, their topics and the rooms file.
func (b *fleetBench) fillBoards(ctx context.Context, file string) error {
	scores := make(map[string]float64, b.members)
	for i := range b.members {
		scores[benchMember(i)] = float64(i)
	}
	names, text := wire.DefaultNames(), []byte("boards:\n")
	for i := range b.boards {
		id := rankcache.BoardID(fmt.Sprintf("fleet-%04d", i))
		topic, err := fill.NewTopic(ctx, b.kafka, names.Topic(id), 1)
		if err != nil {
			return err
		}
		topic.Close()
		if err := fill.NewBoardOf(id, scores, uint64(b.members)).Redis(ctx, b.redis, names, 0); err != nil {
			return err
		}
		text = fmt.Appendf(text, "- {match: %q, mode: super-hot}\n", id)
	}
	return os.WriteFile(file, text, 0o600)
}

// measure does the rounds and takes their medians.
func (b *fleetBench) measure(ctx context.Context, r *fleetReport) error {
	var idle, none, kept, keeper, ratios []fleetFigures
	for i := range b.rounds {
		round, err := b.round(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.progress, "round %d of %d\n", i+1, b.rounds)
		idle, none, kept, keeper = append(idle, round.Idle), append(none, round.None), append(kept, round.Kept), append(keeper, round.Keeper)
		ratios = append(ratios, round.Kept.ratios(round.None))
	}
	r.Idle, r.None, r.Kept, r.Keeper, r.Ratios = medianFigures(idle), medianFigures(none), medianFigures(kept), medianFigures(keeper), medianFigures(ratios)
	b.comparePlan(r)
	text, err := os.ReadFile("/proc/loadavg")
	r.Load = string(text[:min(14, len(text))])
	return err
}

// round measures the servers alone, pods without a keeper, a keeper alone, and pods beside it.
func (b *fleetBench) round(ctx context.Context) (r fleetReport, err error) {
	if r.Idle, err = b.figures(ctx, nil); err != nil {
		return r, err
	}
	if r.None, err = b.podsAtRest(ctx, "rankcache_ready", 1); err != nil {
		return r, err
	}
	r.None = r.None.perPod(r.Idle, b.pods)
	keeper, err := b.start(ctx, 1, "keep", "--states-every", b.statesEvery.String())
	if err != nil {
		return r, err
	}
	defer keeper.stop()
	if err := keeper.await(ctx, published, 10); err != nil {
		return r, err
	}
	b.keeper = keeper.health[0]
	defer func() { b.keeper = "" }()
	if r.Keeper, err = b.figures(ctx, keeper.pids); err != nil {
		return r, err
	}
	r.Keeper = r.Keeper.perPod(r.Idle, 1)
	// A pod hears of each board before it is measured.
	if r.Kept, err = b.podsAtRest(ctx, `rankcache_replay_readings_total{source="keeper"}`, b.boards); err != nil {
		return r, err
	}
	r.Kept = r.Kept.withoutKeeper(r.Keeper).perPod(r.Idle, b.pods)
	return r, nil
}

// podsAtRest starts sidecars, measures them when a metric of each has reached a value, and stops them.
func (b *fleetBench) podsAtRest(ctx context.Context, series string, atLeast int) (fleetFigures, error) {
	pods, err := b.start(ctx, b.pods, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer pods.stop()
	if err := pods.await(ctx, series, float64(atLeast)); err != nil {
		return nil, err
	}
	return b.figures(ctx, pods.pids)
}

// fleetProcesses are processes that are started and stopped together.
type fleetProcesses struct {
	pids   []int
	health []string
	ends   []<-chan struct{}
	stop   func() // and waits until they have ended
}

// start starts n processes, and returns when they are ready.
func (b *fleetBench) start(ctx context.Context, n int, args ...string) (*fleetProcesses, error) {
	p, err := b.launch(ctx, n, args...)
	if err != nil {
		return nil, err
	}
	if err := p.await(ctx, "rankcache_ready", 1); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// launch starts n processes.
func (b *fleetBench) launch(ctx context.Context, n int, args ...string) (*fleetProcesses, error) {
	running, cancel := context.WithCancel(ctx)
	p := &fleetProcesses{}
	p.stop = func() {
		cancel()
		for _, ended := range p.ends {
			<-ended
		}
	}
	for range n {
		health, err := servers.FreeAddr()
		if err != nil {
			p.stop()
			return nil, err
		}
		pid, ended, err := startRankcache(running, slices.Concat(args, b.common, []string{"--health", health})...)
		if err != nil {
			p.stop()
			return nil, err
		}
		p.pids, p.health, p.ends = append(p.pids, pid), append(p.health, health), append(p.ends, ended)
	}
	return p, nil
}

// await returns when a metric of each process has reached a value.
func (p *fleetProcesses) await(ctx context.Context, series string, atLeast float64) error {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	for _, health := range p.health {
		for {
			value, err := metricOf(ctx, health, series)
			if err == nil && value >= atLeast {
				break
			}
			if ended := sleep(ctx, 100*time.Millisecond); ended != nil {
				return fmt.Errorf("%s of %s is %v, not %v: %w", series, health, value, atLeast, errors.Join(err, ended))
			}
		}
	}
	return nil
}

func (r *fleetReport) print(to io.Writer) error {
	fmt.Fprintf(to, "%d pods, %d boards of %d members; broker: %s; load %s\n", r.Pods, r.Boards, r.Members, r.Kafka, r.Load)
	fmt.Fprintf(to, "%-16s %12s %12s %12s %12s %8s %12s %12s %12s %12s\n", "", "idle", "pod", "with keeper", "keeper", "ratio", "plan: pod", "to measured", "with keeper", "to measured")
	for _, key := range fleetKeys {
		if _, err := fmt.Fprintf(to, "%-16s %12.3f %12.3f %12.3f %12.3f %8.3f %12.3f %12.3f %12.3f %12.3f\n", key, r.Idle[key], r.None[key], r.Kept[key], r.Keeper[key], r.Ratios[key],
			r.PlanNone[key], r.PlanToNone[key], r.PlanKept[key], r.PlanToKept[key]); err != nil {
			return err
		}
	}
	return nil
}
