package app

import (
	"context"
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
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

const feedClasses = `
classes:
- {name: half, board: "half:{host}:{period}", period: 30m, grace: 1h, ops: [incr], feeds: [day, total]}
- {name: day, board: "day:{host}:{period}", period: day, grace: 1h, ops: [incr], feeds: [week, month, year]}
- {name: week, board: "week:{host}:{period}", period: week, grace: 1h}
- {name: month, board: "month:{host}:{period}", period: month, grace: 1h}
- {name: year, board: "year:{host}:{period}", period: year, grace: 1h}
- {name: total, board: "total:{host}", period: none}
`

// feedLoad are increments of a class with feeds, from Kafka and as posts.
type feedLoad struct {
	host string
	at   int64
	sent int // orders "o0" and so on

	mu       sync.Mutex
	scores   string // address of the running writer
	answered int    // posts
}

func (l *feedLoad) command(order string, i int) string {
	return fmt.Sprintf(`{"order":%q,"class":"half","dims":{"host":%q},"member":"m%d","op":"incr","delta":1,"at":%d}`, order, l.host, i%10, l.at)
}

// post posts increments until ctx ends, each again until it is answered.
func (l *feedLoad) post(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		for answered := false; !answered; {
			l.mu.Lock()
			to := l.scores
			l.mu.Unlock()
			resp, err := http.Post(to, "application/json", strings.NewReader(l.command(fmt.Sprint("p", i), i)))
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			answered = resp.StatusCode == http.StatusOK
			resp.Body.Close()
		}
		l.answered++
	}
}

// produce writes increments to Kafka until ctx ends.
func (l *feedLoad) produce(t *testing.T, ctx context.Context, topic string) {
	client := testkit.KafkaClient(t, testkit.Kafka(t), kgo.DefaultProduceTopic(topic))
	for ctx.Err() == nil {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Value: []byte(l.command(fmt.Sprint("o", l.sent), l.sent))}).FirstErr(); err != nil {
			t.Error("produce:", err)
			return
		}
		l.sent++
	}
}

// TestFeedsSurviveKilledWriters kills a writer 20 times while commands of a class with feeds come from
// Kafka and as posts: every board has each increment exactly once. Its sessions outlast the test, so the
// restarted writer goes on only because the group knows it.
func TestFeedsSurviveKilledWriters(t *testing.T) {
	testkit.FullOnly(t, "20 lives of a writer take half a minute")
	topic, at := testkit.Name(t), time.Now()
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(file, []byte(feedClasses), 0o644))
	testkit.CreateTopic(t, testkit.Kafka(t), topic, 2, map[string]string{"message.timestamp.type": "LogAppendTime"})
	load := &feedLoad{host: strings.NewReplacer("_", "", "-", "", ".", "").Replace(topic[max(0, len(topic)-20):]), at: at.UnixMilli()}
	start := func() *child {
		w := startListening(t, "write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--group", topic, "--group-instance", "writer-1",
			"--kafka.session.timeout.ms=300000", "--redis", "redis://"+testkit.Redis(t), "--kafka", testkit.Kafka(t), "--rooms", file, "--topic-commands", topic,
			"--topic-refused", topic+"_refused", "--key-rooms", topic+":rooms", "--redis-timeout", "2s", "--publish-all")
		load.mu.Lock()
		load.scores = w.URL("scores", "/v1/scores")
		load.mu.Unlock()
		return w
	}
	w := start()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { load.post(ctx) })
	all.Go(func() { load.produce(t, ctx, topic) })
	for range 20 {
		time.Sleep(300*time.Millisecond + time.Duration(rand.IntN(1500))*time.Millisecond)
		w.Kill()
		w = start()
	}
	stop()
	all.Wait()
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	defer client.Close()
	for _, board := range load.boards(t, at) {
		testkit.Eventually(t, time.Minute, func() error { return load.check(t, client, board) })
	}
	t.Logf("%d commands, %d posts", load.sent, load.answered)
}

// boards are those that each increment changes.
func (l *feedLoad) boards(t *testing.T, at time.Time) (boards []rankcache.BoardID) {
	t.Helper()
	file, err := rooms.Parse([]byte(feedClasses))
	must(t, err)
	for _, kind := range file.Classes {
		b, err := kind.At(map[string]string{"host": l.host}, at)
		must(t, err)
		boards = append(boards, b.ID)
	}
	return boards
}

// check compares a board with what was sent and answered.
func (l *feedLoad) check(t *testing.T, client *redis.Client, board rankcache.BoardID) error {
	want := map[string]float64{}
	for _, n := range []int{l.sent, l.answered} {
		for i := range n {
			want[fmt.Sprint("m", i%10)]++
		}
	}
	if n := applied(t, client, board); n != l.sent+l.answered {
		return fmt.Errorf("%s has %d changes, want %d and %d", board, n, l.sent, l.answered)
	}
	rows, err := client.ZRangeWithScores(t.Context(), string(board), 0, -1).Result()
	must(t, err)
	for _, row := range rows {
		if member := row.Member.(string); row.Score != want[member] {
			return fmt.Errorf("%s has %s with %v, want %v", board, member, row.Score, want[member])
		}
	}
	return nil
}
