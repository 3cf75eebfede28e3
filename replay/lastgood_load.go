package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"rankcache"
)

const (
	// loadsAtOnce bounds the files that are in memory beside their boards.
	loadsAtOnce = 2
	// loadMost is how long a board waits for its file: a disk that hangs must not
	// keep it from its log.
	loadMost = 10 * time.Second
)

// restore fills a board from its file, if there is a good one. Until it is done
// the catalogue leaves the board's topic alone: the file says where to begin.
func (r *Runner) restore(ctx context.Context, f *follower) {
	if r.cfg.Files == nil {
		return
	}
	defer nudge(r.catalogueKick)
	defer f.restoring.Store(false)
	select {
	case r.loads <- struct{}{}:
		defer func() { <-r.loads }()
	case <-ctx.Done():
		return
	}
	begin := time.Now()
	got := r.load(ctx, f.id)
	if errors.Is(got.err, fs.ErrNotExist) || ctx.Err() != nil {
		return
	}
	if got.err == nil {
		got.err = f.restore(got.saved, got.entries, begin)
	}
	if got.err != nil {
		r.log.Warn("saved board is not used", "board", f.id, "err", got.err)
		return
	}
	r.log.Info("board loaded from its file", "board", f.id, "members", len(got.entries), "seq", got.saved.Seq,
		"taken_at", got.saved.TakenAt, "took", time.Since(begin))
}

// loaded is what a file gave.
type loaded struct {
	saved   Saved
	entries []rankcache.Entry
	err     error
}

// load reads a board's file, but waits for it only so long.
func (r *Runner) load(ctx context.Context, id rankcache.BoardID) loaded {
	done := make(chan loaded, 1)
	go func() {
		var l loaded
		l.saved, l.entries, l.err = r.cfg.Files.Load(id)
		done <- l
	}()
	ctx, cancel := context.WithTimeout(ctx, loadMost)
	defer cancel()
	select {
	case l := <-done:
		return l
	case <-ctx.Done():
		return loaded{err: fmt.Errorf("the disk does not answer: %w", ctx.Err())}
	}
}

// restore takes a saved board. All updates up to its seq count as seen; those
// that follow come from the log.
func (f *follower) restore(s Saved, entries []rankcache.Entry, now time.Time) error {
	switch {
	case s.Total != string(TotalSeq) || s.Seq == 0:
		return fmt.Errorf("its total is %d of kind %q, want seqs", s.Seq, s.Total)
	case s.Topic != f.topic:
		return fmt.Errorf("its topic was %s, now it is %s: the names were changed", s.Topic, f.topic)
	}
	if err := f.board.Load(s.Seq, entries); err != nil {
		return err
	}
	if _, ok := s.age(now); ok {
		f.board.MarkCurrent(s.CurrentAt)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved, f.place = &s, &s
	f.recent = someMembers(entries)
	f.refute(f.total)
	return nil
}

// someMembers returns as many as are compared before the board opens: Redis's
// random ones don't show a member that only the file has.
func someMembers(entries []rankcache.Entry) (some []string) {
	for i := range min(recentMembers, len(entries)) {
		some = append(some, strings.Clone(entries[i*len(entries)/recentMembers].Member))
	}
	return some
}

// savedNow returns the file that the board was filled from, nil if there is none
// or it has become void.
func (f *follower) savedNow() *Saved {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saved
}

func (f *follower) placeNow() *Saved {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.place
}

// outdates says whether t is not the topic that the board was saved with. The
// lock is held.
func (f *follower) outdates(t *topic) bool { return f.saved != nil && f.saved.TopicID != t.id }

// refute looks whether Redis shows that the file is void: a total that was reached
// can't be lower later, or gone, unless Redis has lost writes or the board. The
// lock is held.
func (f *follower) refute(r reading) {
	if f.saved == nil || r.asked.IsZero() || r.seq >= f.saved.Seq {
		return
	}
	why := aheadOf(r.seq, f.saved.Seq)
	if r.seq == 0 {
		why = gone("total")
	}
	f.fault = &why
	f.nudge()
}

// beginning is where a partition is read from its first offset.
const beginning = -1

// resumeAt returns where reading goes on, per partition, if all boards of the
// topic have files of it; nil if it is read from its beginning. A file that Redis
// has refuted still tells the place: what Redis has lost is before it in the log,
// and must not come back from there.
func resumeAt(info topicInfo, followers []*follower) []int64 {
	var at []int64
	for _, f := range followers {
		s := f.placeNow()
		if s == nil || s.TopicID != info.id || len(s.Offsets) > info.partitions {
			return nil
		}
		theirs := append(slices.Clone(s.Offsets), slices.Repeat([]int64{beginning}, info.partitions-len(s.Offsets))...)
		for i := range at {
			theirs[i] = min(at[i], theirs[i])
		}
		at = theirs
	}
	return at
}

// goOn has the reading begin at resumeAt. It returns false if the log has lost
// something after that, or ends before: then it is read from its beginning, and
// the gate sees what is missing.
func (t *topic) goOn() bool {
	parts, at := t.partitions(), t.resumeAt
	for i, p := range parts {
		if at[i] != beginning && (at[i] < p.low || at[i] > p.high) {
			return false
		}
	}
	for i, p := range parts {
		if at[i] != beginning {
			p.from, p.reached = at[i], at[i]
			p.next.Store(at[i])
		}
	}
	t.resumed = true
	return true
}
