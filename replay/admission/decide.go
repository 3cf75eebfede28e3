package admission

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"rankcache"
)

type kind uint8 // the outcome of a decision about a board

const (
	kindUnknown kind = iota // of unknown size
	kindRefused
	kindAdmitted
)

type verdict struct {
	kind   kind
	size   Size  // as last known
	held   int64 // estimated, or used if that is more
	fill   int64 // more while it is filled
	reason string
	since  time.Time
}

func (v verdict) admitted() bool { return v.kind == kindAdmitted }

// decision is the input of one decision about all wanted boards.
type decision struct {
	budget int64
	wanted []rankcache.BoardID
	firm   int // of them, the others linger
	before map[rankcache.BoardID]verdict
	usage  map[rankcache.BoardID]Usage
	over   bool // the admitted boards have outgrown the budget; as input: at the decision before

	sizes    map[rankcache.BoardID]*Size
	err      error // of reading sizes
	answered bool  // a size is known, or none had to be read

	verdicts map[rankcache.BoardID]verdict
	demand
	ofFirm demand   // of the admitted boards that don't linger
	linger []demand // of the lingering boards up to each that were admitted before; those behind the last were let go
}

// demand is the memory that admitted boards need.
type demand struct {
	held int64 // by all of them
	fill int64 // more by the one that takes most while it is filled; others wait for it
}

// bytes returns what the boards need when any one of them is filled.
func (m demand) bytes() int64 { return m.held + m.fill }

func (m demand) and(o demand) demand { return demand{m.held + o.held, max(m.fill, o.fill)} }

// with returns the demand with another board, if that is admitted.
func (m demand) with(v verdict) demand {
	if !v.admitted() {
		return m
	}
	return m.and(demand{v.held, v.fill})
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

// decide sets the verdicts and what the admitted need. A board that does not fit does not keep later ones out.
func (d *decision) decide(now time.Time) {
	d.verdicts = make(map[rankcache.BoardID]verdict, len(d.wanted))
	for _, id := range d.wanted {
		if v := d.before[id]; v.admitted() {
			v.measure(d.usage[id])
			d.verdicts[id] = v
			d.demand = d.with(v)
		}
	}
	d.giveUp()
	d.sumUp()
	for i, id := range d.wanted {
		v, decided := d.verdicts[id]
		if !decided {
			if v = d.judge(id); v.kind == kindRefused && i < d.firm && d.makeRoom(v) {
				v.kind, v.reason = kindAdmitted, ""
			}
			if d.demand = d.with(v); i < d.firm {
				d.ofFirm = d.ofFirm.with(v)
			}
		}
		v.since = now
		if was := d.before[id]; was.kind == v.kind && !was.since.IsZero() {
			v.since = was.since
		}
		d.verdicts[id] = v
	}
}

const slack = 20 // the share of the budget by which admitted boards may outgrow it, so that none comes and goes

// giveUp refuses admitted boards until the rest is within the budget, if they have outgrown it in two decisions: a
// board that is just copied takes twice its memory for some milliseconds. The last named goes first: the order of
// naming is the operator's, and a board that grows must not take the place of a more important one.
func (d *decision) giveUp() {
	wasOver := d.over
	if d.over = d.budget > 0 && d.bytes() > d.budget+d.budget/slack; !d.over || !wasOver {
		return
	}
	why := fmt.Sprintf("the boards have grown to %s, and the budget is %s: the last named is given up first", text(d.bytes()), text(d.budget))
	d.demand = demand{}
	for i, id := range d.wanted {
		next := d.with(d.verdicts[id])
		if next.bytes() > d.budget {
			d.letGo(why, d.wanted[i:]...)
			return
		}
		d.demand = next
	}
}

// sumUp sets what the boards need that were admitted before.
func (d *decision) sumUp() {
	for _, id := range d.wanted[:d.firm] {
		d.ofFirm = d.ofFirm.with(d.verdicts[id])
	}
	sum := demand{}
	for _, id := range d.wanted[d.firm:] {
		sum = sum.with(d.verdicts[id])
		d.linger = append(d.linger, sum)
	}
}

// letGo refuses those boards that are admitted.
func (d *decision) letGo(why string, boards ...rankcache.BoardID) {
	for _, id := range boards {
		if v := d.verdicts[id]; v.admitted() {
			v.kind, v.reason = kindRefused, why
			d.verdicts[id] = v
		}
	}
}

// makeRoom lets lingering boards go, the last named first, until another fits; false if it never does.
func (d *decision) makeRoom(other verdict) bool {
	other.kind = kindAdmitted
	if d.ofFirm.with(other).bytes() > d.budget {
		return false
	}
	for d.with(other).bytes() > d.budget {
		last := len(d.linger) - 1
		d.letGo("its period has ended, and others need the memory", d.wanted[d.firm+last])
		d.linger, d.demand = d.linger[:last], d.ofFirm
		if last > 0 {
			d.demand = d.demand.and(d.linger[last-1])
		}
	}
	return true
}

// judge decides about one board that is not admitted yet.
func (d *decision) judge(id rankcache.BoardID) verdict {
	size := d.sizes[id]
	switch {
	case d.budget == 0:
		return verdict{kind: kindAdmitted}
	case size == nil:
		return verdict{kind: kindUnknown, reason: fmt.Sprintf("its size is unknown: %v", d.err)}
	}
	v := verdict{kind: kindAdmitted, size: *size, held: Estimate(*size), fill: Fill(*size)}
	if needs := d.with(v).bytes(); needs > d.budget {
		v.kind = kindRefused
		v.reason = fmt.Sprintf("its %d members need about %s and, while it is filled, %s more, but only %s of the budget of %s are free",
			size.Members, text(v.held), text(v.fill), text(max(d.budget-d.held, 0)), text(d.budget))
	}
	return v
}

func text(bytes int64) string { return humanize.IBytes(uint64(bytes)) }

// The estimate, in bytes. Measured are 58 to 80 per member above its id from 57,000 members on, and less than 100 KiB
// for a board of 1,000 (BenchmarkMemory of localboard, TestEstimateCoversWhatBoardsTake). The rest covers new and
// removed members, and the previous publication while it has readers.
const (
	perBoard  = 128 << 10
	perMember = 85
)

// The further memory that a board takes while it is filled: the entries read from Redis or a file (24 bytes and the id,
// in a slice that grows), the hash table before it grew, and the rows that are sorted.
const (
	fillPerBoard  = 64 << 10
	fillPerMember = 40
)

// Estimate returns the bytes of memory that a board of that size holds.
func Estimate(s Size) int64 {
	return perBoard + int64(s.Members)*int64(perMember+s.IDBytes)
}

// Fill returns the bytes that it takes beside them while it is filled.
func Fill(s Size) int64 { return fillPerBoard + int64(s.Members)*int64(fillPerMember+s.IDBytes) }

// measure sets what an admitted board takes: the estimate with which it was admitted while it is filled for the first
// time, an estimate of its present size once it is open, and never less than its usage.
func (v *verdict) measure(u Usage) {
	if u.Open {
		v.size.Members, v.size.IDBytes = u.Members, max(u.IDBytes, v.size.IDBytes)
		v.held, v.fill = Estimate(v.size), Fill(v.size)
	}
	v.held = max(v.held, u.Bytes)
}
