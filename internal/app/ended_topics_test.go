package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/class"
	"rankcache/controller"
	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/run"
	"rankcache/internal/serve"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// ending is a writer, a sidecar and two controllers that lead at the same time, with boards of
// a class with short periods, and boards without class.
type ending struct {
	t           *testing.T
	n           int // boards of each kind
	name        string
	rooms       string
	ledger      bool // the class has one, and ranks ties
	kafka       string
	redis       *redis.Client
	writer      *run.Writer
	sidecar     *serve.Sidecar
	notices     notices
	ahead       atomic.Int64 // how far the controllers' clock is, in ns
	controllers []*controller.Controller
	commands    []string            // of the class, as they were posted
	boards      []rankcache.BoardID // of the class
}

// notices are the lines that a sidecar logs, from warnings on.
type notices struct {
	mu    sync.Mutex
	lines []string
}

func (n *notices) Write(line []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, string(line))
	return len(line), nil
}

func (n *notices) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	n.lines = nil
	return lines
}

// TestEndedBoardsLeaveNothing has boards be born and end: no topic, no key and no memory is left
// of them, the sidecar notices nothing, and late repeats make none of them again.
func TestEndedBoardsLeaveNothing(t *testing.T) {
	n := testkit.Sized(10, 250)
	t.Parallel()
	e := newEnding(t, n)
	e.nameBoards(true)
	e.bear()
	refills := e.refills()
	e.notices.take()

	e.waitClosed()
	e.nameBoards(false)
	e.eventually("boards in memory", func() int { return len(e.sidecar.Local.All()) })
	e.expire()
	e.eventually("topics that no look has found absent", func() int {
		return n - int(e.redis.HLen(t.Context(), wire.DefaultNames().AbsentTopics).Val())
	})
	e.ahead.Store(int64(49 * time.Hour)) // after the end of the topics' date in every zone, and --topic-keep
	e.eventually("topics", func() int {
		e.ahead.Add(int64(time.Hour)) // a look that began before the boards expired may have begun the wait anew
		return len(e.topics())
	})

	e.checkRepeats(http.StatusUnprocessableEntity, `"late"`)
	e.checkNothingLeft()
	if got := e.refills(); got != refills {
		t.Errorf("%v refills, before the end %v", got, refills)
	}
	for _, line := range e.notices.take() {
		if !strings.Contains(line, "Unknown topic or partition") { // a topic that was deleted while the sidecar looked at it
			t.Error("the sidecar logs", line)
		}
	}
	for _, c := range e.controllers {
		if s := c.Status(); !s.Leading || s.Error != "" || s.Closing != 0 {
			t.Errorf("controller: %+v", s)
		}
	}
}

// newEnding starts the processes. With settings of the controllers for finals the class has
// a ledger.
func newEnding(t *testing.T, n int, finals ...string) *ending {
	e := &ending{t: t, n: n, ledger: len(finals) > 0, name: strings.ToLower(testkit.Name(t)), rooms: filepath.Join(t.TempDir(), "rooms.yaml")}
	e.kafka = testkit.Kfake(t).Addr()
	if testkit.Full() {
		e.kafka = testkit.RealKafka(t)
	}
	e.name = "e" + e.name[len(e.name)-8:]
	server := testkit.StartRedis(t, servers.RedisOptions{})
	e.redis = redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	t.Cleanup(func() { e.redis.Close() })
	e.nameBoards(false)
	// A thousand boards, two consumers and a broker on one machine: calls to Redis take longer than they may by default, and the sidecar would say so.
	common := []string{"--redis", "redis://" + server.Addr(), "--redis-timeout", "10s", "--kafka", e.kafka, "--rooms", e.rooms, "--topic-commands", e.name + "-commands",
		"--topic-refused", e.name + "-refused", "--topic-updates", e.name + "_", "--topic-class-updates", e.name + "-class-", "--topic-ledger", e.name + "-ledger",
		"--topic-finals", e.name + "-finals", "--health", "127.0.0.1:0"}
	shortPeriods := func(data []byte) (*rooms.File, error) {
		return rooms.ParseWith(data, func(_, tz string) (class.Calendar, error) { return class.PartsOfDay(2*time.Second, tz) })
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	var err error
	e.writer, err = run.NewWriter(append([]string{"--scores", "127.0.0.1:0", "--group", e.name, "--command-partitions", "2", "--drain", "0s"}, common...), shortPeriods, log)
	must(t, err)
	e.sidecar, err = serve.NewSidecar(append([]string{"--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain", "0s"}, common...), shortPeriods,
		slog.New(slog.NewTextHandler(&e.notices, &slog.HandlerOptions{Level: slog.LevelWarn})))
	must(t, err)
	e.background(e.writer.Run)
	e.background(e.sidecar.Run)
	ids := []string{"a", "b"}
	if e.ledger {
		ids = ids[:1] // two would publish some finals twice
	}
	for _, id := range ids {
		o := &run.ControllerOptions{Every: 50 * time.Millisecond, Posts: 50 * time.Millisecond}
		must(t, cli.ParseArgs("controller", o, append([]string{"--group", e.name, "--controller-id", id, "--key-controller", "rankcache:controller:" + id, "--topic-keep", "24h"}, append(finals, common...)...)))
		o.ParseRooms, o.Now = shortPeriods, func() time.Time { return time.Now().Add(time.Duration(e.ahead.Load())) }
		books, err := o.Ledger()
		must(t, err)
		if books != nil {
			t.Cleanup(func() { books.Close() })
		}
		follower, c, err := o.Build(e.redis, books, log, cli.NewRegistry())
		must(t, err)
		e.controllers = append(e.controllers, c)
		e.background(follower.Run)
		e.background(c.Run)
	}
	return e
}

// background runs a process until the end of the test.
func (e *ending) background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	e.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			e.t.Error(err)
		}
	})
}

