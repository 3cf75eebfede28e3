package replay

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// steadyLog gets an entry of one change each time, in virtual time, and answers reads after a while, as a server does.
type steadyLog struct {
	begun       time.Time
	every, trip time.Duration
	slow        atomic.Int64 // in nanoseconds, one trip's
}

func (l *steadyLog) count() int64 { return int64(time.Since(l.begun) / l.every) }

func (l *steadyLog) Ends(context.Context) (first, end int64, err error) { return 1, l.count() + 1, nil }

func (l *steadyLog) Read(_ context.Context, after int64, most int, _ time.Duration) (entries []wire.LogEntry, err error) {
	time.Sleep(max(l.trip, time.Duration(l.slow.Swap(0)), time.Until(l.begun.Add(l.every*time.Duration(after+1)))))
	for at := max(after+1, 1); at <= l.count() && len(entries) < most; at++ {
		u := wire.Update{Board: "b", Member: "m", Op: wire.OpIncr, Score: 1, Run: 1, Seq: uint64(at), Members: 1}
		changes := []byte{1, 0}
		for _, text := range []string{u.Member, string(wire.AppendOrder(nil, &u, 1, false))} {
			changes = append(binary.BigEndian.AppendUint16(changes, uint16(len(text))), text...)
		}
		entries = append(entries, wire.LogEntry{Place: at, Board: u.Board, Changes: string(changes)})
	}
	return entries, nil
}

// pacedBoard counts its changes, and notes how old the oldest of a publication are.
type pacedBoard struct {
	fakeBoard
	log            *steadyLog
	applied, shown int64
	oldest         time.Duration
	publications   int64
	counting       atomic.Bool
}

func (b *pacedBoard) Create(rankcache.BoardID) Board { return b }

func (b *pacedBoard) Apply(us []wire.Update) rankcache.ApplyResult {
	b.applied = int64(us[len(us)-1].Seq)
	b.have = rankcache.Progress{Contiguous: uint64(b.applied), Highest: uint64(b.applied)}
	return rankcache.ApplyResult{Applied: len(us)}
}

func (b *pacedBoard) Publish() {
	if b.counting.Load() {
		b.publications++
		b.oldest = max(b.oldest, time.Since(b.log.begun.Add(b.log.every*time.Duration(b.shown+1))))
	}
	b.shown = b.applied
}

// What is in the log is published before the next read is over, whatever the phases of reads and publications: one waits
// for the other no second time. A board is not published more often than the log is read.
func TestPaceOfTheLog(t *testing.T) {
	for _, every := range []time.Duration{500 * time.Microsecond, 3 * time.Millisecond, 47 * time.Millisecond, 700 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const pause, trip, lasts = 10 * time.Millisecond, 300 * time.Microsecond, 5 * time.Second
			log := &steadyLog{begun: time.Now(), every: every, trip: trip}
			b := &pacedBoard{log: log}
			c := &common{cfg: Config{PublishEvery: pause, RedisLog: log}, metrics: newMetrics(), log: slog.New(slog.NewTextHandler(t.Output(), nil)), totalsWake: newSignal()}
			f := newFeed("b", rooms.Log{Topic: wire.LogKey}, b, new(atomic.Int64), c.metrics, time.Now())
			c.feeds.replace(map[rankcache.BoardID]*feed{"b": f})
			in, stream := newBatches(), newStream(c)
			consumer, d := newConsumer(stream, in), newDispatcher(c, in)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for _, run := range []func(context.Context) error{stream.run, consumer.run, d.run} {
				running.Go(func() { _ = run(ctx) })
			}
			top := newTopic(topicInfo{wire.LogKey, streamID, 1}, false)
			if err := consumer.reassign(ctx, reassignment{start: []*topic{top}}); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			openNow(f.replica)
			log.slow.Store(int64(7 * time.Millisecond)) // whoever is late once does not stay so
			time.Sleep(time.Second)
			b.counting.Store(true)
			time.Sleep(lasts)
			b.counting.Store(false)
			cancel()
			running.Wait()
			if most := pause + 2*trip; b.oldest > most || b.publications == 0 || b.publications > int64(lasts/pause)+1 {
				t.Errorf("a change each %v: %d publications, the oldest change %v old, want at most %v", every, b.publications, b.oldest, most)
			}
		})
	}
}
