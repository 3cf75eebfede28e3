package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/wire"
)

// commandTopic gives commands through Kafka, one after the other. What became of
// an order is read from what Redis remembers of it.
type commandTopic struct {
	*env
	kafka *kgo.Client
	redis *redis.Client
}

func (w *env) commandTopic() *commandTopic {
	return &commandTopic{w, w.producer(kgo.DefaultProduceTopic(w.commands())), w.client()}
}

// run gives commands until ctx ends and the last is known to be applied, or
// giveUp ends.
func (c *commandTopic) run(ctx, giveUp context.Context, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 99))
	each(ctx, postEvery, func() {
		c.writes.busy.RLock()
		defer c.writes.busy.RUnlock()
		if ctx.Err() == nil {
			c.give(giveUp, c.writes.draw(rng, pick(rng, c.writes.Boards)))
		}
	})
}

func (c *commandTopic) give(ctx context.Context, cmd *command) {
	value, err := json.Marshal(cmd)
	if err != nil {
		panic(err)
	}
	for {
		err := c.kafka.ProduceSync(ctx, &kgo.Record{Key: []byte(cmd.Board), Value: value}).FirstErr()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
	}
	key := wire.DefaultNames().OrderKey(cmd.Board, cmd.Order)
	known, found := context.WithCancel(ctx)
	defer found()
	each(known, 20*time.Millisecond, func() {
		if record, err := c.redis.Get(ctx, key).Result(); err == nil && known.Err() == nil {
			c.applied(cmd, record)
			found()
		}
	})
}

// applied tells the oracle of an order that Redis remembers as "seq op delta score
// time member".
func (c *commandTopic) applied(cmd *command, record string) {
	u := wire.Update{Board: cmd.Board, Member: cmd.Member, OrderID: cmd.Order}
	fields := strings.SplitN(record, " ", 6)
	var err error
	if len(fields) != 6 || fields[5] != cmd.Member {
		err = fmt.Errorf("Redis remembers order %s as %q", cmd.Order, record)
	} else if u.Op, err = wire.ParseOp(fields[1]); err == nil {
		_, err = fmt.Sscan(fields[0]+" "+fields[3], &u.Seq, &u.Score)
	}
	if err == nil {
		err = c.oracle.Applied(u, time.Now())
	}
	if c.writes.Publish != nil {
		c.writes.Publish(u)
	}
	if err != nil {
		c.Errorf("command topic: %v", err)
	}
}
