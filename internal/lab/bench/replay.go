package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/measure"
	"rankcache/internal/lab/servers"
	"rankcache/internal/serve"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/replay"
	"rankcache/wire"
)

// replayBench is one run of rankcache-lab bench replay.
type replayBench struct {
	kafka     string
	updates   int
	members   int
	rounds    int
	liveRate  int
	progress  io.Writer
	kafkaWhat string
	kafkaPid  int // of an own broker
	redis     *redis.Client
	redisPid  int
	origin    *origin.Origin
}

// replayRow is the stable JSON of the figures, which are medians over the rounds.
type replayRow struct {
	Members           int     `json:"members"`
	Updates           int     `json:"updates"`
	UpdatesPerSecond  float64 `json:"updates_per_s"`      // from Run to open
	BareUpdatesPerSec float64 `json:"bare_updates_per_s"` // polling the same records and dropping them
	Ratio             float64 `json:"ratio"`              // of the two, median of the rounds' ratios
	CPU               float64 `json:"cpu_us_per_update"`  // of the whole process, collector and librdkafka included
	BareCPU           float64 `json:"bare_cpu_us_per_update"`
	OpenSeconds       float64 `json:"open_s"`
	BytesPerMember    float64 `json:"bytes_per_member"` // heap above the ids' own bytes
	liveRow
}

type replayReport struct {
	Kafka string `json:"kafka"`
	CPUs  int    `json:"cpus"`
	replayRow
}

func newBenchReplayCommand() *cobra.Command {
	b := &replayBench{}
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Measure a replay from Kafka to an open board, beside a bare consume loop",
		Long: `Fill a topic, then in turns poll it with nothing behind (the bare loop) and replay
it to an open board: decode, apply, order, compare with Redis. Needs a redis-server
in PATH; starts a Kafka broker of its own if its jars are there (make setup), else
kfake, unless --kafka names one.`,
		Example: "  rankcache-lab bench replay -o json\n  rankcache-lab bench replay --updates 100000 --members 21000 --kafka broker:9092",
	}
	flags := cmd.Flags()
	flags.StringVar(&b.kafka, "kafka", "", "`brokers` to use instead of an own one; a topic is made there and deleted")
	flags.IntVar(&b.updates, "updates", 1_000_000, "updates in the topic")
	flags.IntVar(&b.members, "members", 210_000, "members of the board")
	flags.IntVar(&b.rounds, "rounds", 3, "rounds of bare loop and replay in turns")
	flags.IntVar(&b.liveRate, "live", 50_000, "updates a second of the live tail behind the last round, for 5 s; 0 for none")
	return reporting(cmd, &b.progress, b.run, (*replayReport).print)
}

func (b *replayBench) run(ctx context.Context) (*replayReport, error) {
	if b.members < 1 || b.updates < b.members || b.rounds < 1 {
		return nil, cli.Usagef("want --members of 1 or more, at least as many --updates, and --rounds of 1 or more")
	}
	stop, err := b.start(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	b.origin = origin.New(b.redis, wire.DefaultNames(), origin.WithTimeout(5*time.Second))
	report := &replayReport{Kafka: b.kafkaWhat, CPUs: runtime.NumCPU()}
	report.replayRow, err = b.row(ctx)
	return report, err
}

// start starts Redis and a broker, and returns what ends them.
func (b *replayBench) start(ctx context.Context) (stop func(), err error) {
	server, err := servers.StartRedis(ctx, servers.RedisOptions{})
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	stopKafka, err := b.startKafka(ctx)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	b.redis = redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, PoolSize: 16, ReadTimeout: time.Minute})
	b.redisPid = server.Pid()
	return func() {
		_ = errors.Join(b.redis.Close(), stopKafka(), server.Close()) // they are gone with the bench
	}, nil
}

