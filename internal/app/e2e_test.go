package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/lab/compare"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/wire"
)

// TestNothingIsLostWhenWritersAreKilled is the promise of the whole system:
// commands go through two writers that are killed again and again, and at the
// end Redis has the sum of the commands, and so have a sidecar that ran all along and
// one that was started later.
func TestNothingIsLostWhenWritersAreKilled(t *testing.T) {
	testkit.FullOnly(t, "a million commands and 20 lives of writers")
	load := newCommandLoad(t, 210_000, 1_000_000)
	before := startListening(t, load.serveArgs()...)

	stopKilling := load.keepTwoWriters(t)
	load.produce(t)
	load.waitApplied(t, 20*time.Minute)
	load.waitCommitted(t, time.Minute) // an update that a killed writer owes comes with the repeat
	stopKilling()

	before.WaitReady(time.Minute)
	after := startListening(t, load.serveArgs()...)
	after.WaitReady(2 * time.Minute)

	load.checkRedis(t)
	for name, sidecar := range map[string]*child{"started before": before, "started after": after} {
		base := strings.TrimSuffix(sidecar.URL("data", ""), "/")
		rows, err := compare.Board(t.Context(), http.DefaultClient, base, load.board, load.origin, uint64(load.orders))
		if err != nil {
			t.Errorf("the sidecar %s differs after %d rows: %v", name, rows, err)
		} else if rows != len(load.want) {
			t.Errorf("the sidecar %s has %d rows, want %d", name, rows, len(load.want))
		}
	}
}

// writerKills is how often each writer is killed.
const writerKills = 10

// commandLoad is a board's commands and what they should make of it.
type commandLoad struct {
	board     rankcache.BoardID
	topic     string // of commands
	redisAddr string
	kafkaAddr string
	rooms     string
	client    *redis.Client
	origin    *origin.Origin
	commands  []loadCommand
	orders    int // distinct
	want      map[string]float64
}

// loadCommand is a command in the wire form of the contract, written here on
// purpose without the writer's own encoder.
type loadCommand struct {
	Order  string            `json:"order"`
	Board  rankcache.BoardID `json:"board"`
	Member string            `json:"member"`
	Op     string            `json:"op"`
	Delta  *float64          `json:"delta,omitempty"`
	Score  *float64          `json:"score,omitempty"`
	At     int64             `json:"at"`
}

func newCommandLoad(t *testing.T, members, commands int) *commandLoad {
	name := testkit.Name(t)
	l := &commandLoad{board: rankcache.BoardID(name), topic: testkit.Name(t), want: map[string]float64{},
		redisAddr: testkit.Redis(t), kafkaAddr: testkit.Kafka(t), rooms: filepath.Join(t.TempDir(), "rooms.yaml")}
	rooms := fmt.Sprintf("boards:\n- {match: %q, mode: super-hot}\n", l.board)
	if err := os.WriteFile(l.rooms, []byte(rooms), 0o644); err != nil {
		t.Fatal(err)
	}
	testkit.CreateTopic(t, l.kafkaAddr, l.topic, 4, nil)
	l.client = redis.NewClient(&redis.Options{Addr: l.redisAddr, Protocol: 2})
	t.Cleanup(func() { l.client.Close() })
	l.origin = origin.New(l.client, wire.DefaultNames(), origin.WithTimeout(5*time.Second))
	l.make(members, commands)
	return l
}

// make draws the commands. Each member's commands keep their order on the way
// (they share a partition), so what they add up to is known.
func (l *commandLoad) make(members, commands int) {
	rng := rand.New(rand.NewPCG(7, uint64(commands)))
	zipf := rand.NewZipf(rng, 1.1, 20, uint64(members-1))
	for len(l.commands) < commands {
		if n := len(l.commands); n > 100 && rng.IntN(100) < 3 { // a repeat of one of the last
			l.commands = append(l.commands, l.commands[n-1-rng.IntN(100)])
			continue
		}
		member := zipf.Uint64()
		if l.orders < members {
			member = uint64(l.orders)
		}
		l.draw(rng, fmt.Sprint(5_000_000+member))
	}
}