// nameBoards writes a rooms file in which all boards are super-hot, or none is.
func (e *ending) nameBoards(superHot bool) {
	e.t.Helper()
	kind, host := "", ""
	ties := map[bool]string{true: "first", false: "member"}[e.ledger]
	if superHot {
		var zones, boards []string
		for i := range e.n {
			zones, boards = append(zones, fmt.Sprintf("%q", e.zone(i))), append(boards, fmt.Sprintf("%q", e.plain(i)))
		}
		kind = ", mode: super-hot, lead: 0s, dims: {zone: [" + strings.Join(zones, ", ") + "]}"
		host = "rooms: [{uid: host, mode: super-hot, boards: [" + strings.Join(boards, ", ") + "]}]\n"
	}
	split := ""
	if e.ledger {
		split = fmt.Sprintf(", {name: wide, board: %q, period: 1m, grace: 1s, keep: 1h, ledger: true, shards: 4}", e.name+"-wide:{period}")
	}
	text := fmt.Sprintf("%sclasses: [{name: gift, board: %q, period: 1m, grace: 1s, keep: 1h, ledger: %v, data: %v, ties: %s%s}%s]", host, e.name+":{zone}:{period}", e.ledger, e.ledger, ties, kind, split)
	must(e.t, os.WriteFile(e.rooms+".new", []byte(text), 0o644))
	must(e.t, os.Rename(e.rooms+".new", e.rooms))
}

func (e *ending) zone(i int) string { return fmt.Sprint("z", i) }

func (e *ending) plain(i int) rankcache.BoardID {
	return rankcache.BoardID(fmt.Sprintf("%s:plain.%d", e.name, i))
}

func (e *ending) eventually(what string, left func() int) {
	e.t.Helper()
	testkit.Eventually(e.t, 3*time.Minute, func() error {
		if n := left(); n > 0 {
			return fmt.Errorf("%d %s", n, what)
		}
		return nil
	})
}

// bear posts a command for each board, and waits until the sidecar has those without class.
func (e *ending) bear() {
	e.t.Helper()
	e.eventually("writers that do not know the boards", func() int {
		return 1 - len(e.writer.Rooms.File().Rooms)
	})
	for i := range e.n {
		status, answer := e.post(fmt.Sprintf(`{"order":"p%d","board":%q,"member":"m","op":"incr","delta":1}`, i, e.plain(i)))
		if status != http.StatusOK {
			e.t.Fatalf("%d %s", status, answer)
		}
		command := ""
		for status = http.StatusUnprocessableEntity; status == http.StatusUnprocessableEntity; { // a busy machine may be late
			command = fmt.Sprintf(`{"order":"c%d","class":"gift","dims":{"zone":%q},"member":"m","op":"incr","delta":1,"at":%d}`, i, e.zone(i), time.Now().UnixMilli())
			status, answer = e.post(command)
		}
		var update struct{ Board rankcache.BoardID }
		if err := json.Unmarshal([]byte(answer), &update); status != http.StatusOK || err != nil {
			e.t.Fatalf("%d %s, %v", status, answer, err)
		}
		e.commands, e.boards = append(e.commands, command), append(e.boards, update.Board)
	}
	e.eventually("boards are not open", func() (n int) {
		for i := range e.n {
			if !(serve.OpenBoards{Boards: e.sidecar.Local}).IsOpen(e.plain(i)) {
				n++
			}
		}
		return n
	})
	if topics := e.topics(); len(topics) < e.n+1 {
		e.t.Errorf("topics %q", topics)
	}
}

