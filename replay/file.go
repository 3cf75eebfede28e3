package replay

import (
	"sync"
	"time"
)

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
