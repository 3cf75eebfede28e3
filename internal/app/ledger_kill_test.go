package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

// TestLedgerIsKilled kills the ledger again and again while changes come: no row is lost or doubled.
func TestLedgerIsKilled(t *testing.T) {
	testkit.FullOnly(t, "a ledger is killed 50 times")
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) { killLedger(t, kind, 50) })
	}
}

func killLedger(t *testing.T, kind string, kills int) {
	url, topic := testkit.Database(t, kind), testkit.Name(t)
	testkit.CreateTopic(t, testkit.Kafka(t), topic, 1, nil)
	store, err := ledger.Open(url, nil)
	must(t, err)
	defer store.Close()
	must(t, store.Migrate(t.Context()))
	start := func(life int) *child { // a group of its own need not wait for the end of the last one's session
		return startListening(t, "ledger", "--http", "127.0.0.1:0", "--database", url, "--topic-ledger", topic, "--ledger-group", fmt.Sprint(topic, "-", life), "--redis", "redis://"+testkit.Redis(t),
			"--kafka", testkit.Kafka(t), "--topic-commands", topic+"_commands")
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	made := &ledgerLoad{board: rankcache.BoardID(topic), run: 7, scores: make(map[string]float64)}
	load.Go(func() { made.produce(ctx, t, topic) })
	for life := range kills {
		l := start(life)
		time.Sleep(time.Duration(rand.IntN(800)) * time.Millisecond)
		l.Kill()
	}
	stop()
	load.Wait()
	start(kills)
	testkit.Eventually(t, 3*time.Minute, func() error {
		p, err := store.Prove(t.Context(), made.board)
		if err == nil && (!p.Proved || p.State.Seq != made.seq || p.Rows != made.seq) {
			err = fmt.Errorf("%d changes were made, the ledger has %d up to %d: %s", made.seq, p.Rows, p.State.Seq, p.Why())
		}
		return err
	})
	t.Logf("%d changes, %d lives of the ledger", made.seq, kills+1)
}

// ledgerLoad are changes of a board that Redis does not have any more, as a writer publishes them.
type ledgerLoad struct {
	board    rankcache.BoardID
	run, seq uint64
	sum      uint64
	scores   map[string]float64
}

// produce publishes changes until ctx ends.
func (c *ledgerLoad) produce(ctx context.Context, t *testing.T, topic string) {
	client := testkit.KafkaClient(t, testkit.Kafka(t), kgo.DefaultProduceTopic(topic))
	for ctx.Err() == nil {
		var records []*kgo.Record
		for range 50 {
			records = append(records, &kgo.Record{Key: []byte(c.board), Value: c.next()})
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Error("produce:", err)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// next gives a point to the next member.
func (c *ledgerLoad) next() []byte {
	member := fmt.Sprint("m", c.seq%500)
	if before, there := c.scores[member]; there {
		c.sum -= wire.Hash(member, before)
	}
	c.seq++
	c.scores[member]++
	c.sum = (c.sum + wire.Hash(member, c.scores[member])) & wire.SumMask
	return wire.AppendLedgerUpdate(nil, &wire.LedgerUpdate{Update: wire.Update{Board: c.board, Member: member, Op: wire.OpIncr, Delta: 1, Score: c.scores[member], Run: c.run,
		Seq: c.seq, Sum: c.sum, HasSum: true, Members: len(c.scores), OrderID: fmt.Sprint("o", c.seq), At: time.Now().Add(-time.Hour).UnixMilli()}})
}
