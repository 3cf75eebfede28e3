package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	only                      string
	progress                  io.Writer
	redis                     *redis.Client
	posts                     http.Handler
	topic                     *writeTopic
	orders                    int // order ids given so far
	bare                      atomic.Int64
}

// writeRow is the stable JSON of one kind of class: medians over the rounds.
type writeRow struct {
	Name       string  `json:"name"`
	RedisCPU   float64 `json:"redis_cpu_us"`  // a command
	WriterCPU  float64 `json:"writer_cpu_us"` // a command, decoding the post and encoding its answer included
	Commands   float64 `json:"commands_per_s"`
	OrderBytes float64 `json:"order_bytes"`     // Redis's memory for each order id, mean of all rounds
	Of         string  `json:"ratio_to"`        // the row that the ratios are to
	Ratio      float64 `json:"redis_cpu_ratio"` // median of the rounds' ratios
	OwnRatio   float64 `json:"writer_cpu_ratio"`
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
  - {name: gain, board: "gain_{x}", period: none, ops: [incr], guard: {gain: 1000000000000000/1h, action: refuse}}
  - {name: data, board: "data_{x}", period: none, data: true}
  - {name: trim, board: "trim_{x}", period: none, ops: [incr], trim: 10000}
  - {name: durable, board: "durable_{x}", period: none, ops: [incr], durable: true}
  - {name: ordered, board: "ordered_{x}", period: none, durable: true}
  - {name: topic, board: "topic_{x}", period: none}
  - {name: topic-durable, board: "topicdurable_{x}", period: none, ops: [incr], durable: true}
  - {name: topic-ordered, board: "topicordered_{x}", period: none, durable: true}
  - {name: singles, board: "singles_{x}", period: none, ops: [incr]}
  - {name: singles-durable, board: "singlesdurable_{x}", period: none, ops: [incr], durable: true}
  - {name: topic-three, board: "three_{x}", period: none}
  - {name: feeds3, board: "feeds_{x}", period: none, ops: [incr], feeds: [fed-one, fed-two]}
  - {name: fed-one, board: "fedone_{x}", period: none}
  - {name: fed-two, board: "fedtwo_{x}", period: none}
  - {name: groups, board: "groups_{x}", period: none, ops: [incr], feeds: [{class: guilds, by: guild}]}
  - {name: guilds, board: "guilds_{x}", period: none}
  - {name: rolling, board: "roll_{x}_{period}", period: year, ops: [incr], keep: 26352h}
  - {name: years, board: "years_{x}_{period}", rolling: {of: rolling, last: 2}}
`

// writeKind is how a row is measured: by posts, or by way of the command topic, as posts of a class with feeds are in
// it too.
type writeKind struct {
	name, of string              // of: the row that its ratios are to
	boards   []rankcache.BoardID // that are changed by way of the topic; nil: it is posted
	turns    bool                // each command changes one of them
	bare     bool                // ZINCRBY in pipelines, without a writer
}

// writeKinds are the rows. topic-three shows what three boards cost without feeds, singles what a call of the script
// with one command.
var writeKinds = []writeKind{
	{name: "zincrby", of: "zincrby", bare: true}, {name: "plain", of: "zincrby"},
	{name: "ties", of: "plain"}, {name: "ties-guards", of: "plain"}, {name: "gain", of: "plain"}, {name: "data", of: "plain"}, {name: "trim", of: "plain"},
	{name: "durable", of: "plain"}, {name: "ordered", of: "plain"},
	{name: "topic", of: "topic", boards: []rankcache.BoardID{"topic_1"}},
	{name: "topic-durable", of: "topic", boards: []rankcache.BoardID{"topicdurable_1"}},
	{name: "topic-ordered", of: "topic", boards: []rankcache.BoardID{"topicordered_1"}},
	{name: "topic-three", of: "topic", boards: []rankcache.BoardID{"three_1", "three_2", "three_3"}},
	{name: "feeds3", of: "topic", boards: []rankcache.BoardID{"feeds_1", "fedone_1", "fedtwo_1"}},
	{name: "groups", of: "topic", boards: []rankcache.BoardID{"groups_1", "guilds_1"}},
	{name: "rolling", of: "topic", boards: []rankcache.BoardID{yearOf("roll", 0), yearOf("years", 0), yearOf("years", 1)}},
	{name: "singles", of: "singles", boards: singleBoards("singles"), turns: true}, {name: "singles-durable", of: "singles", boards: singleBoards("singlesdurable"), turns: true},
}

// maxSingles boards are so many that a batch of the topic has one command of each.
const maxSingles = 1000

func singleBoards(prefix string) (boards []rankcache.BoardID) {
	for x := range maxSingles {
		boards = append(boards, rankcache.BoardID(fmt.Sprint(prefix, "_", x+1)))
	}
	return boards
}

// yearOf returns the board of this year or a later one.
func yearOf(name string, later int) rankcache.BoardID {
	return rankcache.BoardID(fmt.Sprintf("%s_1_%d", name, time.Now().UTC().Year()+later))
}

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
turns to a board of each kind of class: plain, which is compared with ZINCRBY in pipelines of as
many by as many clients, with ties, with ties and guards, with a limit on gain, with data (another one each time), one that
keeps the best 10,000 members, a durable one of increments, whose commands are also in
the command topic and read there (durable), and one whose posts wait for that (ordered).
Then by way of the command topic: to a plain board (topic), to a durable one of either
kind, to three plain boards in turns, three commands for one (topic+three), and to one
that feeds two others (feeds3), or one of 500 groups, or that a rolling class sums up (rolling), which are compared with the first; and to 1,000 boards in
turns (singles), plain and durable, so that a call of the script has one command.
Updates are not published. Needs a redis-server in PATH; the broker is kfake, in a process
of its own.`,
		Example: "  rankcache-lab bench write -o json\n  rankcache-lab bench write --members 1000 --rounds 3",
	}
	flags := cmd.Flags()
	flags.IntVar(&b.members, "members", 57_000, "members of each board")
	flags.IntVar(&b.commands, "commands", 20_000, "commands of a round, for each row")
	flags.IntVar(&b.rounds, "rounds", 15, "rounds of all rows in turns")
	flags.StringVar(&b.only, "only", "", "measure rows whose name matches this regular `expression`, and those that their ratios are to")
	return reporting(cmd, &b.progress, b.run, (*writeReport).print)
}

