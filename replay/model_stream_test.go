package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/rooms"
	"rankcache/wire"
)

// TestModelOfTheLogInRedis: random histories as in TestModel, of a board that is read from the log in Redis, which is lost
// with the changes, or alone, or is cut, or takes no entry for a while.
func TestModelOfTheLogInRedis(t *testing.T) {
	runHistories(t, 200, 3_000, func(t *testing.T, seed uint64) {
		w := newModelEnv(t, seed)
		w.stream = &modelStream{redis: w.redis, rng: w.random(8)}
		if w.rng.IntN(2) == 0 {
			w.files = &modelFiles{rng: w.random(3)}
		}
		w.redis.pieces, w.redis.slowAdopt = 1+w.rng.IntN(4), w.rng.IntN(4) == 0
		w.redis.now.data = w.rng.IntN(2) == 0
		w.members, w.noWalk = 1+w.rng.IntN(30), w.rng.IntN(3) == 0
		w.rate = []float64{0, 0.01, 0.1, 0.5}[w.rng.IntN(4)]
		w.lost = []float64{0, 0, 0.02}[w.rng.IntN(3)]
		w.changes(w.rng.IntN(100))
		w.start()
		defer w.end()
		w.disturbances()
		w.stream.refuse(false)
		w.calm()
		w.heal()
	})
}

// modelStream is the log in a model of Redis, whose lock it shares. It implements RedisLog.
type modelStream struct {
	redis   *modelRedis
	rng     *rand.Rand
	entries []modelEntry
	last    int64 // the place of the last that there ever was
	behind  time.Duration
	refuses bool // something else is at its key
}

type modelEntry struct {
	wire.LogEntry
	moment int // how many moments the history had with it
}

// add appends a change, as the script does.
func (s *modelStream) add(u *wire.Update) {
	s.redis.mu.Lock()
	defer s.redis.mu.Unlock()
	if s.refuses {
		return
	}
	record := wire.AppendOrder(nil, u, u.Delta, s.redis.now.data)
	flags := byte(0)
	if s.redis.now.data {
		flags = 1
	}
	entry := append(binary.BigEndian.AppendUint16([]byte{1, flags}, uint16(len(u.Member))), u.Member...)
	entry = append(binary.BigEndian.AppendUint16(entry, uint16(len(record))), record...)
	s.last = max(s.last+1, time.Now().Add(-s.behind).UnixMilli()<<20)
	s.entries = append(s.entries, modelEntry{wire.LogEntry{Place: s.last, Board: modelBoardID, Changes: string(entry)}, len(s.redis.past)})
}

// failedOver takes back what was lost in a failover; the clock of the new master is another.
func (s *modelStream) failedOver() {
	s.redis.mu.Lock()
	defer s.redis.mu.Unlock()
	s.entries = slices.DeleteFunc(s.entries, func(e modelEntry) bool { return e.moment > len(s.redis.past) })
	if s.last = 0; len(s.entries) > 0 {
		s.last = s.entries[len(s.entries)-1].Place
	}
	s.step()
}

// step gives the server another clock.
func (s *modelStream) step() {
	s.behind = time.Duration(s.rng.IntN([]int{1, 6_000, 3_600_000}[s.rng.IntN(3)])) * time.Millisecond
}

// lose deletes the log; the clock may be another from then on.
func (s *modelStream) lose() {
	s.redis.mu.Lock()
	defer s.redis.mu.Unlock()
	s.entries, s.last = nil, 0
	s.step()
}

// cut removes some of the first entries.
func (s *modelStream) cut() {
	s.redis.mu.Lock()
	defer s.redis.mu.Unlock()
	s.entries = s.entries[s.rng.IntN(len(s.entries)+1):]
}

func (s *modelStream) refuse(on bool) {
	s.redis.mu.Lock()
	defer s.redis.mu.Unlock()
	if s.refuses = on; on {
		s.entries, s.last = nil, 0
	}
}

var errModelNoStream = errors.New("model: no stream")

func (s *modelStream) Read(ctx context.Context, after int64, most int, wait time.Duration) (found []wire.LogEntry, err error) {
	server := -1
	for until := time.Now().Add(wait); err == nil && len(found) == 0 && !time.Now().After(until); {
		failed := s.redis.request(ctx, func() {
			if server < 0 {
				server = s.redis.server
			}
			if server != s.redis.server || s.refuses {
				err = errModelNoStream
			}
			for _, e := range s.entries {
				if e.Place > after && len(found) < most {
					found = append(found, e.LogEntry)
				}
			}
		})
		if err = errors.Join(err, failed); err != nil {
			return nil, err
		}
		tick.Sleep(ctx, 5*time.Millisecond)
	}
	return found, nil
}

func (s *modelStream) Ends(ctx context.Context) (first, end int64, err error) {
	failed := s.redis.request(ctx, func() {
		if s.refuses {
			err = errModelNoStream
		}
		end = s.last + 1
		if first = end; len(s.entries) > 0 {
			first = s.entries[0].Place
		}
	})
	return first, end, errors.Join(err, failed)
}

// configure has the board read from the log.
func (s *modelStream) configure(cfg *Config) {
	cfg.RedisLog, cfg.Log = s, func(rankcache.BoardID) rooms.Log {
		return rooms.Log{Topic: wire.LogKey, Shared: true, First: time.Now()}
	}
}

func (w *modelEnv) streamDisturbances() []modelEvent {
	return []modelEvent{
		{"log deleted", w.stream.lose},
		{"log cut", w.stream.cut},
		{"FLUSHALL", func() {
			w.redis.lose(true, true)
			w.stream.lose()
		}},
		{"text at the log's key", func() { w.stream.refuse(true) }},
		{"the key is free", func() { w.stream.refuse(false) }},
	}
}