func (l *commandLoad) draw(rng *rand.Rand, member string) {
	l.orders++
	c := loadCommand{Order: fmt.Sprintf("o%d", l.orders), Board: l.board, Member: member, At: time.Now().UnixMilli()}
	amount := float64(rng.IntN(1000))
	switch dice := rng.IntN(100); {
	case dice < 94:
		c.Op, c.Delta = "incr", &amount
		l.want[member] += amount
	case dice < 98:
		c.Op, c.Score = "set", &amount
		l.want[member] = amount
	default:
		c.Op = "delete"
		delete(l.want, member)
	}
	l.commands = append(l.commands, c)
}

func (l *commandLoad) commonArgs() []string {
	return []string{"--redis", "redis://" + l.redisAddr, "--kafka", l.kafkaAddr, "--rooms", l.rooms,
		"--topic-commands", l.topic, "--redis-timeout", "2s", "--key-rooms", l.topic + ":rooms"}
}

func (l *commandLoad) serveArgs() []string {
	return append([]string{"serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--drain", "0s", "--give-up-after", "5m"}, l.commonArgs()...)
}

func (l *commandLoad) writeArgs() []string {
	return append([]string{"write", "--scores", "", "--health", "127.0.0.1:0", "--group", l.topic,
		"--kafka.session.timeout.ms=6000"}, l.commonArgs()...)
}

// keepTwoWriters runs two writers, each killed with SIGKILL at random moments
// and started again, until the returned function is called.
func (l *commandLoad) keepTwoWriters(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 11))
			for kills := 0; ctx.Err() == nil; kills++ {
				w := startChild(t, l.writeArgs()...)
				life := time.Duration(2000+rng.IntN(6000)) * time.Millisecond
				if kills >= writerKills {
					life = time.Hour // enough killing; let it finish
				}
				select {
				case <-ctx.Done():
				case <-w.Done():
					t.Errorf("writer %d ended by itself: %s", i, w.Log())
					return
				case <-time.After(life):
				}
				w.Kill()
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

func (l *commandLoad) produce(t *testing.T) {
	t.Helper()
	client := testkit.KafkaClient(t, l.kafkaAddr, kgo.DefaultProduceTopic(l.topic))
	for i := range l.commands {
		value, err := json.Marshal(l.commands[i])
		if err != nil {
			t.Fatal(err)
		}
		client.Produce(t.Context(), &kgo.Record{Key: []byte(l.commands[i].Member), Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	if err := client.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// waitApplied waits until Redis has counted every distinct order.
func (l *commandLoad) waitApplied(t *testing.T, atMost time.Duration) {
	t.Helper()
	testkit.Eventually(t, atMost, func() error {
		if seq := applied(t, l.client, l.board); seq != l.orders {
			return fmt.Errorf("Redis has counted %d orders of %d", seq, l.orders)
		}
		return nil
	})
}

// applied returns the seq that Redis has of the board; 0 if there is none.
func applied(t *testing.T, client redis.Cmdable, board rankcache.BoardID) int {
	t.Helper()
	value, err := client.Get(t.Context(), wire.DefaultNames().MetaKey(board)).Result()
	if errors.Is(err, redis.Nil) {
		return 0
	}
	must(t, err)
	m, err := wire.ParseMeta(value)
	must(t, err)
	return int(m.Seq)
}

// waitCommitted waits until the writers' group has committed every command.
func (l *commandLoad) waitCommitted(t *testing.T, atMost time.Duration) {
	t.Helper()
	cl := testkit.KafkaClient(t, l.kafkaAddr)
	testkit.Eventually(t, atMost, func() error {
		if n, err := testkit.Committed(t.Context(), cl, l.topic, l.topic, 4); err != nil || n != int64(len(l.commands)) {
			return fmt.Errorf("%d commands of %d are committed, %v", n, len(l.commands), err)
		}
		return nil
	})
}

func (l *commandLoad) checkRedis(t *testing.T) {
	t.Helper()
	rows, err := l.client.ZRangeWithScores(t.Context(), string(l.board), 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(l.want) {
		t.Fatalf("Redis has %d members, want %d", len(rows), len(l.want))
	}
	for _, row := range rows {
		if want, ok := l.want[row.Member.(string)]; !ok || row.Score != want {
			t.Fatalf("Redis has %v with %v, want %v (%v)", row.Member, row.Score, want, ok)
		}
	}
}
