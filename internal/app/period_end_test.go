package app

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// periodEnd is everything that pays out, as processes: two writers, a ledger and a controller, under posts of one point
// each by members of their own until a period ends.
type periodEnd struct {
	t        *testing.T
	redis    *servers.Redis
	rows     *sql.DB
	database string
	name     string
	rooms    string
	args     []string // of all processes
	client   http.Client
	end      time.Time
	orders   atomic.Int64

	mu      sync.Mutex
	writers []*child // that answer
	others  []*child
	told    map[string]int   // the definite status of each order
	open    map[string]int64 // orders without one, and their times
}

func newPeriodEnd(t *testing.T, kafka string) *periodEnd {
	url := testkit.Database(t, testkit.SQLKinds[0])
	p := &periodEnd{t: t, redis: testkit.StartRedis(t, servers.RedisOptions{Dir: t.TempDir(), Args: []string{"--appendonly", "yes"}}), rows: testkit.SQL(t, url), database: url,
		name: strings.ToLower(testkit.Name(t)), rooms: filepath.Join(t.TempDir(), "rooms.yaml"), client: http.Client{Timeout: 7 * time.Second}, told: make(map[string]int), open: make(map[string]int64)}
	classes := fmt.Sprintf("classes:\n- {name: warm, board: %q, period: none, ledger: true}\n", p.name+"-warm")
	must(t, os.WriteFile(p.rooms, []byte(classes), 0o600))
	p.args = []string{"--redis", "redis://" + p.redis.Addr(), "--redis-timeout", "2s", "--kafka", kafka, "--rooms", p.rooms, "--topic-commands", p.name, "--topic-refused", p.name + "-refused",
		"--topic-ledger", p.name + "-ledger", "--topic-finals", p.name + "-finals", "--kafka.session.timeout.ms=6000"}
	p.start()
	first := func(class string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error { // topics are made, and the file is read again
			p.post(class, "first", time.Now().UnixMilli())
			if p.told["first"] != http.StatusOK {
				return errors.New("the writers don't take a post")
			}
			return nil
		})
	}
	first("warm")
	delete(p.told, "first")
	p.end = time.Now().Add(12 * time.Second).Truncate(time.Second)
	must(t, os.WriteFile(p.rooms, fmt.Appendf([]byte(classes), "- {name: gift, board: %q, tz: UTC, ledger: true, ops: [incr], seasons: [{tag: s1, from: %q, to: %q}]}\n",
		p.name+":{period}", p.end.Add(-time.Hour).UTC().Format(time.RFC3339), p.end.UTC().Format(time.RFC3339)), 0o600))
	first("gift")
	return p
}

// start starts all processes.
func (p *periodEnd) start() {
	p.t.Helper()
	run := func(args ...string) *child { return startListening(p.t, append(args, p.args...)...) }
	w := []string{"write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--group", p.name, "--command-partitions", "2", "--ledger-partitions", "2"}
	writers := []*child{run(w...), run(w...)}
	others := []*child{run("ledger", "--http", "127.0.0.1:0", "--database", p.database, "--ledger-group", p.name),
		run("controller", "--health", "127.0.0.1:0", "--group", p.name, "--database", p.database, "--finals", "file://"+p.t.TempDir())}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writers, p.others = writers, others
}

// post posts an order, again with the time that it had, and keeps what it is told.
func (p *periodEnd) post(class, order string, at int64) {
	p.mu.Lock()
	url := p.writers[p.orders.Add(1)%int64(len(p.writers))].URL("scores", "/v1/scores")
	p.open[order] = at
	p.mu.Unlock()
	resp, err := p.client.Post(url, "application/json", strings.NewReader(fmt.Sprintf(`{"order":%q,"class":%q,"dims":{},"member":%q,"op":"incr","delta":1,"at":%d}`, order, class, order, at)))
	if err != nil {
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	late := resp.StatusCode == http.StatusUnprocessableEntity && strings.Contains(string(answer), `"late"`)
	if !late && resp.StatusCode/100 == 4 && !strings.Contains(string(answer), `"unknown_class"`) { // a writer reads the file a moment later
		p.t.Errorf("%s: %d %s", order, resp.StatusCode, answer)
	}
	if err == nil && (late || resp.StatusCode == http.StatusOK) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told[order] = resp.StatusCode
		delete(p.open, order)
	}
}

