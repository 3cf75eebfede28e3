package replay

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"time"

	"rankcache"
	"rankcache/internal/tick"
)

const (
	// saveLook is how often the saver looks which board is due.
	saveLook = 250 * time.Millisecond
	// maxSaveWait is how long a board may take to close the holes between what its
	// partitions have brought, and savePause the time between two looks.
	maxSaveWait, savePause = 2 * time.Second, 20 * time.Millisecond
	// sweepEvery is how often files are looked at that belong to no board, and
	// sweepIdle how old they are when they are removed.
	sweepEvery, sweepIdle = 10 * time.Minute, time.Hour
)

// saver writes open boards to files, one after the other. Its fields belong to the goroutine of run.
type saver struct {
	files    Files
	feeds    *feeds
	every    time.Duration
	maxStale time.Duration
	log      *slog.Logger

	due     map[*feed]time.Time
	last    map[*feed]written
	sweepAt time.Time
}

// written is when a file was written, and when the publication in it was made: a
// repair changes a board without a new seq.
type written struct{ image, at time.Time }

func newSaver(c *common, files Files, every time.Duration) *saver {
	return &saver{files: files, feeds: &c.feeds, every: every, maxStale: c.cfg.MaxStale, log: c.log, due: make(map[*feed]time.Time), last: make(map[*feed]written),
		sweepAt: time.Now().Add(tick.Jitter(sweepEvery))}
}

// run saves boards until ctx ends, and then all of them once more.
func (s *saver) run(ctx context.Context) error {
	for ctx.Err() == nil {
		s.round(ctx, time.Now())
		tick.Sleep(ctx, saveLook)
	}
	for _, f := range s.feeds.sorted() {
		s.save(ctx, f, time.Now())
	}
	return nil
}

// round saves the boards that are due. The first time of each is random, so that
// boards that were opened together are not saved together ever after.
func (s *saver) round(ctx context.Context, now time.Time) {
	boards := s.feeds.sorted()
	s.forget(boards)
	for _, f := range boards {
		if !f.replica.readable.Load() {
			continue
		}
		if at, ok := s.due[f]; !ok {
			s.due[f] = now.Add(rand.N(s.every))
		} else if now.After(at) {
			s.due[f] = now.Add(tick.Jitter(s.every))
			s.save(ctx, f, now)
		}
	}
	if now.After(s.sweepAt) {
		s.sweepAt = now.Add(tick.Jitter(sweepEvery))
		s.sweep(boards)
	}
}

// forget drops the records of boards that are not followed any more.
func (s *saver) forget(boards []*feed) {
	if len(s.due) <= len(boards) {
		return
	}
	current := s.feeds.current()
	maps.DeleteFunc(s.due, func(f *feed, _ time.Time) bool { return current[f.id] != f })
	maps.DeleteFunc(s.last, func(f *feed, _ written) bool { return current[f.id] != f })
}

// save writes a board's file, unless the one before is as good. A board that has no image now waits for its next turn.
// A disk that fails is logged: it matters to the next start only.
func (s *saver) save(ctx context.Context, f *feed, now time.Time) {
	saved, pieces, ok := image(ctx, f.replica)
	if !ok || saved.Seq == 0 && (saved.Members > 0 || !f.log.Shared) { // without any change it is a place in a log that others fill
		return
	}
	last := s.last[f]
	if ctx.Err() == nil && last.image.Equal(saved.TakenAt) && now.Sub(last.at) < s.maxStale/2 {
		return
	}
	if err := s.files.Save(saved, pieces); err != nil {
		s.log.Warn("boards are not saved: they are served all the same", "board", f.id, "err", err)
		return
	}
	s.last[f] = written{saved.TakenAt, now}
}

func (s *saver) sweep(boards []*feed) {
	keep := make([]rankcache.BoardID, len(boards))
	for i, f := range boards {
		keep[i] = f.id
	}
	if err := s.files.Sweep(keep, sweepIdle); err != nil {
		s.log.Warn("old files are not removed", "err", err)
	}
}

// image returns the open board as published, and the place in its log that belongs to it. The place is taken first, and
// with it the highest seq until there; when the image has every update up to that seq, no update that it lacks is
// before the place. Updates after it that are in the image already are read again, which is harmless. Neither the
// board's writer nor its readers wait.
func image(ctx context.Context, r *replica) (Saved, iter.Seq[[]rankcache.Entry], bool) {
	saved, epoch, ok := r.resumePoint()
	if !ok {
		return saved, nil, false
	}
	highest, ok := awaitContiguous(ctx, r)
	if !ok {
		return saved, nil, false
	}
	saved.CurrentAt = r.board.CurrentAt() // before the image, which is no older
	stamp, pieces, data, ok := r.snapshot()
	if !ok {
		return saved, nil, false
	}
	saved.HasData = data
	saved.State, saved.Members, saved.TakenAt = stamp.State, stamp.Members, stamp.At
	// If the board was emptied meanwhile, the epoch has passed.
	return saved, pieces, stamp.Seq >= highest && r.currentEpoch() == epoch
}

// awaitContiguous returns the highest seq that the board has, once it has all up to
// it. A board that takes updates without a seq can't be joined to its log by one.
func awaitContiguous(ctx context.Context, r *replica) (highest uint64, ok bool) {
	p := r.progress()
	highest = p.Highest
	for end := time.Now().Add(maxSaveWait); p.Contiguous < highest; p = r.board.Progress() {
		if ctx.Err() != nil || time.Now().After(end) {
			return 0, false
		}
		tick.Sleep(ctx, savePause)
	}
	return highest, p.OrderIDs == 0
}
