package admission

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"rankcache"
)

// kind is the outcome of a decision about a board.
type kind uint8

const (
	kindUnknown kind = iota // of unknown size
	kindRefused
	kindAdmitted
)

// verdict is the decision about one board.
type verdict struct {
	kind   kind
	size   Size  // as last known
	bytes  int64 // estimated, or used if that is more
	reason string
	since  time.Time
}

func (v verdict) admitted() bool { return v.kind == kindAdmitted }

// decision is the input of one decision about all wanted boards.
type decision struct {
	budget int64
	wanted []rankcache.BoardID
	before map[rankcache.BoardID]verdict
	usage  map[rankcache.BoardID]Usage

	sizes    map[rankcache.BoardID]*Size
	err      error // of reading sizes
	answered bool  // a size is known, or none had to be read
}

// notAdmitted returns the wanted boards that are not admitted yet.
func (d *decision) notAdmitted() (open []rankcache.BoardID) {
	d.answered = true
	for _, id := range d.wanted {
		if !d.before[id].admitted() {
			open = append(open, id)
		}
	}
	return open
}

// readSizes reads the sizes of boards from origin.
func (d *decision) readSizes(ctx context.Context, origin Origin, boards []rankcache.BoardID) {
	sizes, err := origin.Sizes(ctx, boards)
	d.sizes, d.err = make(map[rankcache.BoardID]*Size, len(boards)), err
	d.answered = len(boards) < len(d.wanted)
	for i, id := range boards {
		if i < len(sizes) && sizes[i] != nil {
			d.sizes[id], d.answered = sizes[i], true
		}
	}
}

// decide returns the verdict about each wanted board and the memory that the
// admitted ones take. A board that does not fit does not keep later ones out.
func (d *decision) decide(now time.Time) (verdicts map[rankcache.BoardID]verdict, used int64) {
	verdicts = make(map[rankcache.BoardID]verdict, len(d.wanted))
	for _, id := range d.wanted {
		if v := d.before[id]; v.admitted() {
			v.bytes = charge(v, d.usage[id])
			verdicts[id] = v
			used += v.bytes
		}
	}
	for _, id := range d.wanted {
		if _, decided := verdicts[id]; decided {
			continue
		}
		v := d.judge(id, used)
		if was := d.before[id]; was.kind == v.kind && !was.since.IsZero() {
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

// judge decides about one board that is not admitted yet.
func (d *decision) judge(id rankcache.BoardID, used int64) verdict {
	size := d.sizes[id]
	switch {
	case d.budget == 0:
		return verdict{kind: kindAdmitted}
	case size == nil:
		return verdict{kind: kindUnknown, reason: fmt.Sprintf("its size is unknown: %v", d.err)}
	}
	v := verdict{size: *size, bytes: Estimate(*size)}
	if free := d.budget - used; v.bytes > free {
		v.kind = kindRefused
		v.reason = fmt.Sprintf("its %d members need about %s, but only %s of the budget of %s are free", size.Members,
			text(v.bytes), text(max(free, 0)), text(d.budget))
		return v
	}
	v.kind = kindAdmitted
	return v
}

func text(bytes int64) string { return humanize.IBytes(uint64(bytes)) }

// The estimate, in bytes. Measured are 75 to 97 per member above its id from 57,000
// members on, with live updates, just after and just before the hash table grows,
// and less than 100 KiB for a board of 1,000 (BenchmarkMemory of localboard,
// TestEstimateCoversWhatBoardsTake). The rest covers new members, removed ones whose
// memory is not reused yet, and the previous publication while it has readers.
const (
	perBoard  = 128 << 10
	perMember = 100
)

// Estimate returns the bytes of memory that a board of that size needs.
func Estimate(s Size) int64 {
	return perBoard + int64(s.Members)*int64(perMember+s.IDBytes)
}

// charge returns the part of the budget that an admitted board takes: the estimate
// with which it was admitted while it is filled, an estimate of its present size once
// it is open, and never less than its usage.
func charge(v verdict, u Usage) int64 {
	estimate := v.bytes
	if u.Open {
		size := u.Size
		size.IDBytes = max(size.IDBytes, v.size.IDBytes)
		estimate = Estimate(size)
	}
	return max(estimate, u.Bytes)
}
