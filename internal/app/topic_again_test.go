package app

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/testkit"
)

// TestCommandTopicIsMadeAgain: the command topic is deleted and made again while a writer without durable classes is
// frozen, with more commands than it had read: all of them are applied, whether or not its group has noticed.
func TestCommandTopicIsMadeAgain(t *testing.T) {
	for name, await := range map[string]func(w *frozenWriter, t *testing.T){
		"briefly":                 func(*frozenWriter, *testing.T) {},
		"longer than its session": (*frozenWriter).awaitNoMember,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFrozenWriter(t)
			const before, after = 50, 200
			w.produce(t, "before", before)
			w.await(t, before)
			w.Signal(syscall.SIGSTOP)
			testkit.DeleteTopic(t, w.kafka, w.topic)
			w.produce(t, "after", after)
			await(w, t)
			w.Signal(syscall.SIGCONT)
			w.await(t, before+after)
			testkit.Eventually(t, 30*time.Second, func() error { // the other partition may be empty, and looked at later
				if n := w.series(t, "rankcache_write_replaced_partitions_total"); n != 2 {
					return fmt.Errorf("the metrics tell of %v partitions of another topic, want 2", n)
				}
				return nil
			})
		})
	}
}

// frozenWriter is a writer that a test stops for a time.
type frozenWriter struct {
	*child
	kafka, topic, board string
	redis               *redis.Client
}

func newFrozenWriter(t *testing.T) *frozenWriter {
	name := testkit.Name(t)
	w := &frozenWriter{kafka: testkit.RealKafka(t), topic: name, board: name, redis: redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})}
	t.Cleanup(func() { w.redis.Close() })
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.child = startListening(t, "write", "--scores", "", "--health", "127.0.0.1:0", "--group", name, "--kafka.session.timeout.ms=6000",
		"--redis", "redis://"+testkit.Redis(t), "--kafka", w.kafka, "--rooms", file, "--topic-commands", w.topic, "--key-rooms", name+":rooms", "--key-ends", name+":ends")
	return w
}

// produce makes the topic and writes increments.
func (w *frozenWriter) produce(t *testing.T, order string, n int) {
	t.Helper()
	testkit.CreateTopic(t, w.kafka, w.topic, 2, nil)
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: w.topic, Key: fmt.Append(nil, i), Value: fmt.Appendf(nil,
			`{"order":"%s%d","board":%q,"member":"m%d","op":"incr","delta":1,"at":%d}`, order, i, w.board, i%7, time.Now().UnixMilli())}
	}
	testkit.Produce(t, w.kafka, records...)
}

// await waits until the board has had n increments.
func (w *frozenWriter) await(t *testing.T, n int) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		members, err := w.redis.ZRangeWithScores(t.Context(), w.board, 0, -1).Result()
		sum := 0.0
		for _, m := range members {
			sum += m.Score
		}
		if err == nil && sum != float64(n) {
			err = fmt.Errorf("%v increments are applied, want %d", sum, n)
		}
		return err
	})
}

// awaitNoMember waits until the group has given the writer up.
func (w *frozenWriter) awaitNoMember(t *testing.T) {
	client := testkit.KafkaClient(t, w.kafka)
	testkit.Eventually(t, time.Minute, func() error {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{w.topic}
		resp, err := req.RequestWith(t.Context(), client)
		if err == nil && resp.Groups[0].State != "Empty" && resp.Groups[0].State != "Dead" {
			err = fmt.Errorf("the group is %s", resp.Groups[0].State)
		}
		return err
	})
}