// post posts a command. The writer's producer needs a moment at the start.
func (e *ending) post(command string) (status int, answer string) {
	e.t.Helper()
	e.eventually("posts are not answered", func() int {
		resp, err := http.Post("http://"+e.writer.Listeners.Addr("scores")+"/v1/scores", "application/json", strings.NewReader(command))
		must(e.t, err)
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		must(e.t, err)
		if status, answer = resp.StatusCode, string(data); status == http.StatusServiceUnavailable {
			return 1
		}
		return 0
	})
	return status, answer
}

// waitClosed waits until the boards of the class are closed, and checks when they expire, and
// that a repeat is answered.
func (e *ending) waitClosed() {
	e.t.Helper()
	names := wire.DefaultNames()
	for _, b := range e.boards {
		var m wire.Meta
		e.eventually("boards are not closed", func() int {
			var err error
			m, err = wire.ParseMeta(e.redis.Get(e.t.Context(), names.MetaKey(b)).Val())
			must(e.t, err)
			return int(wire.LifeClosed) - int(m.Life)
		})
		for _, key := range []string{names.BoardKey(b), names.MetaKey(b), names.OrdersKey(b, 0, 0)} {
			at := e.redis.PExpireTime(e.t.Context(), key).Val().Milliseconds()
			if want := m.End + uint64(time.Hour.Milliseconds()); at != int64(want) || m.Expires != want {
				e.t.Errorf("%s expires at %d, meta %+v", key, at, m)
			}
		}
	}
	e.eventually("boards in the index", func() int { return int(e.redis.ZCard(e.t.Context(), names.Ends).Val()) })
	e.checkRepeats(http.StatusOK, `"duplicate":true`)
}

// checkRepeats posts the commands of the class again.
func (e *ending) checkRepeats(status int, has string) {
	e.t.Helper()
	for _, command := range e.commands {
		if got, answer := e.post(command); got != status || !strings.Contains(answer, has) {
			e.t.Fatalf("repeat: %d %s", got, answer)
		}
	}
}

// expire has all keys of boards go, as Redis does at the time that was checked.
func (e *ending) expire() {
	e.t.Helper()
	for _, key := range e.redis.Keys(e.t.Context(), "*"+e.name+":*").Val() {
		must(e.t, e.redis.Unlink(e.t.Context(), key).Err())
	}
}

// topics returns the topics of boards.
func (e *ending) topics() (names []string) {
	md, err := kmsg.NewPtrMetadataRequest().RequestWith(e.t.Context(), testkit.KafkaClient(e.t, e.kafka))
	must(e.t, err)
	for _, topic := range md.Topics {
		if name := *topic.Topic; strings.HasPrefix(name, e.name+"_") || strings.HasPrefix(name, e.name+"-class-") {
			names = append(names, name)
		}
	}
	return names
}

func (e *ending) checkNothingLeft() {
	e.t.Helper()
	if topics := e.topics(); len(topics) > 0 {
		e.t.Errorf("topics %q", topics)
	}
	e.eventually("keys", func() int { // the controller forgets which topics were absent once they are gone
		keys := slices.DeleteFunc(e.redis.Keys(e.t.Context(), "*").Val(), func(key string) bool { return strings.HasPrefix(key, "rankcache:controller:") })
		return len(keys)
	})
	if left := e.sidecar.Local.All(); len(left) > 0 {
		e.t.Errorf("%d boards in memory", len(left))
	}
}

// refills returns how often the sidecar has filled a board again.
func (e *ending) refills() (n float64) {
	e.t.Helper()
	families, err := e.sidecar.Registry.Gather()
	must(e.t, err)
	for _, f := range families {
		if f.GetName() == "rankcache_replay_refills_total" {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}
