package admission

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"rankcache"
)

// kind is what was found about a board.
type kind uint8

const (
	kindUnknown kind = iota // how large it is
	kindRefused
	kindAdmitted
)

// verdict is what was decided about one board.
type verdict struct {
	kind   kind
	size   Size  // as last known
	bytes  int64 // reckoned, or held if that is more
	reason string
	since  time.Time
}

func (v verdict) admitted() bool { return v.kind == kindAdmitted }

// question is everything that a decision depends on.
type question struct {
	budget int64
	wanted []rankcache.BoardID
	before map[rankcache.BoardID]verdict
	held   map[rankcache.BoardID]Held

	sizes    map[rankcache.BoardID]*Size
	trouble  error
	answered bool // a size is known, or none was to be known
}

// unsettled returns the boards that are not admitted yet.
func (q *question) unsettled() (open []rankcache.BoardID) {
	q.answered = true
	for _, id := range q.wanted {
		if !q.before[id].admitted() {
			open = append(open, id)
		}
	}
	return open
}

// ask learns how large boards are.
func (q *question) ask(ctx context.Context, origin Origin, boards []rankcache.BoardID) {
	sizes, err := origin.Sizes(ctx, boards)
	q.sizes, q.trouble = make(map[rankcache.BoardID]*Size, len(boards)), err
	q.answered = len(boards) < len(q.wanted)
	for i, id := range boards {
		if i < len(sizes) && sizes[i] != nil {
			q.sizes[id], q.answered = sizes[i], true
		}
	}
}

// decide returns the verdict about each wanted board and how much memory the
// admitted ones take. A board that does not fit holds up none behind it.
func (q *question) decide(now time.Time) (verdicts map[rankcache.BoardID]verdict, used int64) {
	verdicts = make(map[rankcache.BoardID]verdict, len(q.wanted))
	for _, id := range q.wanted {
		if v := q.before[id]; v.admitted() {
			v.bytes = charge(v, q.held[id])
			verdicts[id] = v
			used += v.bytes
		}
	}
	for _, id := range q.wanted {
		if _, done := verdicts[id]; done {
			continue
		}
		v := q.judge(id, used)
		if was := q.before[id]; was.kind == v.kind && !was.since.IsZero() {
			v.since = was.since
		} else {
			v.since = now
		}
		verdicts[id] = v
		if v.admitted() {
			used += v.bytes
		}
	}
	return verdicts, used
}

// judge decides about a board that is not admitted yet.
func (q *question) judge(id rankcache.BoardID, used int64) verdict {
	size := q.sizes[id]
	switch {
	case q.budget == 0:
		return verdict{kind: kindAdmitted}
	case size == nil:
		return verdict{kind: kindUnknown, reason: fmt.Sprintf("how much memory it needs is not known: %v", q.trouble)}
	}
	v := verdict{size: *size, bytes: Estimate(*size)}
	if free := q.budget - used; v.bytes > free {
		v.kind = kindRefused
		v.reason = fmt.Sprintf("its %d members need about %s, of the budget of %s only %s are free", size.Members,
			text(v.bytes), text(q.budget), text(max(free, 0)))
		return v
	}
	v.kind = kindAdmitted
	return v
}

func text(bytes int64) string { return humanize.IBytes(uint64(bytes)) }
