// Package simulate runs a fleet of sidecars in virtual time: each asks Redis by the sidecars' own rules
// ([replay.Pace]), and Redis takes for each request what was measured (docs/speed/FLEET.md). It shows what the
// arithmetic of internal/plan can't: the peaks when something happens to all at once, and how long they last.
//
//   - scenario.go: what happens, and what is reported.
//   - fleet.go: all that runs; sidecars that start share the network.
//   - sidecar.go, keeper.go: what asks Redis.
//   - redis.go: the server and its queue.
//   - clock.go: virtual time.
//
// Not simulated: reads by apps, Kafka's CPU, what writers repair after a failover, boards that are read again from
// logs.
package simulate

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/plan"
	"rankcache/keeper"
	"rankcache/replay"
)

// options are the settings of rankcache-lab simulate.
type options struct {
	q               plan.Question
	boards, members int
	network         float64 // MB/s
	seed            uint64
}

// report is the stable JSON of rankcache-lab simulate.
type report struct {
	Pods    int     `json:"pods"`
	Boards  int     `json:"boards"`
	Members int     `json:"members"`
	Updates float64 `json:"updates_per_s"`
	// Redis in the steady state, by rankcache plan.
	Plan  []*row `json:"plan"`
	Rows  []*row `json:"rows"`
	Kafka kafka  `json:"kafka"`
}

// kafka is what the fleet takes of Kafka in the steady state. A fetch that waits for the network takes more updates
// with it, so that there are fewer.
type kafka struct {
	Updates float64 `json:"updates_mb_per_s"`
	Fetches float64 `json:"fetches_mb_per_s"`  // that they would take
	Share   float64 `json:"share_mb_per_s"`    // of a sidecar
	Rate    float64 `json:"pod_fetches_per_s"` // with that share; 0: it does not carry the updates, and boards fall behind without end
	Most    float64 `json:"most_sidecars"`     // whose updates the network carries
}

// NewCommand returns rankcache-lab simulate.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate what a large fleet asks Redis when something happens to all at once",
		Long: `Run a fleet in virtual time, with a keeper and without: sidecars at rest, a keeper that dies,
a failover of Redis, and pods that start together. When sidecars ask Redis is decided by the
product's own code, and each request takes what docs/speed/FLEET.md has measured, one after the other. Shown are
the CPU of Redis before, at its peak in a second and after, the longest wait, requests that ran
into the timeout of 200 ms, and after how long all boards are open. The same seed gives the same
figures. It calls no server, and takes half a minute for 1,000 sidecars.`,
		Example: "  rankcache-lab simulate\n  rankcache-lab simulate --pods 5000 -o json",
		Args:    cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.IntVar(&o.q.Pods, "pods", 1000, "sidecars, 40 to 20,000")
	flags.IntVar(&o.boards, "boards", 100, "super-hot boards")
	flags.IntVar(&o.members, "members", 2000, "members of each board")
	flags.Float64Var(&o.q.Updates, "updates", 500, "`updates/s` of all boards together")
	flags.IntVar(&o.q.Topics, "topics", 0, "`topics` of the updates; 0: one for each board")
	flags.DurationVar(&o.q.History, "history", 20*time.Minute, "`length` of the log that a starting sidecar replays")
	flags.DurationVar(&o.q.SnapshotEvery, "snapshot-every", replay.DefaultSaveEvery, "how often the keeper saves boards")
	flags.DurationVar(&o.q.StatesEvery, "states-every", keeper.DefaultEvery, "the keeper's `interval`")
	flags.Float64Var(&o.network, "network", 1250, "`MB/s` of all brokers together, and of the bucket")
	flags.Uint64Var(&o.seed, "seed", 1, "of the random numbers")
	output := cli.OutputFlag(flags, "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := o.run()
		if err != nil {
			return err
		}
		return cli.PrintAs(cmd.OutOrStdout(), *output, r, r.print)
	}
	return cmd
}

func (o *options) run() (*report, error) {
	if o.q.Pods < 40 || o.q.Pods > 20_000 || o.boards < 1 || o.boards > 1000 || o.members < 1 || o.network <= 0 || o.q.Updates > 20_000 || o.q.SnapshotEvery <= 0 {
		return nil, cli.Usagef("want --pods of 40 to 20000, --boards of 1 to 1000, --members of 1 or more, --updates of up to 20000, and a positive --network and --snapshot-every")
	}
	o.q.Members, o.q.IDBytes, o.q.AuditRows = slices.Repeat([]int{o.members}, o.boards), 10, replay.DefaultAuditRows
	if wrong := o.q.Check(); wrong != "" {
		return nil, cli.Usagef("--%s", wrong)
	}
	r := &report{Pods: o.q.Pods, Boards: o.boards, Members: o.members, Updates: o.q.Updates, Kafka: kafkaOf(o.q, o.network)}
	var all sync.WaitGroup
	cores := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, keepers := range []int{0, 1} {
		q := o.q
		q.Keepers = keepers
		r.Plan = append(r.Plan, planned(q))
		for _, c := range scenarios {
			if keepers == 0 && (c.kept || c.shared) {
				continue
			}
			to := new(row)
			r.Rows = append(r.Rows, to)
			all.Go(func() {
				cores <- struct{}{}
				*to = c.run(q, o.network*1e6, o.seed)
				<-cores
			})
		}
	}
	all.Wait()
	return r, nil
}

// planned is the steady state by plan.
func planned(q plan.Question) *row {
	a := plan.Make(q)
	return &row{Name: "steady, by plan", Keeper: q.Keepers > 0, Before: a.RedisAfterCPU, Commands: a.RestCommands + q.Updates}
}

func kafkaOf(q plan.Question, network float64) kafka {
	a := plan.Make(q)
	one := q.Updates * float64(a.UpdateBytes) / 1e6
	k := kafka{Updates: a.KafkaEgressMB, Fetches: a.KafkaFetchMB, Share: network / float64(q.Pods)}
	k.Rate = max(0, min(1, (k.Share-one)*1e3/a.PodFetchKB)) * a.Fetches
	if one > 0 {
		k.Most = network / one
	}
	return k
}

func (r *report) print(to io.Writer) error {
	fmt.Fprintf(to, "%d pods, %d boards of %d members, %g updates/s\n", r.Pods, r.Boards, r.Members, r.Updates)
	fmt.Fprintf(to, "Kafka: %.0f MB/s of updates, %.0f of fetches beside them if the network carries them; a sidecar has %.2f MB/s, with which it fetches %.1f times a second; updates of up to %.0f sidecars are carried\n",
		r.Kafka.Updates, r.Kafka.Fetches, r.Kafka.Share, r.Kafka.Rate, r.Kafka.Most)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEEPER\tWHAT HAPPENS\tCORES BEFORE\tPEAK\tAFTER\tCOMMANDS/S\tPEAK\tLONGEST WAIT\tTIMEOUTS\tALL OPEN AFTER\tCALM AFTER")
	for _, row := range slices.Concat(r.Plan, r.Rows) {
		fmt.Fprintf(table, "%v\t%s\t%.3f\t%.3f\t%.3f\t%.0f\t%d\t%.1f ms\t%d\t%.1f s\t%.0f s\n", row.Keeper, row.Name, row.Before, row.Peak, row.After, row.Commands, row.PeakCommands, row.Wait, row.Failed, row.Open, row.Calm)
	}
	return table.Flush()
}
