package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/testkit"
)

// commandTopic gives commands through Kafka, one after the other. What became of
// one is learned by posting it again once the writer has committed it.
type commandTopic struct {
	*env
	kafka *kgo.Client
	http  *http.Client
}

func (w *env) commandTopic() *commandTopic {
	w.Helper()
	c := &commandTopic{w, w.producer(kgo.DefaultProduceTopic(w.commands())), newClient(1)}
	w.Cleanup(c.http.CloseIdleConnections)
	return c
}

// run gives commands until ctx ends and the last is known to be applied, or
// giveUp ends.
func (c *commandTopic) run(ctx, giveUp context.Context, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 99))
	each(ctx, postEvery, func() {
		c.writes.busy.RLock()
		defer c.writes.busy.RUnlock()
		if ctx.Err() == nil {
			cmd := c.writes.draw(rng, pick(rng, c.writes.Boards))
			c.wait(giveUp, c.give(giveUp, cmd))
			c.writes.post(giveUp, c.http, cmd)
		}
	})
}

// give produces commands until all are in the topic and returns the last one's offset.
func (c *commandTopic) give(ctx context.Context, cmds ...*command) (last int64) {
	records := make([]*kgo.Record, len(cmds))
	for i, cmd := range cmds {
		value, err := json.Marshal(cmd)
		if err != nil {
			panic(err)
		}
		records[i] = &kgo.Record{Key: []byte(cmd.Board), Value: value}
	}
	for ctx.Err() == nil {
		if c.kafka.ProduceSync(ctx, records...).FirstErr() == nil {
			return records[len(records)-1].Offset
		}
	}
	return -1
}

// wait waits until the writer has committed an offset.
func (c *commandTopic) wait(ctx context.Context, offset int64) {
	known, found := context.WithCancel(ctx)
	defer found()
	each(known, 20*time.Millisecond, func() {
		if n, err := testkit.Committed(ctx, c.kafka, c.commands(), c.commands(), 1); err == nil && n > offset {
			found()
		}
	})
}

// bulk gives commands through the topic, in order, and tells the oracle of them. No
// other command of these boards may be on its way, and all are of op set, so that
// their results are known.
func (w *env) bulk(cmds []*command) {
	w.Helper()
	c := w.commandTopic()
	next := map[string]uint64{}
	for _, b := range w.boards {
		next[string(b.ID)] = w.oracle.Reached(b.ID)
	}
	c.wait(w.Context(), c.give(w.Context(), cmds...))
	now := time.Now()
	for _, cmd := range cmds {
		id := string(cmd.Board)
		next[id]++
		u, err := cmd.applied(next[id])
		w.must(err)
		w.must(w.oracle.Applied(u, now))
	}
	for _, b := range w.boards {
		if seq := w.seqIn(w.client(), b.ID); next[string(b.ID)] > 0 && seq != next[string(b.ID)] {
			w.Fatal(fmt.Errorf("%s has seq %d in Redis after %d commands", b.ID, seq, next[string(b.ID)]))
		}
	}
}
