package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"rankcache"
)

const (
	maxFileLoads = 2 // bounds the files that are in memory beside their boards
	// maxFileWait is how long a file or snapshot is waited for: a hanging disk must not keep a board from its log.
	maxFileWait = 10 * time.Second
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

func newFiller(c *common) *filler {
	return &filler{origin: c.origin, files: c.cfg.Files, shared: c.cfg.Snapshots, slots: make(chan struct{}, maxFileLoads), queue: c.cfg.Deadline, turn: make(chan struct{}, 1), topics: c.topicsWake, memory: c.cfg.Memory,
		metrics: c.metrics, log: c.log}
}

// hasFiles returns whether boards may begin with files.
func (l *filler) hasFiles() bool { return l.files != nil || l.shared != nil }

// fromFiles loads a board from the newer of its file and the fleet's snapshot, or from the other one if that can't be
// used. Until it returns the topic watcher does not start the board's topic: a file has the offsets.
func (l *filler) fromFiles(ctx context.Context, f *feed) {
	if !l.hasFiles() {
		return
	}
	defer l.topics.wake()
	defer f.restoring.Store(false)
	if !l.takeSlot(ctx) {
		return
	}
	defer func() { <-l.slots }()
	done, err := l.reserve(ctx, f.id)
	if err != nil {
		return
	}
	defer done()
	own := l.lookAtFile(ctx, f.id)
	notShared := l.fromSnapshot(ctx, f, own)
	if notShared == nil || own == nil {
		return
	}
	if l.fromFile(ctx, f) != nil && errors.Is(notShared, ErrOlder) {
		_ = l.fromSnapshot(ctx, f, nil) // it was logged
	}
}

// reserve waits until there is memory to fill a board, until done is called. Its error is ctx's.
func (l *filler) reserve(ctx context.Context, id rankcache.BoardID) (done func(), err error) {
	if l.memory == nil {
		return func() {}, nil
	}
	return l.memory(ctx, id)
}

// takeSlot waits for the board's turn, and returns false if that does not come in time.
func (l *filler) takeSlot(ctx context.Context) bool {
	late := time.NewTimer(l.queue)
	defer late.Stop()
	select {
	case l.slots <- struct{}{}:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// lookAtFile returns the header of a board's file, nil: none. What is wrong with it is found at its load.
func (l *filler) lookAtFile(ctx context.Context, id rankcache.BoardID) *Saved {
	if l.files == nil {
		return nil
	}
	if l.shared == nil {
		return &Saved{} // there is nothing to compare it with
	}
	c := within(ctx, func(context.Context) (c fileContent) {
		c.saved, _, c.err = l.files.ReadHeader(id)
		return c
	})
	switch {
	case c.err == nil:
		return &c.saved
	case errors.Is(c.err, context.DeadlineExceeded):
		l.log.Warn("saved board is not used", "board", id, "err", c.err)
		return nil
	case errors.Is(c.err, fs.ErrNotExist):
		return nil
	}
	return &Saved{} // older than any snapshot
}

// fromSnapshot loads a board from the fleet's snapshot if that is newer than its file.
func (l *filler) fromSnapshot(ctx context.Context, f *feed, own *Saved) error {
	if l.shared == nil {
		return fs.ErrNotExist
	}
	return l.restore(ctx, f, "the fleet's snapshot", func(ctx context.Context) (c fileContent) {
		c.saved, c.entries, c.err = l.shared.LoadNewer(ctx, f.id, own)
		return c
	})
}

func (l *filler) fromFile(ctx context.Context, f *feed) error {
	return l.restore(ctx, f, "its file", func(context.Context) (c fileContent) {
		c.saved, c.entries, c.err = l.files.Load(f.id)
		return c
	})
}

// restore reads a file and loads the board from it; from is the file's name in the log.
func (l *filler) restore(ctx context.Context, f *feed, from string, read func(context.Context) fileContent) error {
	begin := time.Now()
	c := within(ctx, read)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := c.restore(f, begin)
	switch {
	case err == nil:
		l.log.Info("board loaded from "+from, "board", f.id, "members", len(c.entries), "seq", c.saved.Seq,
			"taken_at", c.saved.TakenAt, "took", time.Since(begin))
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrOlder):
		l.log.Warn("saved board is not used", "board", f.id, "from", from, "err", err)
	}
	return err
}

// fileContent is the loaded content of a file.
type fileContent struct {
	saved   Saved
	entries []rankcache.Entry
	err     error
}

// restore loads the board from the file's content.
func (c *fileContent) restore(f *feed, now time.Time) error {
	if c.err != nil {
		return c.err
	}
	if c.saved.Topic != f.log.Topic && !f.sources.alone {
		f.audit.voidFile(kindTopic)
		return fmt.Errorf("its topic was %s, now it is %s: the names were changed", c.saved.Topic, f.log.Topic)
	}
	err := f.replica.restore(c.saved, c.entries, now)
	if errors.Is(err, errFileSum) {
		f.audit.voidFile(kindSum)
	}
	return err
}

// within reads a file, and does not wait for it longer than maxFileWait.
func within(ctx context.Context, read func(context.Context) fileContent) fileContent {
	ctx, cancel := context.WithTimeout(ctx, maxFileWait)
	defer cancel()
	done := make(chan fileContent, 1)
	go func() { done <- read(ctx) }()
	select {
	case c := <-done:
		return c
	case <-ctx.Done():
		return fileContent{err: fmt.Errorf("no answer: %w", ctx.Err())}
	}
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
