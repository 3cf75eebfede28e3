package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/rooms"
	"rankcache/wire"
	"rankcache/writer"
)

// writeBench is one run of rankcache-lab bench write.
type writeBench struct {
	members, commands, rounds int
	progress                  io.Writer
	redis                     *redis.Client
	posts                     http.Handler
	topic                     *writeTopic
	orders                    int // order ids given so far
}

// writeRow is the stable JSON of one kind of class: medians over the rounds.
type writeRow struct {
	Name       string  `json:"name"`
	RedisCPU   float64 `json:"redis_cpu_us"`  // a command
	WriterCPU  float64 `json:"writer_cpu_us"` // a command, decoding the post and encoding its answer included
	Commands   float64 `json:"commands_per_s"`
	OrderBytes float64 `json:"order_bytes"`     // Redis's memory for each order id, mean of all rounds
	Ratio      float64 `json:"redis_cpu_ratio"` // to plain, or topic for what came by the topic; median of the rounds' ratios
}

type writeReport struct {
	Members int        `json:"members"`
	Rounds  int        `json:"rounds"`
	Rows    []writeRow `json:"rows"`
}

// writeClasses has a class for each row, of its name with "-" for "+".
const writeClasses = `
classes:
  - {name: plain, board: "plain_{x}", period: none}
  - {name: ties, board: "ties_{x}", period: none, ties: first}
  - {name: ties-guards, board: "guarded_{x}", period: none, ties: first, guard: {changes: 60/1m, members: 1000000, action: observe}}
  - {name: trim, board: "trim_{x}", period: none, ops: [incr], trim: 10000}
  - {name: topic, board: "topic_{x}", period: none}
  - {name: topic-three, board: "three_{x}", period: none}
  - {name: feeds3, board: "feeds_{x}", period: none, ops: [incr], feeds: [fed-one, fed-two]}
  - {name: fed-one, board: "fedone_{x}", period: none}
  - {name: fed-two, board: "fedtwo_{x}", period: none}
`

// writeNames are the rows. Those in writeBoards are measured by way of the command topic,
// as posts of a class with feeds are in it too, with the boards that are changed: by one
// command each, or by three in topic-three, which shows what three boards cost without feeds.
var (
	writeNames  = []string{"plain", "ties", "ties-guards", "trim", "topic", "topic-three", "feeds3"}
	writeBoards = map[string][]rankcache.BoardID{"topic": {"topic_1"}, "topic-three": {"three_1", "three_2", "three_3"}, "feeds3": {"feeds_1", "fedone_1", "fedtwo_1"}}
)

// Posts of writeBatch commands by writePosters at the same time, as the writer's port
// takes them.
const (
	writeBatch   = 100
	writePosters = 8
)

func newBenchWriteCommand() *cobra.Command {
	b := &writeBench{}
	cmd := &cobra.Command{
		Use:   "write",
		Short: "Measure what a command costs Redis and the writer, for each kind of class",
		Long: `Post increments in batches of 100 to a writer in this process, eight posts at a time, in
turns to a board of each kind of class: plain, with ties, with ties and guards, and one
that keeps the best 10,000 members. Then by way of the command topic: to a plain board
(topic), to three plain boards in turns, three commands for one (topic+three), and to one
that feeds two others (feeds3), which are compared with the first.
Updates are not published. Needs a redis-server in PATH; the broker is kfake, in a process
of its own.`,
		Example: "  rankcache-lab bench write -o json\n  rankcache-lab bench write --members 1000 --rounds 3",
		Args:    cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.IntVar(&b.members, "members", 57_000, "members of each board")
	flags.IntVar(&b.commands, "commands", 20_000, "commands of a round, for each row")
	flags.IntVar(&b.rounds, "rounds", 15, "rounds of all rows in turns")
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

func (b *writeBench) run(ctx context.Context) (*writeReport, error) {
	if b.members < 1 || b.commands < writeBatch || b.rounds < 1 {
		return nil, cli.Usagef("want --members and --rounds of 1 or more, and --commands of %d or more", writeBatch)
	}
	server, err := servers.StartRedis(ctx, servers.RedisOptions{})
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	defer server.Close()
	b.redis = redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, PoolSize: 16})
	defer b.redis.Close()
	kafka, stopKafka, err := startBroker(ctx)
	if err != nil {
		return nil, err
	}
	defer stopKafka()
	stop, err := b.startWriter(ctx, kafka)
	if err != nil {
		return nil, err
	}
	defer stop()
	rows := make([]writeRounds, len(writeNames))
	fmt.Fprintf(b.progress, "filling %d boards with %d members\n", len(rows), b.members)
	for _, name := range writeNames {
		if err := b.change(ctx, name, b.members); err != nil {
			return nil, err
		}
	}
	for round := range b.rounds {
		for i := range writeNames {
			i = (i + round) % len(writeNames) // each is first at times
			if err := b.round(ctx, writeNames[i], &rows[i]); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(b.progress, "round %d of %d\n", round+1, b.rounds)
	}
	report := &writeReport{Members: b.members, Rounds: b.rounds}
	for i, name := range writeNames {
		plain := rows[0].redis
		if writeBoards[name] != nil {
			plain = rows[slices.Index(writeNames, "topic")].redis
		}
		report.Rows = append(report.Rows, rows[i].row(name, plain))
	}
	return report, nil
}

// classTiers has classes, and no super-hot boards.
type classTiers struct{ file *rooms.File }

func (t classTiers) File() *rooms.File                             { return t.file }
func (t classTiers) Mode(rankcache.BoardID, string) (m rooms.Mode) { return m }
func (t classTiers) Boards(rooms.Mode) []rankcache.BoardID         { return nil }

// startWriter starts a writer and returns what stops it.
func (b *writeBench) startWriter(ctx context.Context, kafka string) (stop func() error, err error) {
	file, err := rooms.Parse([]byte(writeClasses))
	if err != nil {
		return nil, err
	}
	w, err := writer.New(writer.Options{Redis: b.redis, Names: wire.DefaultNames(), Tiers: classTiers{file}, Group: "bench-write",
		Topics: writer.Topics{CommandPartitions: 1}, Kafka: map[string]string{"bootstrap.servers": kafka, "auto.offset.reset": "earliest"}})
	if err != nil {
		return nil, err
	}
	b.posts = w.Handler()
	if b.topic, err = newWriteTopic(kafka, b.redis); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		b.topic.client.Close()
		return <-ended
	}, nil
}

