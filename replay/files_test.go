package replay_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/replay"
	"rankcache/replay/files"
)

// folder adapts files.Store, as cmd does. A frozen one drops what is saved, as a process
// that was killed does.
type folder struct {
	*files.Store
	dir    string
	saved  atomic.Int64
	frozen atomic.Bool
}

func newFolder(t testing.TB) *folder { return folderAt(t, t.TempDir()) }

func folderAt(t testing.TB, dir string) *folder {
	s, err := files.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &folder{Store: s, dir: dir}
}

func (f *folder) Save(s replay.Saved, pieces iter.Seq[[]rankcache.Entry]) error {
	f.saved.Add(1)
	if f.frozen.Load() {
		return nil
	}
	return f.Store.Save(s, pieces)
}

// edit changes a board's file.
func (f *folder) edit(b *board, change func(*replay.Saved, []rankcache.Entry)) {
	b.t.Helper()
	s, entries, err := f.Store.Load(b.id)
	b.check(err)
	change(&s, entries)
	b.check(f.Store.Save(s, slices.Values([][]rankcache.Entry{entries})))
}

func keptIn(f *folder) option { return func(s *setup) { s.Files = f } }

func saveEvery(d time.Duration) option { return func(s *setup) { s.SaveEvery = d } }

// saveOnce runs a sidecar until the boards are open, and ends it, which saves them.
func (e *env) saveOnce(f *folder, boards ...*board) {
	e.t.Helper()
	s := e.start(ids(boards...), keptIn(f))
	for _, b := range boards {
		s.waitOpen(b.id)
		s.waitCurrent(b.id)
	}
	s.stop()
}

func TestRestartReadsTheTailOnly(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b, kept := e.newBoard(1, nil), newFolder(t)
	b.produce(b.gifts(300, 50)...)
	e.saveOnce(kept, b)
	b.produce(b.gifts(20, 60)...)
	s := e.start(ids(b), keptIn(kept))
	s.waitOpen(b.id)
	if n := s.counter("rankcache_replay_records_total"); n != 20 {
		t.Errorf("%v records were read, want the 20 after the file", n)
	}
	if n := s.counter("rankcache_replay_snapshots_total"); n != 0 {
		t.Error("the board came from Redis")
	}
	b.produce(b.gifts(20, 60)...)
	s.waitOpen(b.id)
}

// Two boards of one topic go on where the earlier of their files ends.
func TestRestartOfBoardsThatShareATopic(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	dot, colon, kept := e.newBoard(0, nil), e.newBoard(0, nil), newFolder(t)
	dot.id, colon.id = dot.id+".1", dot.id+":1"
	dot.parts, colon.parts = 1, 1
	testkit.CreateTopic(t, e.kafka, dot.topic(), 1, nil)
	dot.produce(dot.gifts(20, 10)...)
	e.saveOnce(kept, dot)
	colon.produce(colon.gifts(20, 10)...)
	e.saveOnce(kept, colon)
	dot.produce(dot.gifts(5, 10)...)
	s := e.start(ids(dot, colon), keptIn(kept))
	s.waitOpen(dot.id)
	s.waitOpen(colon.id)
	if n := s.counter("rankcache_replay_records_total"); n != 25 {
		t.Errorf("%v records were read, want the 25 after the older file", n)
	}
	if n := s.counter("rankcache_replay_snapshots_total"); n != 0 {
		t.Error("a board came from Redis")
	}
}

// A large board is open without a record being read, and equal entry by entry.
func TestRestartOfALargeBoard(t *testing.T) {
	t.Parallel()
	members := testkit.Sized(21_000, benchMembers)
	e := newEnv(t, testkit.Kafka(t))
	b, kept := e.newBoard(1, nil), newFolder(t)
	b.fill(2*members, members)
	begin := time.Now()
	e.saveOnce(kept, b)
	whole := time.Since(begin)
	begin = time.Now()
	s := e.start(ids(b), keptIn(kept))
	s.waitOpen(b.id)
	t.Logf("%d members: from the log %v, from the file %v, comparing all entries included", members, whole, time.Since(begin))
	if n := s.counter("rankcache_replay_records_total"); n != 0 {
		t.Errorf("%v records were read", n)
	}
}

// Files that are written while updates stream in, and are all that a killed
// process leaves, give the board back each time.
func TestRestartAfterAKillUnderWrites(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b, dir := e.newBoard(1, nil), t.TempDir()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				b.produce(b.gifts(7, 40)...)
			}
		}
	}()
	for range 4 {
		kept := folderAt(t, dir)
		s := e.start(ids(b), keptIn(kept), saveEvery(time.Millisecond))
		testkit.Eventually(t, timeout, func() error {
			if n := kept.saved.Load(); n < 4 {
				return fmt.Errorf("%d saves, %+v", n, s.status(b.id))
			}
			return nil
		})
		kept.frozen.Store(true)
		s.stop()
	}
	close(stop)
	<-done
	s := e.start(ids(b), keptIn(folderAt(t, dir)))
	s.waitOpen(b.id)
	if n := s.counter("rankcache_replay_snapshots_total"); n != 0 {
		t.Error("the board came from Redis")
	}
	if n := s.counter("rankcache_replay_records_total"); n >= float64(b.seq) {
		t.Errorf("%v records were read of %d: no file was used", n, b.seq)
	}
}

