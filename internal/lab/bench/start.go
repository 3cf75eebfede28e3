package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
)

// startBench is one run of rankcache-lab bench start.
type startBench struct {
	fleetBench
	slow float64 // the part of the time in which Redis is held
}

// startRow is the stable JSON of one start.
type startRow struct {
	From    string  `json:"from"`
	Seconds float64 `json:"ready_s"` // until all sidecars have all boards
}

type startReport struct {
	Kafka   string     `json:"kafka"`
	Pods    int        `json:"pods"`
	Boards  int        `json:"boards"`
	Members int        `json:"members"`
	Slow    float64    `json:"redis_held"`
	Rows    []startRow `json:"rows"`
}

// slowEvery is how often Redis is held: shorter than a call may take.
const slowEvery = 50 * time.Millisecond

func newBenchStartCommand() *cobra.Command {
	b := &startBench{}
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Measure how long sidecars take to start beside a slow Redis, without files and with their own",
		Long: `Start sidecars with many super-hot boards beside a Redis that is held for a part of each 50 ms, from their logs;
and again with the files that they have saved. Needs a redis-server in PATH.`,
		Example: "  rankcache-lab bench start --boards 5000 --members 300\n  rankcache-lab bench start --pods 10 --boards 40 --members 2000 --slow 0.98",
	}
	flags := cmd.Flags()
	flags.IntVar(&b.pods, "pods", 1, "sidecars, 1 to 100")
	flags.IntVar(&b.boards, "boards", 1000, "super-hot boards, each with a topic")
	flags.IntVar(&b.members, "members", 300, "members of each board")
	flags.Float64Var(&b.slow, "slow", 0.9, "the `part` of the time in which Redis is held, from 0 to 0.99")
	return reporting(cmd, &b.progress, b.run, (*startReport).print)
}

func (b *startBench) run(ctx context.Context) (*startReport, error) {
	if b.pods < 1 || b.pods > 100 || b.boards < 1 || b.members < 1 || b.slow < 0 || b.slow > 0.99 {
		return nil, cli.Usagef("want --pods of 1 to 100, --boards and --members of 1 or more, and --slow from 0 to 0.99")
	}
	r := &startReport{Pods: b.pods, Boards: b.boards, Members: b.members, Slow: b.slow}
	return r, b.within(ctx, func(ctx context.Context, dir string) error {
		r.Kafka = b.kafkaWhat
		for _, from := range []string{"the log", "their files"} {
			seconds, err := b.once(ctx, dir)
			if err != nil {
				return err
			}
			r.Rows = append(r.Rows, startRow{from, seconds})
			fmt.Fprintf(b.progress, "from %s: %.1f s\n", from, seconds)
		}
		return nil
	})
}

// once starts the sidecars, and ends them such that they save their boards.
func (b *startBench) once(ctx context.Context, dir string) (seconds float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	held := make(chan struct{})
	go func() { defer close(held); b.hold(ctx) }()
	defer func() { cancel(); <-held }()
	begun, pods := time.Now(), make([]*fleetProcesses, b.pods)
	for i := range pods {
		folder := filepath.Join(dir, fmt.Sprint("pod", i))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return 0, err
		}
		if pods[i], err = b.launch(ctx, 1, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--snapshot-dir", folder, "--drain", "0s"); err != nil {
			return 0, err
		}
		defer pods[i].stop()
	}
	for _, p := range pods {
		if err := p.await(ctx, "rankcache_ready", 1); err != nil {
			return 0, err
		}
	}
	seconds = time.Since(begun).Seconds()
	for _, p := range pods {
		if err := syscall.Kill(p.pids[0], syscall.SIGTERM); err != nil {
			return 0, err
		}
		<-p.ends[0]
	}
	return seconds, nil
}

// hold stops Redis for a part of each interval until ctx is done.
func (b *startBench) hold(ctx context.Context) {
	held := time.Duration(b.slow * float64(slowEvery))
	for ctx.Err() == nil {
		_ = syscall.Kill(b.redisPid, syscall.SIGSTOP) // one that has ended fails the calls to it
		time.Sleep(held)
		_ = syscall.Kill(b.redisPid, syscall.SIGCONT)
		_ = sleep(ctx, slowEvery-held)
	}
}

func (r *startReport) print(to io.Writer) error {
	fmt.Fprintf(to, "%d sidecars, %d boards of %d members, Redis held for %.2f of the time; broker: %s\n", r.Pods, r.Boards, r.Members, r.Slow, r.Kafka)
	for _, row := range r.Rows {
		if _, err := fmt.Fprintf(to, "from %-12s %8.1f s\n", row.From, row.Seconds); err != nil {
			return err
		}
	}
	return nil
}