// makeCommands returns n commands, each of another member than the one before; of topic-three
// each for three boards.
func (b *writeBench) makeCommands(class string, n int) (commands [][]byte) {
	boards := 1
	if class == "topic-three" {
		boards = 3
	}
	for range n {
		for x := range boards {
			commands = append(commands, fmt.Appendf(nil, `{"order":"order-%09d","class":%q,"dims":{"x":"%d"},"member":%q,"op":"incr","delta":%d}`,
				b.orders, class, x+1, benchMember(b.orders*7919%b.members), 1+b.orders*104_729%1_000_000)) // few have the same score
		}
		b.orders++
	}
	return commands
}

// change applies n commands, rounded up to whole posts.
func (b *writeBench) change(ctx context.Context, class string, n int) error {
	n = (n + writeBatch - 1) / writeBatch * writeBatch
	commands := b.makeCommands(class, n)
	if boards := writeBoards[class]; boards != nil {
		return b.topic.send(ctx, commands, n, boards)
	}
	var bodies [][]byte
	for batch := range slices.Chunk(commands, writeBatch) {
		bodies = append(bodies, slices.Concat([]byte(`{"commands":[`), bytes.Join(batch, []byte(",")), []byte("]}")))
	}
	return b.send(bodies)
}

// send posts the bodies, several at the same time. The error is that a command was not
// applied.
func (b *writeBench) send(bodies [][]byte) error {
	errs := make([]error, writePosters)
	var posters sync.WaitGroup
	for p := range writePosters {
		posters.Go(func() {
			for i := p; i < len(bodies) && errs[p] == nil; i += writePosters {
				errs[p] = b.post(bodies[i])
			}
		})
	}
	posters.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *writeBench) post(body []byte) error {
	r := httptest.NewRequest(http.MethodPost, "/v1/scores:batch", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	b.posts.ServeHTTP(answer, r)
	if n := bytes.Count(answer.Body.Bytes(), []byte(`"duplicate":false`)); n != writeBatch {
		return fmt.Errorf("%d of %d commands were applied: %d %.200s", n, writeBatch, answer.Code, answer.Body)
	}
	return nil
}

// writeRounds are the figures of one row, a value for each round.
type writeRounds struct{ redis, writer, rate, bytes []float64 }

func (b *writeBench) round(ctx context.Context, class string, r *writeRounds) error {
	n := float64((b.commands + writeBatch - 1) / writeBatch * writeBatch)
	before, err := b.usage(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := b.change(ctx, class, b.commands); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := b.usage(ctx)
	r.redis = append(r.redis, (after.redis-before.redis)*1e6/n)
	r.writer = append(r.writer, (after.own-before.own)*1e6/n)
	r.rate = append(r.rate, n/took.Seconds())
	r.bytes = append(r.bytes, (after.memory-before.memory)/n)
	return err
}

// usage is CPU time in seconds, and Redis's memory.
type usage struct{ redis, own, memory float64 }

func (b *writeBench) usage(ctx context.Context) (u usage, err error) {
	info, err := b.redis.InfoMap(ctx, "cpu", "memory").Result()
	if err != nil {
		return u, err
	}
	for _, f := range []struct {
		section, key string
		to           *float64
	}{{"CPU", "used_cpu_user", &u.redis}, {"CPU", "used_cpu_sys", &u.redis}, {"Memory", "used_memory", &u.memory}} {
		n, err := strconv.ParseFloat(info[f.section][f.key], 64)
		if err != nil {
			return u, fmt.Errorf("INFO of Redis: %s: %w", f.key, err)
		}
		*f.to += n
	}
	var own syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	u.own = time.Duration(own.Utime.Nano() + own.Stime.Nano()).Seconds()
	return u, err
}

// row returns the medians; plain is what commands cost Redis in each round without class
// settings.
func (r *writeRounds) row(name string, plain []float64) writeRow {
	ratios := make([]float64, len(r.redis))
	sum := 0.0
	for i := range ratios {
		ratios[i] = r.redis[i] / plain[i]
		sum += r.bytes[i]
	}
	return writeRow{Name: strings.ReplaceAll(name, "-", "+"), RedisCPU: median(slices.Clone(r.redis)), WriterCPU: median(r.writer), Commands: median(r.rate),
		OrderBytes: sum / float64(len(r.bytes)), Ratio: median(ratios)}
}

func (r *writeReport) print(to io.Writer) error {
	fmt.Fprintf(to, "%d members, medians of %d rounds\n%-12s %12s %9s %13s %11s %11s\n", r.Members, r.Rounds,
		"row", "redis us", "to plain", "writer us", "commands/s", "B an order")
	for _, row := range r.Rows {
		if _, err := fmt.Fprintf(to, "%-12s %12.2f %9.2f %13.2f %11.0f %11.0f\n", row.Name, row.RedisCPU, row.Ratio, row.WriterCPU, row.Commands, row.OrderBytes); err != nil {
			return err
		}
	}
	return nil
}
