package replay_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
)

// BenchmarkRestart is the time from Run to open of a board of 210,000 members with
// 1,000,000 updates in its log: from the log alone, from a file, and from a file
// with 100,000 updates after it.
//
//	go test -run '^$' -bench Restart -benchtime 5x ./replay
func BenchmarkRestart(b *testing.B) {
	e := newEnv(b, testkit.Kafka(b))
	e.still = false // no comparison of every entry within the time
	board, whole, older := e.newBoard(1, nil), newFolder(b), newFolder(b)
	const tail = 100_000
	board.fill(benchUpdates-tail, benchMembers)
	e.saveOnce(older, board)
	board.refill(benchUpdates-tail, benchUpdates)
	e.saveOnce(whole, board)
	for _, c := range []struct {
		name string
		opts []option
		read float64
	}{
		{"log", nil, benchUpdates},
		{"file", []option{keptIn(whole)}, 0},
		{"file+tail", []option{keptIn(older)}, tail},
	} {
		b.Run(c.name, func(b *testing.B) {
			for _, kept := range []*folder{whole, older} {
				kept.frozen.Store(true)
			}
			var all time.Duration
			for b.Loop() {
				all += e.restartOnce(board, c.read, c.opts...)
			}
			b.ReportMetric(all.Seconds()*1000/float64(b.N), "open_ms")
		})
	}
}

func (e *env) restartOnce(board *board, read float64, opts ...option) time.Duration {
	e.t.Helper()
	runtime.GC()
	begun := time.Now()
	s := e.start(ids(board), opts...)
	defer s.stop()
	for {
		if ok, _ := s.Ready(); ok {
			break
		}
		time.Sleep(time.Millisecond)
	}
	took := time.Since(begun)
	if st := s.status(board.id); st.State != rankcache.StateOpen || st.Members != benchMembers || st.Have != benchUpdates {
		e.t.Fatalf("%+v", st)
	}
	if n := s.counter("rankcache_replay_records_total"); n != read {
		e.t.Fatalf("%v records were read, want %v", n, read)
	}
	return took
}

// refill gives more gifts, one after the other to members in turn.
func (b *board) refill(from, to int) {
	b.t.Helper()
	var us []rankcache.Update
	for seq := from + 1; seq <= to; seq++ {
		us = append(us, rankcache.Update{Board: b.id, Member: fmt.Sprint(1_000_000 + seq%benchMembers), Op: rankcache.OpIncr, Delta: 1,
			Score: float64(seq), Seq: uint64(seq), Order: fmt.Sprint(seq), At: 1_760_000_000_000})
		if len(us) == 10_000 || seq == to {
			b.note(us)
			us = us[:0]
		}
	}
}

// note makes updates in the log and in Redis at once.
func (b *board) note(us []rankcache.Update) {
	b.t.Helper()
	b.produce(us...)
	pipe := b.redis.Pipeline()
	for i := range us {
		pipe.ZAdd(b.t.Context(), b.names.BoardKey(b.id), redis.Z{Member: us[i].Member, Score: us[i].Score})
	}
	pipe.Set(b.t.Context(), b.names.SeqKey(b.id), us[len(us)-1].Seq, 0)
	_, err := pipe.Exec(b.t.Context())
	b.check(err)
}
