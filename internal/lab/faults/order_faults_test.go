package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/wire"
)

// orderFaults are those of a log that another producer writes: the writer changes
// Redis only, and the suite publishes what it answered.
func orderFaults() []fault {
	return []fault{{
		name: "updates come twice", quick: true,
		start: func(w *env) { w.startRelay(relay{double: 50, window: 1}) },
	}, {
		name:  "updates come in another order",
		start: func(w *env) { w.startRelay(relay{double: 30, window: 20}) },
	}, {
		name: "some updates never come", note: "1 in 50",
		start: func(w *env) { w.startRelay(relay{lose: 2, window: 1}) },
		heal:  func(w *env) { w.relay.set(relay{window: 1}) },
	}}
}

// relay publishes updates in a way that a log should not be written.
type relay struct {
	double, lose int // percent
	window       int // how many are shuffled
}

// publisher is a relay at work.
type publisher struct {
	client *kgo.Client
	topics map[rankcache.BoardID]string
	fail   func(error)

	mu    sync.Mutex
	how   relay
	rng   *rand.Rand
	batch []*kgo.Record
}

// startRelay starts everything with a writer that publishes nothing.
func (w *env) startRelay(how relay) {
	w.Helper()
	w.writerRooms = "" // no board is super-hot to the writer
	p := &publisher{client: w.producer(), topics: map[rankcache.BoardID]string{}, how: how, rng: rand.New(rand.NewPCG(4, 4))}
	p.fail = func(err error) { w.Errorf("relay: %v", err) }
	for _, b := range w.boards {
		if b.Tier == "local" {
			p.topics[b.ID] = wire.DefaultNames().Topic(b.ID)
			w.createTopic(p.topics[b.ID])
		}
	}
	w.relay, w.writes.Publish = p, p.publish
	w.startFilled()
}

// publish keeps an update until there are enough to shuffle.
func (p *publisher) publish(u wire.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	topic := p.topics[u.Board]
	if topic == "" || p.rng.IntN(100) < p.how.lose {
		return
	}
	r := kgo.Record{Topic: topic, Key: []byte(u.Member), Value: wire.AppendUpdate(nil, &u)}
	if p.batch = append(p.batch, &r); p.rng.IntN(100) < p.how.double {
		again := r
		p.batch = append(p.batch, &again)
	}
	if len(p.batch) < p.how.window {
		return
	}
	p.flush()
}

// flush is called with the lock held.
func (p *publisher) flush() {
	p.rng.Shuffle(len(p.batch), func(i, j int) { p.batch[i], p.batch[j] = p.batch[j], p.batch[i] })
	for _, r := range p.batch {
		p.client.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				p.fail(fmt.Errorf("produce: %w", err))
			}
		})
	}
	p.batch = nil
}

// set changes how updates are published from now on.
func (p *publisher) set(how relay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush()
	p.how = how
}
