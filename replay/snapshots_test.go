package replay_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/objects"
	"rankcache/internal/testkit"
	"rankcache/replay"
	"rankcache/replay/files"
	"rankcache/rooms"
	"rankcache/wire"
)

// fleet is a shared volume with snapshots.
type fleet struct {
	*files.Shared
	dir string
}

func (e *env) newFleet() *fleet { return e.fleetIn(e.t.TempDir(), e.names.Topic) }

func (e *env) fleetIn(dir string, topic func(rankcache.BoardID) string) *fleet {
	e.t.Helper()
	o, err := objects.Open("file://" + dir)
	e.check(err)
	s, err := files.NewShared(o, topic, nil)
	e.check(err)
	return &fleet{s, dir}
}

func (f *fleet) path(b *board) string { return filepath.Join(f.dir, b.topic(), string(b.id)+".board") }

// keep runs a keeper until it has saved the boards.
func (f *fleet) keep(e *env, boards ...*board) { f.keepWith(e, nil, boards...) }

func (f *fleet) keepWith(e *env, opts []option, boards ...*board) {
	e.t.Helper()
	s := e.start(ids(boards...), append(opts, func(s *setup) { s.Files = f })...)
	for _, b := range boards {
		s.waitOpen(b.id)
		s.waitCurrent(b.id)
	}
	s.stop()
}

// edit changes a board's snapshot.
func (f *fleet) edit(b *board, change func(*replay.Saved, []rankcache.Entry)) {
	b.t.Helper()
	s, entries, err := f.Load(b.id)
	b.check(err)
	change(&s, entries)
	b.check(f.Save(s, slices.Values([][]rankcache.Entry{entries})))
}

func sharing(f *fleet) option { return func(s *setup) { s.Snapshots = f } }

func (s *sidecar) wantCounter(want float64, name string, labels ...string) {
	s.env.t.Helper()
	if got := s.counter(name, labels...); got != want {
		s.env.t.Errorf("%s %v is %v, want %v", name, labels, got, want)
	}
}

// A pod without files begins with the fleet's snapshots, and reads only the rest of the logs. However many pods
// start together, none reads a log from its beginning.
func TestManyStartFromSnapshots(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	f, large, small := e.newFleet(), e.newBoard(1, nil), e.newBoard(1, nil)
	large.produce(large.gifts(500, 200)...)
	small.produce(small.gifts(30, 10)...)
	f.keep(e, large, small)
	large.produce(large.gifts(20, 300)...)
	e.still = false // so many may have to answer from their files for a moment, as Redis does not in time
	var all []*sidecar
	for range testkit.Sized(5, 40) {
		all = append(all, e.start(ids(large, small), sharing(f)))
	}
	for _, s := range all {
		s.waitOpen(large.id)
		s.waitOpen(small.id)
		s.wantCounter(20, "rankcache_replay_records_total")
		s.wantCounter(0, "rankcache_replay_snapshots_total")
	}
}

// A topic that boards share is read from the lowest place where a board's snapshot ends, or from where the updates of a board
// without one begin, if that is earlier.
func TestSharedTopicFromSnapshots(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	topic, now := testkit.Name(t), time.Now()
	testkit.CreateTopic(t, e.kafka, topic, 2, nil)
	f := e.fleetIn(t.TempDir(), func(rankcache.BoardID) string { return topic })
	busy, quiet, young, unborn := e.newBoard(0, nil), e.newBoard(0, nil), e.newBoard(0, nil), e.newBoard(0, nil)
	busy.produceTo(topic, now.Add(-2*time.Minute), busy.gifts(50, 20)...)
	quiet.produceTo(topic, now.Add(-2*time.Minute), quiet.gifts(30, 20)...)
	shared := func(s *setup) {
		s.Log = func(id rankcache.BoardID) rooms.Log {
			log := rooms.Log{Topic: topic, Shared: true, First: now.Add(-3 * time.Minute)}
			if id == young.id {
				log.First = now.Add(-time.Minute)
			}
			return log
		}
	}
	f.keepWith(e, []option{shared}, busy, quiet, unborn)
	busy.produceTo(topic, now, busy.gifts(5, 20)...)
	wantRead := func(records float64, boards ...*board) {
		t.Helper()
		s := e.start(ids(boards...), shared, sharing(f))
		for _, b := range boards {
			s.waitOpen(b.id)
		}
		s.wantCounter(records, "rankcache_replay_records_total")
		s.wantCounter(0, "rankcache_replay_snapshots_total")
		s.stop()
	}
	wantRead(5, busy, quiet, unborn)
	young.produceTo(topic, now, young.gifts(7, 3)...)
	wantRead(12, busy, quiet, young)
	e.check(os.Remove(filepath.Join(f.dir, topic, string(quiet.id)+".board")))
	wantRead(92, busy, quiet)
}

