package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"rankcache"
)

// filler loads whole boards: from files at the start, and from Redis when the log can't. All gates share it.
type filler struct {
	origin Origin
	files  Files         // nil: none
	shared Snapshots     // nil: none
	slots  chan struct{} // holds one element per board being loaded from a file
	queue  time.Duration // how long a board waits for its turn to be loaded from a file
	turn   chan struct{} // holds one element while a board is loaded from Redis
	topics signal        // wakes the topic watcher
	// memory waits until there is memory to fill a board, until done is called; nil: there is no limit.
	memory  func(context.Context, rankcache.BoardID) (done func(), err error)
	metrics *metrics
	log     *slog.Logger
}

func newFiller(r *Runner) *filler {
	return &filler{origin: r.origin, files: r.cfg.Files, shared: r.cfg.Snapshots, slots: make(chan struct{}, maxFileLoads), queue: r.cfg.Deadline, turn: make(chan struct{}, 1), topics: r.topicsWake, memory: r.cfg.Memory,
		metrics: r.metrics, log: r.log}
}

// reserve waits until there is memory to fill a board, until done is called. Its error is ctx's.
func (l *filler) reserve(ctx context.Context, id rankcache.BoardID) (done func(), err error) {
	if l.memory == nil {
		return func() {}, nil
	}
	return l.memory(ctx, id)
}

var errNoTotal = errors.New("no total of the board in Redis, so a snapshot can't be joined to the log")

var errGoesOn = errors.New("it was changed meanwhile, and its log is not read")

// fromRedis loads a board in an epoch. It returns the total that the log has to reach before the two belong together:
// members that changed during the scan have updates beyond the total read before it, which the log brings.
func (l *filler) fromRedis(ctx context.Context, r *replica, epoch int) (after uint64, err error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	members, begin := 0, time.Now()
	var pieces [][]rankcache.Entry // one slice would be copied as it grows, at once
	before, last, err := l.origin.Scan(ctx, r.id, func(es []rankcache.Entry) error {
		pieces, members = append(pieces, es), members+len(es)
		return ctx.Err()
	})
	switch {
	case err != nil:
	case before.Seq == 0 && before.Run == 0:
		err = errNoTotal
	case r.sources.alone && before.State != last.State:
		err = errGoesOn
	}
	if err == nil {
		err = r.load(epoch, before.State, pieces)
	}
	if err != nil {
		return 0, fmt.Errorf("load board %s from Redis: %w", r.id, err)
	}
	l.metrics.snapshots.Inc()
	l.log.Info("board loaded from Redis", "board", r.id, "members", members, "seq", before.Seq, "took", time.Since(begin))
	return last.Seq, nil
}

// fileState is the file that a board was filled from. The replica's lock is held to write; mu is a leaf.
type fileState struct {
	mu sync.Mutex
	// loaded is nil without a file and once its entries are void or open. resume is the file as a place in the log.
	loaded, resume *Saved
}

func (f *fileState) set(s *Saved) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded, f.resume = s, s
}

// place has the log be resumed at a file without entries.
func (f *fileState) place(s *Saved) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resume = s
}

func (f *fileState) discard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded = nil
}

// entries returns the file that the board's entries come from, nil if they come from elsewhere.
func (f *fileState) entries() *Saved {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loaded
}

// resumePoint returns the file whose offsets the log is resumed at, nil without one.
func (f *fileState) resumePoint() *Saved {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resume
}

// isOfAnother returns whether the entries come from another topic than t.
func (f *fileState) isOfAnother(t *topic) bool {
	s := f.entries()
	return s != nil && s.TopicID != t.id
}

// isYounger returns whether there are entries that are known to be no older than maxAge.
func (f *fileState) isYounger(now time.Time, maxAge time.Duration) bool {
	s := f.entries()
	if s == nil {
		return false
	}
	age, ok := s.age(now)
	return ok && age <= maxAge
}

// disprovedBy returns a fault if a total shows the entries void: a total is lower or gone only after a loss.
func (f *fileState) disprovedBy(t reading) *fault {
	s := f.entries()
	switch {
	case s == nil || t.requested.IsZero() || t.Run == s.Run && t.Seq >= s.Seq:
		return nil
	case t.Seq == 0:
		return new(faultGone("total"))
	case t.Run != s.Run:
		return new(faultRun(t.Run, s.Run))
	}
	return new(faultAhead(t.Seq, s.Seq))
}

// spread returns some members of a file for the first comparison: Redis's random ones lack the file's alone.
func spread(entries []rankcache.Entry) (some recentMembers) {
	for i := range min(maxRecent, len(entries)) {
		member, _ := rankcache.SplitData(entries[i*len(entries)/maxRecent].Member)
		some = append(some, strings.Clone(member))
	}
	return some
}
