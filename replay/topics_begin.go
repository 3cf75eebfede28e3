package replay

import (
	"slices"
	"time"
)

// newReading returns a reading of a topic for boards, whose offsets are still to be set.
func newReading(info topicInfo, reset bool, boards []*feed) *topic {
	t := newTopic(info, reset)
	t.readFor, t.lacking, t.shared = boards, boards, boards[0].log.Shared
	return t
}

// since returns a time before the first update of each board that no file has the beginning of: zero if reading begins
// with the log, or where files end. Only a shared topic is not read from its beginning: it has other boards' updates
// there.
func (t *topic) since() (since time.Time) {
	for _, f := range t.lacking {
		if first := f.log.First; t.shared && (since.IsZero() || first.Before(since)) {
			since = first
		}
	}
	return since
}

// resumeFrom has reading resume where the boards' files end, at the lowest place of each partition. A board without a
// file of the topic then has it begin at its own first update, if that is earlier; where it shares no topic, that is
// the beginning. The offsets of a file count although Redis has proved its entries void: what Redis has lost is before
// them in the log, and must not be read again.
func (t *topic) resumeFrom(boards []*feed) {
	var at []int64
	var lacking []*feed
	for _, f := range boards {
		s := f.file.resumePoint()
		if s == nil || s.TopicID != t.id || len(s.Offsets) != len(t.parts) {
			lacking = append(lacking, f)
			continue
		}
		if at == nil {
			at = slices.Clone(s.Offsets)
		}
		for i := range at {
			at[i] = min(at[i], s.Offsets[i])
		}
	}
	reads := func(f *feed) bool { return !t.shared || f.log.First.IsZero() } // from the log's beginning
	if at != nil && !slices.ContainsFunc(lacking, reads) {
		t.resumeAt, t.lacking = at, lacking
	}
}

// resume makes reading begin at resumeAt. It returns false if the log was truncated after that, or ends before: then it
// is read from its beginning, and the gate sees what is missing.
func (t *topic) resume() bool {
	for i, p := range t.parts {
		if at := t.resumeAt[i]; at < p.low || at > p.high {
			t.resumeAt, t.lacking = nil, t.readFor
			return false
		}
	}
	for i, p := range t.parts {
		p.start(t.resumeAt[i])
	}
	t.resumed = len(t.lacking) == 0
	return true
}

// join has boards begin with what comes next in a shared topic that is being read. If they
// were changed before, the topic has lost their beginning as far as they can tell.
func (t *topic) join(boards []*feed) {
	for _, f := range boards {
		if t.lacks(f) {
			f.replica.join(t)
			f.whole = t
		}
	}
}

// lacks returns whether a board has missed something of the reading.
func (t *topic) lacks(f *feed) bool { return f.whole != t }