// The newer of a sidecar's file and the snapshot is taken, and the other one if that is damaged.
func TestNewerOfFileAndSnapshot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ownNewer bool
		spoil    func(*board, *folder, *fleet)
		records  float64 // that are read: 5 come after the older file, 3 after the newer one
	}{
		"own":             {true, nil, 3},
		"shared":          {false, nil, 3},
		"own, damaged":    {true, func(b *board, own *folder, _ *fleet) { b.turnBit(filepath.Join(own.dir, string(b.id)+".board")) }, 8},
		"shared, damaged": {false, func(b *board, _ *folder, f *fleet) { b.turnBit(f.path(b)) }, 8},
		"own, no header": {true, func(b *board, own *folder, _ *fleet) {
			b.check(os.Truncate(filepath.Join(own.dir, string(b.id)+".board"), 9))
		}, 8},
		"shared, scores": {false, func(b *board, _ *folder, f *fleet) {
			f.edit(b, func(_ *replay.Saved, es []rankcache.Entry) { es[3].Score++ })
		}, 8},
		"shared, not there": {false, func(b *board, _ *folder, f *fleet) { b.check(os.Remove(f.path(b))) }, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, testkit.Kafka(t))
			b, own, f := e.newBoard(1, nil), newFolder(t), e.newFleet()
			b.produce(b.gifts(50, 20)...)
			older, newer := func() { e.saveOnce(own, b) }, func() { f.keep(e, b) }
			if c.ownNewer {
				older, newer = newer, older
			}
			older()
			b.produce(b.gifts(5, 20)...)
			newer()
			b.produce(b.gifts(3, 20)...)
			if c.spoil != nil {
				c.spoil(b, own, f)
			}
			s := e.start(ids(b), keptIn(own), sharing(f))
			s.waitOpen(b.id)
			s.wantCounter(c.records, "rankcache_replay_records_total")
			s.wantCounter(0, "rankcache_replay_snapshots_total")
		})
	}
}

// turnBit turns a bit in the middle of a file.
func (b *board) turnBit(path string) {
	b.t.Helper()
	data, err := os.ReadFile(path)
	b.check(err)
	data[len(data)/2] ^= 1
	b.check(os.WriteFile(path, data, 0o600))
}

// Whatever is in a snapshot, a board is open only when it equals Redis, which is compared as it is opened (env.still),
// the pod becomes ready, and what was wrong is counted once.
func TestWrongSnapshotOpensNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*board, *fleet)
		void  string // "": it could not be read, which the store counts
	}{
		"cut":        {func(b *board, f *fleet) { b.check(os.Truncate(f.path(b), 100)) }, ""},
		"bit turned": {func(b *board, f *fleet) { b.turnBit(f.path(b)) }, ""},
		"another board's": {func(b *board, f *fleet) {
			f.edit(b, func(s *replay.Saved, _ []rankcache.Entry) { s.Board += "x" })
			b.check(os.Rename(f.path(b)[:len(f.path(b))-6]+"x.board", f.path(b)))
		}, ""},
		"one score, with the sum kept": {func(b *board, f *fleet) { f.edit(b, func(_ *replay.Saved, es []rankcache.Entry) { es[7].Score++ }) }, "sum"},
		"made anew":                    {func(b *board, f *fleet) { f.edit(b, makeAnew(0)) }, "proof"},
		"made anew, higher seq":        {func(b *board, f *fleet) { f.edit(b, makeAnew(1000)) }, "ahead"},
		"without a sum": {func(b *board, f *fleet) {
			f.edit(b, func(s *replay.Saved, es []rankcache.Entry) { es[7].Score++; s.HasSum = false })
		}, "proof"},
		"older than the log":         {func(b *board, _ *fleet) { b.produce(b.gifts(50, 30)...); b.deleteRecords(120) }, "log"},
		"of a run that Redis lost":   {func(b *board, f *fleet) { f.edit(b, func(s *replay.Saved, _ []rankcache.Entry) { s.Run++ }) }, "run"},
		"of changes that Redis lost": {func(b *board, _ *fleet) { b.loseWrites() }, "ahead"},
		"another topic's": {func(b *board, f *fleet) {
			b.check(os.Rename(f.fileOf(b, func(s *replay.Saved) { s.Topic = "other" }), f.path(b)))
		}, "topic"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, testkit.Kafka(t))
			b, f := e.newBoard(1, nil), e.newFleet()
			b.produce(b.gifts(100, 30)...)
			f.keep(e, b)
			c.spoil(b, f)
			s := e.start(ids(b), sharing(f))
			s.waitReady()
			s.waitOpen(b.id)
			b.produce(b.gifts(20, 30)...)
			s.waitOpen(b.id)
			counted := 0.0
			if c.void != "" {
				counted = 1
				s.wantCounter(1, "rankcache_replay_void_files_total", c.void)
			}
			s.wantCounter(counted, "rankcache_replay_void_files_total")
		})
	}
}

// makeAnew forges a snapshot whose checksums are right.
func makeAnew(ahead uint64) func(*replay.Saved, []rankcache.Entry) {
	return func(s *replay.Saved, es []rankcache.Entry) {
		before := es[7]
		es[7].Score++
		s.Sum = (s.Sum - wire.Hash(before.Member, before.Score) + wire.Hash(es[7].Member, es[7].Score)) & wire.SumMask
		s.Seq += ahead
	}
}

// fileOf saves a changed snapshot under its own name, which it returns.
func (f *fleet) fileOf(b *board, change func(*replay.Saved)) string {
	var topic string
	f.edit(b, func(s *replay.Saved, _ []rankcache.Entry) { change(s); topic = s.Topic })
	return filepath.Join(f.dir, topic, string(b.id)+".board")
}