// startKafka takes the broker that was named, or starts the best that is there.
func (b *replayBench) startKafka(ctx context.Context) (stop func() error, err error) {
	b.kafkaWhat = "the Kafka given by --kafka"
	if b.kafka != "" {
		return func() error { return nil }, nil
	}
	broker, err := servers.StartKafka(ctx, servers.KafkaOptions{})
	if err == nil {
		b.kafka, b.kafkaWhat, b.kafkaPid = broker.Addr(), "Apache Kafka, one node on this machine", broker.Pid()
		return broker.Close, nil
	}
	if !errors.Is(err, servers.ErrNotInstalled) {
		return nil, fmt.Errorf("start Kafka: %w", err)
	}
	fmt.Fprintln(b.progress, "no Kafka here, measuring against kfake:", err)
	b.kafkaWhat = "kfake"
	b.kafka, b.kafkaPid, stop, err = startBroker(ctx)
	return stop, err
}

func (b *replayBench) row(ctx context.Context) (row replayRow, err error) {
	board := rankcache.BoardID(fmt.Sprint("bench_", time.Now().UnixNano()))
	fmt.Fprintf(b.progress, "producing %d updates of %d members\n", b.updates, b.members)
	filled, err := b.fill(ctx, board)
	if err != nil {
		return row, err
	}
	defer func() {
		err = errors.Join(err, fill.DeleteTopic(context.WithoutCancel(ctx), b.kafka, wire.DefaultNames().Topic(board)))
	}()
	var bare, whole, ratios, open, bytes, cpu, bareCPU []float64
	var live liveRow
	for round := range b.rounds {
		from := ownCPU()
		bareRate, err := b.bareRound(ctx, board)
		if err != nil {
			return row, err
		}
		bareCPU = append(bareCPU, b.perUpdate(ownCPU()-from))
		seconds, used, perMember, tail, err := b.wholeRound(ctx, board, filled, round == b.rounds-1)
		if err != nil {
			return row, err
		}
		rate := float64(b.updates) / seconds
		cpu = append(cpu, b.perUpdate(used))
		fmt.Fprintf(b.progress, "  round %d: bare %.0f/s, %.2f µs of CPU, replay %.0f/s, %.2f µs, open in %.2f s\n", round+1, bareRate, bareCPU[round], rate, cpu[round], seconds)
		bare, whole, open = append(bare, bareRate), append(whole, rate), append(open, seconds)
		ratios, bytes, live = append(ratios, rate/bareRate), append(bytes, perMember), tail
	}
	return replayRow{Members: b.members, Updates: b.updates,
		UpdatesPerSecond: median(whole), BareUpdatesPerSec: median(bare), Ratio: median(ratios), CPU: median(cpu), BareCPU: median(bareCPU),
		OpenSeconds: median(open), BytesPerMember: median(bytes), liveRow: live}, nil
}

// bareRound polls the whole topic with the replay's own consumer settings and
// returns records a second, from the first to the last.
func (b *replayBench) bareRound(ctx context.Context, board rankcache.BoardID) (float64, error) {
	n, took, err := measure.Drain(ctx, b.kafka, wire.DefaultNames().Topic(board))
	if err == nil && n != b.updates {
		err = fmt.Errorf("the bare loop saw %d records, want %d", n, b.updates)
	}
	return float64(n) / took.Seconds(), err
}

