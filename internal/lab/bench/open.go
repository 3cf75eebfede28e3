package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/app"
	"rankcache/internal/lab/load"
	"rankcache/internal/lab/servers"
)

// openBench is one run of rankcache-lab bench open.
type openBench struct {
	replayBench         // of the board that is opened
	rate        float64 // reads a second of the other board
	window      time.Duration
	dir         string
	data        load.Target
}

// otherMembers is the size of the board that is read meanwhile.
const otherMembers = 21_000

// openRow is the stable JSON of one window. Latencies are in milliseconds, from when each
// read was due.
type openRow struct {
	At         float64 `json:"at_s"` // the window's beginning, after the board was asked for
	Opening    bool    `json:"opening"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
	Reads      int     `json:"reads"`
	Unanswered int     `json:"unanswered"`
}

type openReport struct {
	Kafka       string    `json:"kafka"`
	Members     int       `json:"members"`
	OpenSeconds float64   `json:"open_s"`
	Rows        []openRow `json:"rows"` // first the quiet windows, then those until the board is open
}

// quietWindows are measured before the board is asked for.
const quietWindows = 3

func newBenchOpenCommand() *cobra.Command {
	b := &openBench{}
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Measure reads of a board while a large one is filled and opened",
		Long: `Start a sidecar with a super-hot board of 21,000 members, read its page at a steady
rate, and make another board super-hot: its updates are replayed from Kafka, or it is
loaded from Redis, until it is open. A late answer counts from when its read was due.
Needs Linux, a redis-server in PATH, and cores for sidecar, load and servers.`,
		Example: "  rankcache-lab bench open\n  rankcache-lab bench open --members 210000 --rate 500 -o json",
		Args:    app.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&b.kafka, "kafka", "", "`brokers` to use instead of an own one; topics are made there and stay")
	flags.IntVar(&b.members, "members", 2_000_000, "members of the board that is opened")
	flags.Float64Var(&b.rate, "rate", 2000, "reads a second of the other board")
	flags.DurationVar(&b.window, "window", 2*time.Second, "time over which a row is measured")
	output := app.OutputFlag(flags, "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b.progress = cmd.ErrOrStderr()
		report, err := b.run(cmd.Context())
		if err != nil {
			return err
		}
		return app.PrintAs(cmd.OutOrStdout(), *output, report, report.print)
	}
	return cmd
}

func (b *openBench) run(ctx context.Context) (report *openReport, err error) {
	if b.members < 1 || b.rate <= 0 || b.window <= 0 {
		return nil, app.Usagef("want --members of 1 or more, and a positive --rate and --window")
	}
	if b.dir, err = os.MkdirTemp("", "rankcache-bench"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.dir)
	server, err := servers.StartRedis(ctx, servers.RedisOptions{})
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	defer server.Close()
	b.redis = redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, ReadTimeout: time.Minute})
	defer b.redis.Close()
	stop, err := b.startKafka(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	other, large := rankcache.BoardID("bench_other"), rankcache.BoardID("bench_large")
	if err := errors.Join(b.fillBoard(ctx, other, otherMembers), b.fillBoard(ctx, large, b.members), b.writeRooms(other)); err != nil {
		return nil, err
	}
	end, err := b.startSidecar(ctx, server.Addr())
	if err != nil {
		return nil, err
	}
	defer end()
	return b.measure(ctx, other, large)
}

// fillBoard makes a board in Redis and in its topic: each member once.
func (b *openBench) fillBoard(ctx context.Context, id rankcache.BoardID, members int) error {
	fmt.Fprintf(b.progress, "filling %s with %d members\n", id, members)
	filled := b.replayBench
	filled.members, filled.updates = members, members
	_, err := filled.fill(ctx, id, 1)
	return err
}

// writeRooms replaces the rooms file, which the sidecar follows.
func (b *openBench) writeRooms(ids ...rankcache.BoardID) error {
	text, file := "boards:\n", b.roomsFile()
	for _, id := range ids {
		text += fmt.Sprintf("- {match: %q, mode: super-hot}\n", id)
	}
	return errors.Join(os.WriteFile(file+".next", []byte(text), 0o600), os.Rename(file+".next", file))
}

func (b *openBench) roomsFile() string { return filepath.Join(b.dir, "rooms.yaml") }

// startSidecar runs this program again as the deployed one.
func (b *openBench) startSidecar(ctx context.Context, redisAddr string) (end func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b.data = load.Target{Network: "unix", Addr: filepath.Join(b.dir, "data.sock")}
	cmd := exec.CommandContext(ctx, self, "bench", "rankcache", "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--socket", b.data.Addr, "--rooms", b.roomsFile(), "--redis", "redis://"+redisAddr, "--kafka", b.kafka, "--hot-source", "none",
		"--memory-budget", "0", "--give-up-after", "5m", "--drain", "0s", "--log-level", "warn")
	cmd.Stderr = b.progress
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the sidecar: %w", err)
	}
	return func() error { return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()) }, nil
}

// newSidecarCommand is rankcache itself, for bench open, which calls this program again.
func newSidecarCommand() *cobra.Command {
	return &cobra.Command{Use: "rankcache", Short: "The deployed program, for bench open", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.Run(cmd.Context(), app.NewCommand(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}}
}

// measure reads one board until the other one is open.
func (b *openBench) measure(ctx context.Context, other, large rankcache.BoardID) (*openReport, error) {
	report := &openReport{Kafka: b.kafkaWhat, Members: b.members}
	if err := b.awaitOpen(ctx, other); err != nil {
		return nil, err
	}
	for range quietWindows {
		if err := b.row(ctx, report, other, 0, false); err != nil {
			return nil, err
		}
	}
	begin := time.Now()
	if err := b.writeRooms(other, large); err != nil {
		return nil, err
	}
	opened, took := make(chan error, 1), time.Duration(0)
	go func() {
		err := b.awaitOpen(ctx, large)
		took = time.Since(begin)
		opened <- err
	}()
	for {
		if err := b.row(ctx, report, other, time.Since(begin), true); err != nil {
			return nil, err
		}
		select {
		case err := <-opened:
			report.OpenSeconds = took.Seconds()
			return report, err
		default:
		}
	}
}

// row measures one window.
func (b *openBench) row(ctx context.Context, report *openReport, id rankcache.BoardID, at time.Duration, opening bool) error {
	result, err := load.Run(ctx, load.Config{Target: b.data, Connections: 16, Window: b.window, Rate: b.rate,
		Question: load.Question{Requests: [][]byte{topRequest(id)}, Status: 200}})
	if err == nil && result.Errors > 0 {
		err = fmt.Errorf("%d reads failed: %w", result.Errors, result.Error)
	}
	if err != nil {
		return err
	}
	ms := func(p float64) float64 { return result.Percentile(p).Seconds() * 1000 }
	report.Rows = append(report.Rows, openRow{at.Seconds(), opening, ms(0.5), ms(0.99), ms(1), result.Requests, result.Unanswered})
	return nil
}

func topRequest(id rankcache.BoardID) []byte {
	return getRequest("/v1/boards/" + string(id) + "/top?limit=50")
}

// awaitOpen waits until a board is answered from memory.
func (b *openBench) awaitOpen(ctx context.Context, id rankcache.BoardID) error {
	for until := time.Now().Add(openWithin); ; {
		resp, body, err := firstReply(b.data, topRequest(id))
		switch {
		case err == nil && resp.Header.Get("Rankcache-Source") == "local":
			return nil
		case time.Now().After(until):
			return fmt.Errorf("%s is not open after %v: %w %.200s", id, openWithin, err, body)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

const openWithin = 5 * time.Minute

func (r *openReport) print(to io.Writer) error {
	fmt.Fprintf(to, "broker: %s; %d members, open after %.1f s\n%8s %8s %8s %8s %8s %8s %11s\n", r.Kafka, r.Members, r.OpenSeconds,
		"at s", "opening", "p50 ms", "p99 ms", "max ms", "reads", "unanswered")
	for _, row := range r.Rows {
		if _, err := fmt.Fprintf(to, "%8.1f %8t %8.2f %8.2f %8.2f %8d %11d\n", row.At, row.Opening, row.P50, row.P99, row.Max, row.Reads, row.Unanswered); err != nil {
			return err
		}
	}
	return nil
}
