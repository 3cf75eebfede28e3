package replay

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
)

// fromFile returns a feed that was filled from a file with this place in the log.
func fromFile(t *testing.T, topicID string, offsets ...int64) *feed {
	t.Helper()
	f := feedOf(&fakeBoard{})
	s := Saved{Board: "b", Total: string(TotalSeq), State: rankcache.State{Run: 1, Seq: 10}, CurrentAt: time.Now(), Topic: f.log.Topic, TopicID: topicID, Offsets: offsets}
	if err := f.replica.restore(s, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestResumeOffset(t *testing.T) {
	fresh := feedOf(&fakeBoard{})
	for name, c := range map[string]struct {
		boards []*feed
		parts  int
		want   []int64
		lack   int
	}{
		"one file":                     {[]*feed{fromFile(t, "id", 5)}, 1, []int64{5}, 0},
		"the earlier of two":           {[]*feed{fromFile(t, "id", 6), fromFile(t, "id", 5)}, 1, []int64{5}, 0},
		"another topic":                {[]*feed{fromFile(t, "other", 5)}, 1, nil, 1},
		"other partitions":             {[]*feed{fromFile(t, "id", 5, 7)}, 1, nil, 1},
		"one of two has none":          {[]*feed{fromFile(t, "id", 5), fresh}, 1, nil, 2},
		"shared":                       {[]*feed{sharing(fromFile(t, "id", 5, 9)), sharing(fromFile(t, "id", 6, 7))}, 2, []int64{5, 7}, 0},
		"shared, one of three":         {[]*feed{sharing(feedOf(&fakeBoard{})), sharing(fromFile(t, "id", 5, 9)), sharing(fromFile(t, "id", 5))}, 2, []int64{5, 9}, 2},
		"shared, partitions are added": {[]*feed{sharing(fromFile(t, "id", 5))}, 2, nil, 1},
	} {
		r := newReading(topicInfo{"update_cache_b", "id", c.parts}, false, c.boards)
		if r.resumeFrom(c.boards); !slices.Equal(r.resumeAt, c.want) || len(r.lacking) != c.lack {
			t.Errorf("%s: %v, want %v; %d boards lack a file, want %d", name, r.resumeAt, c.want, len(r.lacking), c.lack)
		}
	}
}

// sharing returns a feed whose topic has other boards' updates, too.
func sharing(f *feed) *feed {
	f.log.Shared, f.log.First = true, time.Now()
	return f
}

func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		at   int64
		from int64
		ok   bool
	}{
		"within":             {15, 15, true},
		"at the low":         {10, 10, true},
		"at the end":         {20, 20, true},
		"truncated after it": {9, 10, false},
		"lost its end":       {21, 10, false},
	} {
		topic := &beginning{topic: newTopic(topicInfo{"update_cache_b", "id", 1}, false)}
		p := topic.parts[0]
		p.setOffsets(map[*partition]offsets{p: {10, 20}})
		topic.resumeAt = []int64{c.at}
		if ok := topic.resume(); ok != c.ok || topic.resumed != c.ok || p.from != c.from || p.next.Load() != c.from || p.reached != c.from {
			t.Errorf("%s: %v, from %d, next %d", name, ok, p.from, p.next.Load())
		}
	}
}

// A topic that is not the file's takes the entries away before its records come.
func TestFileOfAnotherTopicIsVoid(t *testing.T) {
	f := fromFile(t, "old", 5)
	b := f.replica.board.(*fakeBoard)
	f.replica.begin(logTo(5, false))
	b.want(t, "run 1", "close", "reset")
	if f.file.entries.Load() != nil || f.replica.currentEpoch() != 1 {
		t.Errorf("file %v, epoch %d", f.file.entries.Load(), f.replica.currentEpoch())
	}
}