// Whatever is in a file, a board is open only when it equals Redis, which is compared
// as it is opened (env.still).
func TestWrongFileOpensNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*board, *folder){
		"scores": func(b *board, f *folder) {
			f.edit(b, func(_ *replay.Saved, es []rankcache.Entry) {
				for i := range es {
					es[i].Score += 5
				}
			})
		},
		"a stranger": func(b *board, f *folder) {
			f.edit(b, func(_ *replay.Saved, es []rankcache.Entry) { es[0].Member = "stranger" })
		},
		"seq ahead of Redis": func(b *board, f *folder) {
			f.edit(b, func(s *replay.Saved, es []rankcache.Entry) { s.Seq += 1000; es[0].Score++ })
		},
		"Redis lost writes": func(b *board, _ *folder) { b.loseWrites() },
		"recreated topic": func(b *board, _ *folder) {
			b.recreate()
			b.produce(b.gifts(200, 30)...) // longer than before: offsets alone would not tell
		},
		"log truncated after the file": func(b *board, _ *folder) {
			b.produce(b.gifts(50, 30)...)
			b.deleteRecords(120)
		},
		"log lost its end": func(b *board, f *folder) {
			f.edit(b, func(s *replay.Saved, _ []rankcache.Entry) { s.Offsets[0] += 1000 })
		},
		"offsets too far": func(b *board, f *folder) {
			f.edit(b, func(s *replay.Saved, _ []rankcache.Entry) { s.Offsets[0] += 5 })
			b.produce(b.gifts(10, 30)...)
		},
		"truncated file": func(b *board, f *folder) {
			file := filepath.Join(f.dir, string(b.id)+".board")
			b.check(os.Truncate(file, 100))
		},
		"other topic": func(b *board, f *folder) {
			f.edit(b, func(s *replay.Saved, _ []rankcache.Entry) { s.Topic = "update_cache_other" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, testkit.Kafka(t))
			b, kept := e.newBoard(1, nil), newFolder(t)
			b.produce(b.gifts(100, 30)...)
			e.saveOnce(kept, b)
			spoil(b, kept)
			s := e.start(ids(b), keptIn(kept))
			s.waitOpen(b.id)
			b.produce(b.gifts(20, 30)...)
			s.waitOpen(b.id)
		})
	}
}

// With neither Redis nor Kafka there, a board is answered from its file, as old as
// it is, and the process is ready. When Redis is back it answers itself.
func TestStaleCopyWithoutRedisAndKafka(t *testing.T) {
	t.Parallel()
	cache := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnvOn(t, testkit.Kafka(t), cache.Addr())
	b, kept := e.newBoard(1, nil), newFolder(t)
	b.produce(b.gifts(100, 30)...)
	e.saveOnce(kept, b)
	saved, entries, err := kept.Load(b.id)
	e.check(err)
	e.check(cache.Pause())
	e.still = false
	s := e.start(ids(b), keptIn(kept), func(s *setup) { s.Brokers = "127.0.0.1:1" })
	s.waitReady()
	s.waitState(b.id, rankcache.StateStale)
	got, ok := s.boards.Get(b.id)
	if !ok {
		t.Fatal("not readable")
	}
	if page := rowsOf(got, 1000); !slices.Equal(page.Entries, entries) || page.Seq != saved.Seq {
		t.Errorf("seq %d with %d entries, want the file's %d with %d", page.Seq, len(page.Entries), saved.Seq, len(entries))
	}
	if at := got.CurrentAt(); !at.Equal(saved.CurrentAt) {
		t.Errorf("current at %v, want the file's %v", at, saved.CurrentAt)
	}
	e.check(cache.Resume())
	testkit.Eventually(t, timeout, func() error {
		if _, open := s.boards.Get(b.id); open {
			return fmt.Errorf("still answered from the file: %+v", s.status(b.id))
		}
		return nil
	})
	if at := got.CurrentAt(); !at.Equal(saved.CurrentAt) {
		t.Errorf("current at %v though it was not compared", at)
	}
	if ok, why := s.Ready(); !ok {
		t.Error("readiness fell:", why)
	}
}

func (s *sidecar) waitState(id rankcache.BoardID, want rankcache.BoardState) {
	s.env.t.Helper()
	testkit.Eventually(s.env.t, timeout, func() error {
		if st := s.status(id); st.State != want {
			return fmt.Errorf("%+v, want it %s", st, want)
		}
		return nil
	})
}

