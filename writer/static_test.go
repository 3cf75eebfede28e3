package writer

import (
	"errors"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"rankcache/internal/testkit"
)

// longSession is beyond the patience of the tests: nobody gets the partitions of a dead member by
// waiting.
const longSession = "300000"

// static is a writer of a group whose sessions are long.
func static(t *testing.T, instance string) *fixture {
	return newFixture(t, testkit.Kafka(t), func(o *Options) {
		o.GroupInstance = instance
		o.Kafka["session.timeout.ms"] = longSession
	})
}

// crash runs the writer until it has applied a command, and ends it as a fault does: it commits
// nothing and does not leave the group.
func (h *fixture) crash(t *testing.T) {
	t.Helper()
	c, err := newConsumer(h.opts, h.rewinds)
	must(t, err)
	b, err := c.next(t.Context(), nil)
	must(t, err)
	_, err = h.applyBatch(t.Context(), b)
	must(t, err)
	c.close()
}

// A writer that restarts under the same name goes on before the session of the dead one times
// out.
func TestRestartDoesNotWaitForTheSession(t *testing.T) {
	t.Parallel()
	h := static(t, "writer-1")
	h.produce(t, h.command("o1", "a"))
	h.crash(t)
	h.produce(t, h.command("o2", "a"))
	next := h.restarted(t)
	next.run(t)
	next.await(t, "duplicate", 1)
	next.await(t, "applied", 1)
	equal(t, "board", h.scores(t), map[string]float64{"a": 2})
}

// A writer that stops gives its partitions away at once, though it may not come back.
func TestStopGivesPartitionsAway(t *testing.T) {
	t.Parallel()
	h := static(t, "writer-1")
	h.produce(t, h.command("o1", "a"))
	stop := h.run(t)
	h.await(t, "applied", 1)
	stop()
	h.opts.GroupInstance = "writer-2"
	other := h.restarted(t)
	other.run(t)
	h.produce(t, h.command("o2", "a"))
	other.await(t, "applied", 1)
	equal(t, "repeated", other.count("duplicate"), 0)
}

// Of two writers with one name the earlier one ends, and tells why.
func TestFencedWriterEnds(t *testing.T) {
	t.Parallel()
	h := static(t, "writer-1")
	h.produce(t, h.command("o1", "a"))
	ended := make(chan error, 1)
	go func() { ended <- h.Run(t.Context()) }()
	h.await(t, "applied", 1)
	h.restarted(t).run(t)
	select {
	case err := <-ended:
		fenced, _ := errors.AsType[kafka.Error](err)
		equal(t, err.Error(), fenced.Code(), kafka.ErrFencedInstanceID)
	case <-time.After(testTimeout):
		t.Error("two writers have one name")
	}
}
