package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestWriterStopsUnderLoad: from SIGTERM to the end of the drain every post is
// answered, one that was begun before the end is finished after it, and what was
// answered or committed is all that there is, in Redis and in the log.
func TestWriterStopsUnderLoad(t *testing.T) {
	t.Parallel()
	h := newFixture(t, "--drain", "2s")
	h.give(t, h.star, 1)
	posts := &postedOrders{seqs: map[string]uint64{}}
	load := startLoad(t, func(caller, i int) (int, string) {
		return posts.post(h, fmt.Sprintf("post-%d-%d", caller, i))
	})
	stopCommands := h.startCommands(t)
	load.atLeast(t, 100)
	h.waitCommits(t)
	slow := h.writer.begin("scores", "/v1/scores", h.gift("slow"))
	h.writer.Signal(syscall.SIGTERM)
	h.writer.waitNotReady()
	load.atLeast(t, 20) // more, of callers that have not heard yet
	load.stop(t)        // now they have: a Service sends no more callers
	h.writer.waitClosed("scores")
	h.waitCommits(t) // the writer itself goes on while there is a post that needs it
	h.waitCommits(t) // not only its last
	slow.finish(t, `"order":"slow"`)
	if code := h.writer.Wait(30 * time.Second); code != cli.ExitOK {
		t.Errorf("exit code %d, want %d", code, cli.ExitOK)
	}
	stopCommands()
	h.checkWritten(t, posts.seqs, 2) // beside those: the first gift and the slow one
}

// TestWriterDoesNotDrainForEver: a second signal ends a drain, and without a port
// for posts there is none.
func TestWriterDoesNotDrainForEver(t *testing.T) {
	t.Parallel()
	h := newFixture(t, "--drain", "1h")
	h.writer.Signal(syscall.SIGTERM)
	h.writer.waitNotReady()
	h.writer.stopAgain()
	if code := h.writer.Wait(30 * time.Second); code != cli.ExitSignaled {
		t.Errorf("a second signal ends with %d, want %d", code, cli.ExitSignaled)
	}
	h = newFixture(t, "--drain", "1h", "--scores", "")
	h.writer.Signal(syscall.SIGTERM)
	if code := h.writer.Wait(30 * time.Second); code != cli.ExitOK {
		t.Errorf("without posts: exit code %d, want %d", code, cli.ExitOK)
	}
}

// gift is the JSON of an order of one point on the super-hot board.
func (h *fixture) gift(order string) string {
	return fmt.Sprintf(`{"order":%q,"board":%q,"member":"m1","op":"incr","delta":1}`, order, h.star)
}

// postedOrders are the orders that were answered, with their seqs.
type postedOrders struct {
	mu   sync.Mutex
	seqs map[string]uint64
}

func (p *postedOrders) post(h *fixture, order string) (status int, body string) {
	resp, err := http.Post(h.writer.URL("scores", "/v1/scores"), "application/json", strings.NewReader(h.gift(order)))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	var u wire.Update
	if wire.DecodeUpdate(answer, &u) == nil && resp.StatusCode == http.StatusOK {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seqs[order] = u.Seq
	}
	return resp.StatusCode, string(answer)
}

// startCommands writes commands to Kafka until stop is called.
func (h *fixture) startCommands(t *testing.T) (stop func()) {
	client := testkit.KafkaClient(t, testkit.Kafka(t), kgo.DefaultProduceTopic(h.commands()))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			r := &kgo.Record{Value: []byte(h.gift(fmt.Sprintf("command-%d", i)))}
			if err := client.ProduceSync(ctx, r).FirstErr(); err != nil && ctx.Err() == nil {
				t.Errorf("produce a command: %v", err)
				return
			}
		}
	})
	return func() { cancel(); all.Wait() }
}

// commands is the topic of commands, by whose name the writers' group goes too.
func (h *fixture) commands() string { return h.common[7] }

// waitCommits waits until the writer has committed more commands than now.
func (h *fixture) waitCommits(t *testing.T) {
	t.Helper()
	cl := testkit.KafkaClient(t, testkit.Kafka(t))
	before, err := testkit.Committed(t.Context(), cl, h.commands(), h.commands(), 4)
	must(t, err)
	testkit.Eventually(t, 30*time.Second, func() error {
		if n, err := testkit.Committed(t.Context(), cl, h.commands(), h.commands(), 4); err != nil || n <= before {
			return fmt.Errorf("%d commands are committed, as before, %v", n, err)
		}
		return nil
	})
}

// checkWritten wants the board's total to be the orders that were answered, the
// commands that are committed and some more, and the log to have the update of
// each with the seq in its answer.
func (h *fixture) checkWritten(t *testing.T, answered map[string]uint64, more int) {
	t.Helper()
	total := applied(t, h.redis(t), h.star)
	commands, err := testkit.Committed(t.Context(), testkit.KafkaClient(t, testkit.Kafka(t)), h.commands(), h.commands(), 4)
	must(t, err)
	if want := len(answered) + int(commands) + more; total != want {
		t.Errorf("Redis counts %d orders: want %d answered, %d committed and %d more", total, len(answered), commands, more)
	}
	logged, seqs := map[string]uint64{}, map[uint64]bool{}
	for _, r := range testkit.Records(t, testkit.Kafka(t), wire.DefaultNames().Topic(h.star), total) {
		var u wire.Update
		must(t, wire.DecodeUpdate(r.Value, &u))
		logged[u.OrderID], seqs[u.Seq] = u.Seq, true
	}
	for order, seq := range answered {
		if logged[order] != seq {
			t.Errorf("%s was answered with seq %d and has %d in the log", order, seq, logged[order])
		}
	}
	if len(seqs) != total {
		t.Errorf("the log has %d updates of %d", len(seqs), total)
	}
	t.Logf("%d posts, %d commands", len(answered), commands)
}