// The total of Redis may have been read before the file was loaded.
func TestFileIsVoidByAnEarlierTotal(t *testing.T) {
	f := feedOf(&fakeBoard{})
	f.replica.learn(reading{State: rankcache.State{Run: 1, Seq: 9}, members: 3, requested: time.Now()}, 0)
	if f.replica.fault != nil {
		t.Fatal("nothing was wrong yet")
	}
	if err := f.replica.restore(Saved{Total: "seq", State: rankcache.State{Run: 1, Seq: 10}, Topic: f.log.Topic}, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	if f.replica.fault == nil || f.replica.fault.suspected || f.replica.openStale(0) {
		t.Errorf("%+v, want the file void", f.replica.fault)
	}
	f.replica.startRefill(TotalSeq)
	if f.file.entries.Load() != nil || f.file.resume.Load() == nil {
		t.Error("want the entries void and the place in the log kept")
	}
}

// hungDisk does not answer.
type hungDisk struct{ let chan struct{} }

func (d hungDisk) Load(rankcache.BoardID) (Saved, []rankcache.Entry, error) {
	<-d.let
	return Saved{}, nil, fs.ErrNotExist
}
func (d hungDisk) ReadHeader(id rankcache.BoardID) (Saved, int, error) {
	s, _, err := d.Load(id)
	return s, 0, err
}
func (d hungDisk) LoadNewer(_ context.Context, id rankcache.BoardID, _ *Saved) (Saved, []rankcache.Entry, error) {
	return d.Load(id)
}
func (d hungDisk) Save(Saved, iter.Seq[[]rankcache.Entry]) error         { return errors.New("not now") }
func (d hungDisk) Sweep(keep []rankcache.BoardID, _ time.Duration) error { return nil }

func TestDiskThatHangs(t *testing.T) {
	for _, name := range []string{"file", "snapshot"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk, cfg := hungDisk{make(chan struct{})}, Config{Deadline: DefaultDeadline}
				if cfg.Files = disk; name == "snapshot" {
					cfg.Files, cfg.Snapshots = nil, disk
				}
				l := newFiller(&common{cfg: cfg, topicsWake: newSignal(), log: slog.New(slog.DiscardHandler)})
				f := feedOf(&fakeBoard{})
				f.restoring.Store(true)
				begin := time.Now()
				l.fromFiles(context.Background(), f)
				if f.restoring.Load() || time.Since(begin) != maxFileWait {
					t.Errorf("waited %v, restoring %v", time.Since(begin), f.restoring.Load())
				}
				close(disk.let)
			})
		})
	}
}

// A board whose turn to be loaded from a file does not come begins without one.
func TestQueueOfFilesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFiller(&common{cfg: Config{Snapshots: hungDisk{}, Deadline: DefaultDeadline}, topicsWake: newSignal(), log: slog.New(slog.DiscardHandler)})
		for range maxFileLoads {
			l.slots <- struct{}{}
		}
		f := feedOf(&fakeBoard{})
		f.restoring.Store(true)
		begin := time.Now()
		if l.fromFiles(context.Background(), f); f.restoring.Load() || time.Since(begin) != DefaultDeadline {
			t.Errorf("waited %v, restoring %v", time.Since(begin), f.restoring.Load())
		}
	})
}

func TestNewerFile(t *testing.T) {
	at := time.Now()
	base := Saved{State: rankcache.State{Run: 5, Seq: 10}, CurrentAt: at}
	for name, c := range map[string]struct {
		s    Saved
		want bool
	}{
		"the same":   {base, false},
		"later seq":  {Saved{State: rankcache.State{Run: 5, Seq: 11}}, true},
		"later run":  {Saved{State: rankcache.State{Run: 6, Seq: 1}}, true},
		"former run": {Saved{State: rankcache.State{Run: 4, Seq: 11}, CurrentAt: at.Add(time.Hour)}, false},
		"later look": {Saved{State: base.State, CurrentAt: at.Add(time.Second)}, true},
	} {
		if got := c.s.NewerThan(&base); got != c.want || !c.s.NewerThan(nil) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