// A stale copy takes the rest of its log; when Redis is back and agrees, the board
// is open without having been closed.
func TestStaleCopyBecomesTheBoard(t *testing.T) {
	t.Parallel()
	cache := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnvOn(t, testkit.Kafka(t), cache.Addr())
	b, kept := e.newBoard(1, nil), newFolder(t)
	b.produce(b.gifts(100, 30)...)
	e.saveOnce(kept, b)
	b.produce(b.gifts(20, 30)...)
	e.check(cache.Pause())
	e.still = false
	s := e.start(ids(b), keptIn(kept))
	s.waitState(b.id, rankcache.StateStale)
	testkit.Eventually(t, timeout, func() error {
		if got, ok := s.boards.Get(b.id); !ok || rowsOf(got, 1).Seq != b.seq {
			return fmt.Errorf("the rest of the log is not shown: %+v", s.status(b.id))
		}
		return nil
	})
	e.check(cache.Resume())
	s.waitState(b.id, rankcache.StateOpen)
	s.waitOpen(b.id)
	s.waitCurrent(b.id)
	if events := s.boards.noted(); slices.Contains(events, "close "+string(b.id)) {
		t.Errorf("%q: want it open all the time", events)
	}
}

// A Redis that comes back as another closes the stale copy.
func TestStaleCopyThatRedisDisproves(t *testing.T) {
	t.Parallel()
	cache := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnvOn(t, testkit.Kafka(t), cache.Addr())
	b, kept := e.newBoard(1, nil), newFolder(t)
	b.produce(b.gifts(100, 30)...)
	e.saveOnce(kept, b)
	e.check(cache.Pause())
	e.still = false
	s := e.start(ids(b), keptIn(kept))
	s.waitState(b.id, rankcache.StateStale)
	e.check(cache.Restart(context.Background())) // empty
	s.waitClosed(b.id)
	b.seq = 0
	b.gifts(10, 30)
	s.waitOpen(b.id)
	s.waitCurrent(b.id)
}

func TestStaleCopyThatIsTooOld(t *testing.T) {
	t.Parallel()
	cache := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnvOn(t, testkit.Kafka(t), cache.Addr())
	b, old, future := e.newBoard(1, nil), newFolder(t), newFolder(t)
	b.produce(b.gifts(100, 30)...)
	e.saveOnce(old, b)
	e.saveOnce(future, b)
	old.edit(b, func(s *replay.Saved, _ []rankcache.Entry) { s.CurrentAt = s.CurrentAt.Add(-time.Hour) })
	future.edit(b, func(s *replay.Saved, _ []rankcache.Entry) { s.CurrentAt = s.CurrentAt.Add(time.Hour) })
	e.check(cache.Pause())
	e.still = false
	for name, kept := range map[string]*folder{"old": old, "of the future": future} {
		s := e.start(ids(b), keptIn(kept), deadline(time.Second))
		s.waitState(b.id, rankcache.StateGivenUp)
		if _, open := s.boards.Get(b.id); open {
			t.Errorf("a file that is %s is answered from", name)
		}
		s.stop()
	}
	e.check(cache.Resume())
	s := e.start(ids(b), keptIn(old)) // is still where to begin
	s.waitOpen(b.id)
	if n := s.counter("rankcache_replay_records_total"); n != 0 {
		t.Errorf("%v records were read, want none", n)
	}
}

// A disk that can't be written to does not matter before the next start.
func TestDiskThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	file := filepath.Join(t.TempDir(), "file")
	e.check(os.WriteFile(file, nil, 0o600))
	b, kept := e.newBoard(1, nil), folderAt(t, filepath.Join(file, "in-it"))
	b.produce(b.gifts(100, 30)...)
	s := e.start(ids(b), keptIn(kept), saveEvery(time.Millisecond))
	s.waitOpen(b.id)
	testkit.Eventually(t, timeout, func() error {
		if n := kept.saved.Load(); n < 2 {
			return fmt.Errorf("saving was tried %d times", n)
		}
		return nil
	})
	b.produce(b.gifts(20, 30)...)
	s.waitOpen(b.id)
	if ok, why := s.Ready(); !ok {
		t.Error(why)
	}
}

// Without seqs a saved board can't be joined to its log, so it is not saved.
func TestBoardsWithoutSeqAreNotSaved(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b, kept := e.newBoard(1, nil), newFolder(t)
	b.produce(b.gifts(100, 30)...)
	s := e.start(ids(b), keptIn(kept), totalIn(replay.TotalNone, "none"), saveEvery(time.Millisecond))
	s.waitOpen(b.id)
	s.stop()
	if kept.saved.Load() != 0 {
		t.Error("it was saved")
	}
}
