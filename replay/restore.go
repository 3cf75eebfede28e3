package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"rankcache"
)

const (
	maxFileLoads = 2 // bounds the files that are in memory beside their boards
	// maxFileWait is how long a file or snapshot is waited for: a hanging disk must not keep a board from its log.
	maxFileWait = 10 * time.Second
)

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
