package replay

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"rankcache"
)

const (
	// saveLook is how often the saver looks which board is due.
	saveLook = 250 * time.Millisecond
	// saveWait is how long a board may take to close the holes between what its
	// partitions have brought, and savePause the time between two looks.
	saveWait, savePause = 2 * time.Second, 20 * time.Millisecond
	// sweepEvery is how often files are looked at that belong to no board, and
	// sweepIdle how old they are when they are removed.
	sweepEvery, sweepIdle = 10 * time.Minute, time.Hour
)

// saver writes open boards to files, one after the other.
type saver struct {
	r      *Runner
	due    map[*follower]time.Time
	last   map[*follower]written
	sweep  time.Time // the next
	errLog limiter
}

// written is when a file was written, and which publication is in it: a repair
// changes a board without a new seq.
type written struct{ image, at time.Time }

// keepFiles saves boards until ctx ends, and then all of them once more.
func (r *Runner) keepFiles(ctx context.Context) error {
	if r.cfg.Files == nil {
		return nil
	}
	s := &saver{r: r, due: make(map[*follower]time.Time), last: make(map[*follower]written), sweep: time.Now().Add(jitter(sweepEvery))}
	for ctx.Err() == nil {
		s.round(ctx, time.Now())
		pause(ctx, saveLook)
	}
	for _, f := range r.followers() {
		s.save(ctx, f, time.Now())
	}
	return nil
}

// round saves the boards that are due. The first time of each is drawn, so that
// boards that were opened together are not saved together ever after.
func (s *saver) round(ctx context.Context, now time.Time) {
	followers := s.r.followers()
	s.forget(followers)
	for _, f := range followers {
		if !f.readable.Load() {
			continue
		}
		if at, ok := s.due[f]; !ok {
			s.due[f] = now.Add(rand.N(s.r.cfg.SaveEvery))
		} else if now.After(at) {
			s.due[f] = now.Add(jitter(s.r.cfg.SaveEvery))
			s.save(ctx, f, now)
		}
	}
	if now.After(s.sweep) {
		s.sweep = now.Add(jitter(sweepEvery))
		s.sweepFiles(followers)
	}
}

// forget lets go of boards that are not followed any more.
func (s *saver) forget(followers []*follower) {
	if len(s.due) <= len(followers) {
		return
	}
	due, last := s.due, s.last
	s.due, s.last = make(map[*follower]time.Time), make(map[*follower]written)
	for _, f := range followers {
		if at, ok := due[f]; ok {
			s.due[f], s.last[f] = at, last[f]
		}
	}
}

// save writes a board's file, unless the one before is as good. A board that has
// no image now waits for its next turn. A disk that fails concerns nobody but the
// next start.
func (s *saver) save(ctx context.Context, f *follower, now time.Time) {
	saved, pieces, ok := f.image(ctx)
	if !ok {
		return
	}
	last := s.last[f]
	if ctx.Err() == nil && last.image.Equal(saved.TakenAt) && now.Sub(last.at) < s.r.cfg.StaleMost/2 {
		return
	}
	if err := s.r.cfg.Files.Save(saved, pieces); err != nil {
		if skipped, ok := s.errLog.allow(time.Now()); ok {
			s.r.log.Warn("board is not saved: it is served all the same", "err", err, "more", skipped)
		}
		return
	}
	s.last[f] = written{saved.TakenAt, now}
}

func (s *saver) sweepFiles(followers []*follower) {
	keep := make([]rankcache.BoardID, len(followers))
	for i, f := range followers {
		keep[i] = f.id
	}
	if err := s.r.cfg.Files.Sweep(keep, sweepIdle); err != nil {
		s.r.log.Warn("old files are not removed", "err", err)
	}
}

// image returns the open board as published, and the place in its log that
// belongs to it. The place is taken first, and with it the highest seq until
// there; when the image has every update up to that seq, no update that it lacks
// is before the place. What is after it and in the image already is read again,
// which is harmless. Neither the board's writer nor its readers wait.
func (f *follower) image(ctx context.Context) (Saved, iter.Seq[[]rankcache.Entry], bool) {
	saved, epoch, ok := f.bookmark()
	if !ok {
		return saved, nil, false
	}
	highest, ok := f.settledAt(ctx)
	if !ok {
		return saved, nil, false
	}
	saved.CurrentAt = f.board.CurrentAt() // before the image, which is no older
	if !f.show(time.Time{}) {
		return saved, nil, false
	}
	stamp, pieces := f.board.Snapshot()
	saved.Seq, saved.Members, saved.TakenAt = stamp.Seq, stamp.Members, stamp.At
	// If the board was emptied meanwhile, the epoch has passed.
	return saved, pieces, stamp.Seq >= highest && f.epochNow() == epoch
}

// bookmark returns where reading goes on now, if the board is open.
func (f *follower) bookmark() (s Saved, epoch int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.reading
	if !f.readable.Load() || f.dropped || t == nil || t.gone.Load() || t.torn.Load() {
		return s, 0, false
	}
	s = Saved{Board: f.id, Total: string(TotalSeq), Topic: t.name, TopicID: t.id}
	for _, p := range t.partitions() {
		s.Offsets = append(s.Offsets, p.next.Load())
	}
	return s, f.epoch, true
}

// settledAt returns the highest seq that the board has, once it has all up to it.
// A board that takes updates without a seq can't be joined to its log by one.
func (f *follower) settledAt(ctx context.Context) (highest uint64, ok bool) {
	p := f.progress()
	highest = p.Highest
	for end := time.Now().Add(saveWait); p.Contiguous < highest; p = f.board.Progress() {
		if ctx.Err() != nil || time.Now().After(end) {
			return 0, false
		}
		pause(ctx, savePause)
	}
	return highest, highest > 0 && p.Orders == 0
}