// kinds are the rows that are wanted, and those that their ratios are to.
func (b *writeBench) kinds() (kinds []writeKind, err error) {
	only, err := regexp.Compile(b.only)
	if err != nil {
		return nil, cli.Usagef("--only: %w", err)
	}
	needed := make(map[string]bool)
	for _, k := range slices.Backward(writeKinds) { // a row comes behind the one that its ratios are to, which has such a one, too
		if needed[k.name] || only.MatchString(k.name) {
			needed[k.name], needed[k.of] = true, true
		}
	}
	kinds = slices.DeleteFunc(slices.Clone(writeKinds), func(k writeKind) bool { return !needed[k.name] })
	if len(kinds) == 0 {
		return nil, cli.Usagef("--only %q leaves no row", b.only)
	}
	return kinds, nil
}

func (b *writeBench) run(ctx context.Context) (*writeReport, error) {
	if b.members < 1 || b.commands < writeBatch || b.rounds < 1 {
		return nil, cli.Usagef("want --members and --rounds of 1 or more, and --commands of %d or more", writeBatch)
	}
	kinds, err := b.kinds()
	if err != nil {
		return nil, err
	}
	server, err := servers.StartRedis(ctx, servers.RedisOptions{})
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	defer server.Close()
	b.redis = redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, PoolSize: 16})
	defer b.redis.Close()
	kafka, _, stopKafka, err := startBroker(ctx)
	if err != nil {
		return nil, err
	}
	defer stopKafka()
	stop, err := b.startWriter(ctx, kafka)
	if err != nil {
		return nil, err
	}
	defer stop()
	rows := make([]writeRounds, len(kinds))
	fmt.Fprintf(b.progress, "filling boards of %d rows with %d members\n", len(rows), b.members)
	for i := range kinds {
		if err := b.change(ctx, &kinds[i], b.members); err != nil {
			return nil, err
		}
	}
	for round := range b.rounds {
		for i := range kinds {
			i = (i + round) % len(kinds) // each is first at times
			if err := b.round(ctx, &kinds[i], &rows[i]); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(b.progress, "round %d of %d\n", round+1, b.rounds)
	}
	report := &writeReport{Members: b.members, Rounds: b.rounds}
	for i, kind := range kinds {
		of := slices.IndexFunc(kinds, func(k writeKind) bool { return k.name == kind.of })
		report.Rows = append(report.Rows, rows[i].row(&kind, &rows[of]))
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
	w, err := writer.New(writer.Options{Redis: b.redis, Names: wire.DefaultNames(), Tiers: classTiers{file}, Group: writeGroup,
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

// benchGroups is how many groups commands name.
const benchGroups = 500

// makeCommands returns n commands, each of another member than the one before; of topic-three
// each for three boards.
func (b *writeBench) makeCommands(kind *writeKind, n int) (commands [][]byte) {
	boards, with := 1, ""
	if kind.name == "topic-three" {
		boards = 3
	}
	for i := range n {
		for x := range boards {
			if kind.turns {
				x = i % len(kind.boards)
			}
			switch kind.name {
			case "groups":
				with = fmt.Sprintf(`"by":{"guild":"g%d"},`, b.orders%benchGroups)
			case "data":
				with = fmt.Sprintf(`"data":"replay-%09d",`, b.orders)
			}
			commands = append(commands, fmt.Appendf(nil, `{"order":"order-%09d","class":%q,"dims":{"x":"%d"},%s"member":%q,"op":"incr","delta":%d}`,
				b.orders, kind.name, x+1, with, benchMember(b.orders*7919%b.members), 1+b.orders*104_729%1_000_000)) // few have the same score
		}
		b.orders++
	}
	return commands
}

// change applies n commands, rounded up to whole posts.
func (b *writeBench) change(ctx context.Context, kind *writeKind, n int) error {
	n = (n + writeBatch - 1) / writeBatch * writeBatch
	if kind.bare {
		return b.inTurns(n/writeBatch, func(int) error { return b.zincrby(ctx) })
	}
	commands := b.makeCommands(kind, n)
	if kind.boards != nil {
		return b.topic.send(ctx, commands, n, kind)
	}
	var bodies [][]byte
	for batch := range slices.Chunk(commands, writeBatch) {
		bodies = append(bodies, slices.Concat([]byte(`{"commands":[`), bytes.Join(batch, []byte(",")), []byte("]}")))
	}
	return b.inTurns(len(bodies), func(i int) error { return b.post(bodies[i]) })
}

// zincrby increments members of a sorted set in one pipeline.
func (b *writeBench) zincrby(ctx context.Context) error {
	first := int(b.bare.Add(writeBatch))
	_, err := b.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range writeBatch {
			p.ZIncrBy(ctx, "zincrby", float64(1+(first+i)*104_729%1_000_000), benchMember((first+i)*7919%b.members))
		}
		return nil
	})
	return err
}

// inTurns does n things, several at the same time. The error is that of one of them.
func (b *writeBench) inTurns(n int, do func(i int) error) error {
	errs := make([]error, writePosters)
	var posters sync.WaitGroup
	for p := range writePosters {
		posters.Go(func() {
			for i := p; i < n && errs[p] == nil; i += writePosters {
				errs[p] = do(i)
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

func (b *writeBench) round(ctx context.Context, kind *writeKind, r *writeRounds) error {
	n := float64((b.commands + writeBatch - 1) / writeBatch * writeBatch)
	before, err := b.usage(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := b.change(ctx, kind, b.commands); err != nil {
		return err
	}
	took := time.Since(begin)
	if err := b.topic.awaitRead(ctx); err != nil { // posts of durable classes are in the topic
		return err
	}
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
	u.own = ownCPU().Seconds()
	return u, nil
}

// row returns the medians, and those of the ratios to another row's rounds.
func (r *writeRounds) row(kind *writeKind, of *writeRounds) writeRow {
	ratios, own := make([]float64, len(r.redis)), make([]float64, len(r.redis))
	sum := 0.0
	for i := range ratios {
		ratios[i], own[i] = r.redis[i]/of.redis[i], r.writer[i]/of.writer[i]
		sum += r.bytes[i]
	}
	name := func(s string) string { return strings.ReplaceAll(s, "-", "+") }
	return writeRow{Name: name(kind.name), RedisCPU: median(slices.Clone(r.redis)), WriterCPU: median(slices.Clone(r.writer)), Commands: median(r.rate),
		OrderBytes: sum / float64(len(r.bytes)), Of: name(kind.of), Ratio: median(ratios), OwnRatio: median(own)}
}

func (r *writeReport) print(to io.Writer) error {
	fmt.Fprintf(to, "%d members, medians of %d rounds\n%-15s %9s %6s %10s %6s %11s %11s  %s\n", r.Members, r.Rounds,
		"row", "redis us", "ratio", "writer us", "ratio", "commands/s", "B an order", "ratio to")
	for _, row := range r.Rows {
		if _, err := fmt.Fprintf(to, "%-15s %9.2f %6.2f %10.2f %6.2f %11.0f %11.0f  %s\n", row.Name, row.RedisCPU, row.Ratio, row.WriterCPU, row.OwnRatio, row.Commands, row.OrderBytes, row.Of); err != nil {
			return err
		}
	}
	return nil
}