// wholeRound runs a replay from nothing to open; in the last one the board is
// then kept open for the live tail, which changes the topic.
func (b *replayBench) wholeRound(ctx context.Context, board rankcache.BoardID, filled *fill.Board, last bool) (seconds float64, used time.Duration, bytesPerMember float64, live liveRow, err error) {
	before := heapNow()
	boards := localboard.NewBoards()
	runner, err := replay.New(replay.Config{Brokers: b.kafka, Names: wire.DefaultNames(), Deadline: 5 * time.Minute},
		serve.FilledBoards{Boards: boards}, serve.GateOrigin{Origin: b.origin}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		return 0, 0, 0, live, err
	}
	runner.Follow([]rankcache.BoardID{board})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	start, from := time.Now(), ownCPU()
	go func() { ended <- runner.Run(ctx) }()
	for !(serve.OpenBoards{Boards: boards}).IsOpen(board) {
		select {
		case err := <-ended:
			return 0, 0, 0, live, fmt.Errorf("the replay ended before the board was open: %w", err)
		case <-time.After(time.Millisecond):
		}
	}
	seconds, used = time.Since(start).Seconds(), ownCPU()-from
	if status := runner.Status(); len(status) != 1 || status[0].State != rankcache.StateOpen {
		return 0, 0, 0, live, fmt.Errorf("the board is not open: %+v", status)
	}
	bytesPerMember = float64(heapNow()-before)/float64(b.members) - b.idBytes()
	if open, _ := boards.Get(board); last && b.liveRate > 0 {
		tail := &liveTail{acked: map[uint64]time.Time{}}
		if live, err = tail.measure(ctx, b, board, open, filled); err != nil {
			return 0, 0, 0, live, err
		}
	}
	cancel()
	runtime.KeepAlive(boards)
	return seconds, used, bytesPerMember, live, <-ended
}

// perUpdate returns the CPU of an update in µs.
func (b *replayBench) perUpdate(used time.Duration) float64 {
	return used.Seconds() * 1e6 / float64(b.updates)
}

// ownCPU returns the processor time that this process has taken.
func ownCPU() time.Duration {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		panic(err) // for no argument but a wrong one
	}
	return time.Duration(own.Utime.Nano() + own.Stime.Nano())
}

// heapNow returns the live heap in bytes.
func heapNow() int64 {
	runtime.GC()
	runtime.GC() // the first one only marks what finalizers free
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// idBytes is the mean length of the members' ids.
func (b *replayBench) idBytes() float64 {
	n := 0
	for i := range b.members {
		n += len(benchMember(i))
	}
	return float64(n) / float64(b.members)
}

func benchMember(i int) string { return fmt.Sprint(10_000_000 + i) }

// benchUpdates yields the updates of a board: each member once, then by Zipf.
func (b *replayBench) benchUpdates(board rankcache.BoardID, each func(u *wire.Update) error) (*fill.Board, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 50, uint64(b.members-1))
	order := rng.Perm(b.members)
	filled := fill.NewBoard(board)
	for i := range b.updates {
		member := 0
		if i < b.members {
			member = order[i]
		} else {
			member = int(zipf.Uint64())
		}
		u := filled.Incr(benchMember(member), 1)
		u.OrderID, u.At = fmt.Sprintf("order-%d", i), 1_700_000_000_000+int64(i)
		if err := each(&u); err != nil {
			return nil, err
		}
	}
	return filled, nil
}

func (b *replayBench) fill(ctx context.Context, board rankcache.BoardID) (*fill.Board, error) {
	topic := wire.DefaultNames().Topic(board)
	producer, err := fill.NewTopic(ctx, b.kafka, topic, 1)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	filled, err := b.benchUpdates(board, producer.Put)
	if err != nil {
		return nil, err
	}
	if err := producer.Flush(ctx); err != nil {
		return nil, err
	}
	return filled, filled.Redis(ctx, b.redis, wire.DefaultNames(), 0)
}

func (r *replayReport) print(to io.Writer) error {
	_, err := fmt.Fprintf(to, "broker: %s, %d CPUs\n%9s %9s %12s %12s %7s %8s %8s %8s %9s %10s %8s %8s\n%9d %9d %12.0f %12.0f %7.2f %8.2f %8.2f %8.2f %9.1f %10.0f %8.1f %8.1f\n", r.Kafka, r.CPUs,
		"members", "updates", "replay/s", "bare/s", "ratio", "µs", "bare µs", "open s", "B/member", "live/s", "p50 ms", "p99 ms",
		r.Members, r.Updates, r.UpdatesPerSecond, r.BareUpdatesPerSec, r.Ratio, r.CPU, r.BareCPU, r.OpenSeconds, r.BytesPerMember, r.LiveRate, r.DelayP50, r.DelayP99)
	return err
}
