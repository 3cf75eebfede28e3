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

// fileOf returns a follower that was filled from a file with this place in the log.
func fileOf(t *testing.T, topicID string, offsets ...int64) *follower {
	t.Helper()
	f := newFollower("b", "update_cache_b", &script{}, newMetrics(), time.Now())
	s := Saved{Board: "b", Total: string(TotalSeq), Seq: 10, CurrentAt: time.Now(), Topic: f.topic, TopicID: topicID, Offsets: offsets}
	if err := f.restore(s, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestResumeAt(t *testing.T) {
	fresh := newFollower("b", "update_cache_b", &script{}, newMetrics(), time.Now())
	for name, c := range map[string]struct {
		followers []*follower
		want      []int64
	}{
		"one file":                         {[]*follower{fileOf(t, "id", 5, 7)}, []int64{5, 7}},
		"the earlier of two":               {[]*follower{fileOf(t, "id", 5, 7), fileOf(t, "id", 6, 3)}, []int64{5, 3}},
		"partitions were added":            {[]*follower{fileOf(t, "id", 5)}, []int64{5, beginning}},
		"partitions were added before one": {[]*follower{fileOf(t, "id", 5, 7), fileOf(t, "id", 5)}, []int64{5, beginning}},
		"another topic":                    {[]*follower{fileOf(t, "other", 5, 7)}, nil},
		"more partitions than there are":   {[]*follower{fileOf(t, "id", 5, 7, 9)}, nil},
		"one of two has none":              {[]*follower{fileOf(t, "id", 5, 7), fresh}, nil},
	} {
		if got := resumeAt(topicInfo{"update_cache_b", "id", 2}, c.followers); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		at   int64
		from int64
		ok   bool
	}{
		"within":        {15, 15, true},
		"at the low":    {10, 10, true},
		"at the end":    {20, 20, true},
		"cut after it":  {9, 10, false},
		"lost its end":  {21, 10, false},
		"not in a file": {beginning, 10, true},
	} {
		topic := newTopic(topicInfo{"update_cache_b", "id", 1}, false)
		p := topic.partitions()[0]
		p.set(map[*partition]offsets{p: {10, 20}})
		topic.resumeAt = []int64{c.at}
		if ok := topic.goOn(); ok != c.ok || p.from != c.from || p.next.Load() != c.from || p.reached != c.from {
			t.Errorf("%s: %v, from %d, next %d", name, ok, p.from, p.next.Load())
		}
	}
}

// A topic that is not the file's takes the entries away before its records come.
func TestFileOfAnotherTopicIsVoid(t *testing.T) {
	f := fileOf(t, "old", 5)
	s := f.board.(*script)
	f.begin(readTopic(false, 5), s)
	s.want(t, "close", "reset")
	if f.savedNow() != nil || f.epochNow() != 1 {
		t.Errorf("file %v, epoch %d", f.savedNow(), f.epochNow())
	}
}

// Redis may have said its total before the file was loaded.
func TestFileIsRefutedByWhatRedisHasSaid(t *testing.T) {
	f := newFollower("b", "update_cache_b", &script{}, newMetrics(), time.Now())
	f.learn(reading{seq: 9, members: 3, asked: time.Now()}, 0)
	if f.fault != nil {
		t.Fatal("nothing was wrong yet")
	}
	if err := f.restore(Saved{Total: "seq", Seq: 10, Topic: f.topic}, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	if f.fault == nil || !f.fault.void || f.openStale(0, f.board.(*script)) {
		t.Errorf("%+v, want the file void", f.fault)
	}
	f.heal(TotalSeq, f.board.(*script))
	if f.savedNow() != nil || f.placeNow() == nil {
		t.Error("want the entries void and the place in the log kept")
	}
}

// hung is a disk that does not answer.
type hung struct{ let chan struct{} }

func (h hung) Load(rankcache.BoardID) (Saved, []rankcache.Entry, error) {
	<-h.let
	return Saved{}, nil, fs.ErrNotExist
}
func (h hung) Save(Saved, iter.Seq[[]rankcache.Entry]) error         { return errors.New("not now") }
func (h hung) Sweep(keep []rankcache.BoardID, _ time.Duration) error { return nil }

func TestDiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := hung{make(chan struct{})}
		r := &Runner{cfg: Config{Files: disk}, loads: make(chan struct{}, 1), catalogueKick: make(chan struct{}, 1),
			log: slog.New(slog.DiscardHandler)}
		f := newFollower("b", "update_cache_b", &script{}, newMetrics(), time.Now())
		f.restoring.Store(true)
		begin := time.Now()
		r.restore(context.Background(), f)
		if f.restoring.Load() || time.Since(begin) != loadMost {
			t.Errorf("waited %v, restoring %v", time.Since(begin), f.restoring.Load())
		}
		close(disk.let)
	})
}
