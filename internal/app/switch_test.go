package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/class"
	"rankcache/internal/lab/servers"
	"rankcache/internal/run"
	"rankcache/internal/serve"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

// switchShow is a sidecar and a writer of a super-hot class with short periods, commands
// and reads of its running board.
type switchShow struct {
	t        *testing.T
	redis    *servers.Redis
	sidecar  *serve.Sidecar
	kind     *class.Class
	topic    string // of commands
	kafka    string
	common   []string                          // arguments of all processes
	periodic func([]byte) (*rooms.File, error) // parses rooms files

	mu       sync.Mutex
	commands map[string]int           // by tag
	periods  map[string]*switchPeriod // by tag
	failed   []string
}

// switchPeriod is how one period's board was read.
type switchPeriod struct {
	reads, local int
	seq          uint64 // the highest in an answer
	// Of the reads that were not answered from local memory, the first and the last.
	first, last time.Time
}

// TestSwitch reads the running board of a class while one period follows the other: no read
// fails, the next board is open when it begins, and each command is in the board of its period.
func TestSwitch(t *testing.T) {
	period, switches := 2*time.Second, 2
	if testkit.Full() {
		period, switches = 5*time.Second, 6
	}
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		s := newSwitchShow(t, period, "grace: 2s")
		s.run(time.Duration(switches)*period, nil)
	})
	t.Run("Redis is away", func(t *testing.T) {
		testkit.FullOnly(t, "takes half a minute")
		t.Parallel()
		s := newSwitchShow(t, 12*time.Second, "grace: 2s")
		running, err := s.kind.Calendar().At(time.Now())
		must(t, err)
		time.Sleep(time.Until(running.End))
		s.run(15*time.Second, func(ctx context.Context) {
			time.Sleep(3 * time.Second) // the next board is open
			must(t, s.redis.Kill())
			time.Sleep(10 * time.Second)
			must(t, s.redis.Restart(ctx))
		})
	})
}

// newSwitchShow starts the servers and waits until the running board is open and commands are applied.
func newSwitchShow(t *testing.T, period time.Duration, settings string) *switchShow {
	name := testkit.Name(t)
	s := &switchShow{t: t, topic: name, kafka: testkit.Kafka(t), commands: make(map[string]int), periods: make(map[string]*switchPeriod)}
	s.redis = testkit.StartRedis(t, servers.RedisOptions{Dir: t.TempDir(), Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	path := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(path, fmt.Appendf(nil, `classes: [{name: gift, board: "%s:{zone}:{period}", period: %s, lead: %s, %s, mode: super-hot, dims: {zone: ["7"]}}]`,
		name[len(name)-8:], period, period, settings), 0o644))
	s.periodic = func(data []byte) (*rooms.File, error) {
		return rooms.ParseWith(data, func(_, tz string) (class.Calendar, error) { return class.PartsOfDay(period, tz) })
	}
	s.common = []string{"--redis", "redis://" + s.redis.Addr(), "--kafka", s.kafka, "--rooms", path, "--topic-commands", name, "--topic-refused", name + "-refused",
		"--topic-class-updates", name + "-class-", "--health", "127.0.0.1:0"}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	writer, err := run.NewWriter(append([]string{"--scores", "", "--group", name, "--command-partitions", "1"}, s.common...), s.periodic, log)
	must(t, err)
	s.sidecar, err = serve.NewSidecar(append([]string{"--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain", "0s"}, s.common...), s.periodic, log)
	must(t, err)
	s.kind = s.sidecar.Rooms.File().Class("gift").Class
	s.background(writer.Run)
	s.background(s.sidecar.Run)
	testkit.Eventually(t, time.Minute, func() error {
		if b := s.board(time.Now()); !(serve.OpenBoards{Boards: s.sidecar.Local}).IsOpen(b.ID) {
			return fmt.Errorf("%s is not open", b.ID)
		}
		return nil
	})
	s.awaitWriter()
	return s
}

// background runs a process until the end of the test.
func (s *switchShow) background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

func (s *switchShow) board(at time.Time) class.Board {
	b, err := s.kind.At(map[string]string{"zone": "7"}, at)
	must(s.t, err)
	return b
}

const (
	switchCommands = 500 // a second
	switchReads    = 2000
	switchReaders  = 4
)

// run sends commands and reads for a time, while do disturbs, and checks what has become of
// them. Without do, each board is read with its commands.
func (s *switchShow) run(d time.Duration, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { s.send(ctx) })
	for range switchReaders {
		all.Go(func() { s.read(ctx) })
	}
	if do != nil {
		do(s.t.Context())
	}
	all.Wait()
	s.checkReads(do == nil)
	s.checkCommands()
}