// load posts in the last seconds, and has something happen just before the end.
func (p *periodEnd) load(happen func()) {
	p.t.Helper()
	var callers sync.WaitGroup
	for caller := range 24 {
		callers.Go(func() {
			for n := 0; time.Now().Before(p.end); n++ {
				p.post("gift", fmt.Sprintf("o-%d-%d", caller, n), time.Now().UnixMilli())
			}
		})
	}
	time.Sleep(time.Until(p.end.Add(-300 * time.Millisecond)))
	happen()
	callers.Wait()
	p.t.Logf("%d posts, %d of them without an answer", len(p.told)+len(p.open), len(p.open))
	if len(p.open) == 0 {
		p.t.Error("no post was under way")
	}
}

// repeat repeats what has no answer, until all have one.
func (p *periodEnd) repeat() {
	p.t.Helper()
	testkit.Eventually(p.t, 2*time.Minute, func() error {
		p.mu.Lock()
		var calls sync.WaitGroup
		for order, at := range p.open {
			calls.Go(func() { p.post("gift", order, at) })
		}
		p.mu.Unlock()
		calls.Wait()
		if len(p.open) > 0 {
			return fmt.Errorf("%d orders have no answer", len(p.open))
		}
		return nil
	})
}

// paid waits for the final, and compares it, and Redis, with what each caller was told.
func (p *periodEnd) paid() {
	p.t.Helper()
	counted, late := 0, 0
	for _, status := range p.told {
		if status == http.StatusOK {
			counted++
		} else {
			late++
		}
	}
	board := p.name + ":s1"
	testkit.Eventually(p.t, 2*time.Minute, func() error {
		var members int
		err := p.rows.QueryRowContext(p.t.Context(), "SELECT members FROM rank_final_board WHERE board = '"+board+"'").Scan(&members)
		if err == nil && members != counted {
			p.t.Fatalf("the final has %d members, %d posts were acknowledged", members, counted)
		}
		return err
	})
	client := p.redis.Client()
	defer client.Close()
	scores, err := client.ZRangeWithScores(p.t.Context(), board, 0, -1).Result()
	must(p.t, err)
	for _, row := range scores {
		if order := row.Member.(string); p.told[order] != http.StatusOK || row.Score != 1 {
			p.t.Errorf("%s has %v, its caller was told %d", order, row.Score, p.told[order])
		}
	}
	if len(scores) != counted {
		p.t.Errorf("%d members, %d posts were acknowledged", len(scores), counted)
	}
	p.t.Logf("%d posts are in the final, %d were late", counted, late)
}

// A writer hangs with posts that it has taken, longer than its session, its callers and the grace of the period. Those that repeat
// them are told for good whether they count.
func TestWriterHangsOverAPeriodsEnd(t *testing.T) {
	testkit.FullOnly(t, "a writer hangs for half a minute")
	p := newPeriodEnd(t, testkit.RealKafka(t))
	hung := p.writers[0]
	p.load(func() { hung.Signal(syscall.SIGSTOP) })
	thaw := time.AfterFunc(time.Until(p.end.Add(30*time.Second)), func() { hung.Signal(syscall.SIGCONT) })
	defer thaw.Stop()
	p.mu.Lock()
	p.writers = p.writers[1:]
	p.mu.Unlock()
	p.repeat()
	testkit.Eventually(t, 2*time.Minute, func() error { // it is awake, and what it had was read
		if time.Now().Before(p.end.Add(30 * time.Second)) {
			return errors.New("it hangs")
		}
		lag, err := testkit.Lag(t.Context(), testkit.KafkaClient(t, testkit.RealKafka(t)), p.name, p.name)
		if code, _ := hung.Get("scores", "/v1/status"); err == nil && (code != http.StatusOK || lag > 0) {
			err = fmt.Errorf("%d, lag %d", code, lag)
		}
		return err
	})
	p.paid()
}

// Kafka hangs with posts that were sent to it: it has them after their callers were told 503.
func TestKafkaHangsOverAPeriodsEnd(t *testing.T) {
	testkit.FullOnly(t, "Kafka hangs for 12 seconds")
	broker := testkit.StartKafka(t, servers.KafkaOptions{})
	p := newPeriodEnd(t, broker.Addr())
	p.load(func() { must(t, broker.Pause()) })
	time.Sleep(time.Until(p.end.Add(12 * time.Second)))
	must(t, broker.Resume())
	p.repeat()
	p.paid()
}

// All processes and Redis are killed at the end of a period, and start again: what was acknowledged is in the final, once.
func TestAllRestartAtAPeriodsEnd(t *testing.T) {
	testkit.FullOnly(t, "all processes start twice")
	p := newPeriodEnd(t, testkit.RealKafka(t))
	p.load(func() {
		for _, c := range append(p.writers, p.others...) {
			c.Kill()
		}
		must(t, p.redis.Kill())
	})
	must(t, p.redis.Restart(t.Context()))
	p.start()
	p.repeat()
	p.paid()
}