// pace calls do n times a second until ctx ends.
func pace(ctx context.Context, n int, do func(i int)) {
	begin := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(n))))
		do(i)
	}
}

func (s *switchShow) send(ctx context.Context) {
	client := testkit.KafkaClient(s.t, s.kafka, kgo.DefaultProduceTopic(s.topic), kgo.ProducerLinger(0))
	pace(ctx, switchCommands, func(i int) { s.command(client, i) })
	must(s.t, client.Flush(context.Background()))
}

// command sends a command for the running board, and returns that.
func (s *switchShow) command(client *kgo.Client, i int) class.Board {
	at := time.Now()
	board := s.board(at)
	s.mu.Lock()
	s.commands[board.Period.Tag]++
	s.mu.Unlock()
	value := fmt.Appendf(nil, `{"order":"o%d","class":"gift","dims":{"zone":"7"},"member":"m%d","op":"incr","delta":1,"at":%d}`, i, (i+1000)%1000, at.UnixMilli())
	client.Produce(context.Background(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
		if err != nil {
			s.t.Errorf("produce: %v", err)
		}
	})
	return board
}

// awaitWriter waits until the writer applies commands.
func (s *switchShow) awaitWriter() {
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr(), Protocol: 2})
	defer client.Close()
	first := s.command(testkit.KafkaClient(s.t, s.kafka, kgo.DefaultProduceTopic(s.topic)), -1)
	testkit.Eventually(s.t, time.Minute, func() error {
		if n, err := client.Exists(s.t.Context(), string(first.ID)).Result(); n == 0 || err != nil {
			return fmt.Errorf("%s is not in Redis: %v", first.ID, err)
		}
		return nil
	})
}

func (s *switchShow) read(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	url := "http://" + s.sidecar.Addr("data") + "/v1/classes/gift/top?zone=7&limit=50"
	pace(ctx, switchReads/switchReaders, func(int) {
		page, err := readClass(client, url)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.failed = append(s.failed, err.Error())
			return
		}
		p := s.periods[page.Period.Tag]
		if p == nil {
			p = &switchPeriod{}
			s.periods[page.Period.Tag] = p
		}
		p.reads++
		p.seq = max(p.seq, page.Seq)
		switch now := time.Now(); {
		case page.Source == "local":
			p.local++
		case p.first.IsZero():
			p.first, p.last = now, now
		default:
			p.last = now
		}
	})
}

// classPage is what is looked at of an answer.
type classPage struct {
	Source, Locked string
	Seq            uint64
	Period         struct{ Tag string }
	Entries        []struct {
		Member string
		Score  float64
	}
}

func readClass(client *http.Client, url string) (page classPage, err error) {
	resp, err := client.Get(url)
	if err != nil {
		return page, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(body, &page)
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return page, err
}

// maxFromRedis is how long reads of a super-hot board may be answered by Redis.
const maxFromRedis = time.Second

// hardlyBegun is how many commands a period at the end of a run may have that readers have
// not seen.
const hardlyBegun = switchCommands / 5

func (s *switchShow) checkReads(undisturbed bool) {
	if len(s.failed) > 0 {
		s.t.Errorf("%d reads failed, the first: %s", len(s.failed), s.failed[0])
	}
	for _, tag := range slices.Sorted(maps.Keys(s.periods)) {
		p := s.periods[tag]
		took := p.last.Sub(p.first)
		s.t.Logf("period %s: %d reads, %d not local within %v; %d commands, read up to %d", tag, p.reads, p.reads-p.local, took, s.commands[tag], p.seq)
		unseen := p.seq == 0 && undisturbed && s.commands[tag] > hardlyBegun
		if p.local == 0 || unseen || testkit.Full() && took > maxFromRedis {
			s.t.Errorf("period %s: of %d reads %d were local, the others within %v", tag, p.reads, p.local, took)
		}
	}
}

// checkCommands waits until each period's board has all commands of the period and no other.
func (s *switchShow) checkCommands() {
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr(), Protocol: 2})
	defer client.Close()
	for tag, want := range s.commands {
		p, err := s.kind.Calendar().Parse(tag)
		must(s.t, err)
		testkit.Eventually(s.t, time.Minute, func() error {
			sum := 0.0
			rows, err := client.ZRangeWithScores(s.t.Context(), string(s.board(p.Start).ID), 0, -1).Result()
			for _, row := range rows {
				sum += row.Score
			}
			if err != nil || int(sum) != want {
				return fmt.Errorf("the board of period %s has %v commands, want %d: %v", tag, sum, want, err)
			}
			return nil
		})
	}
}
