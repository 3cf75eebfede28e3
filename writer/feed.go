package writer

import (
	"slices"
	"time"

	"rankcache/class"
	"rankcache/rooms"
	"rankcache/wire"
)

// fedJobs are the jobs of the boards that jobs feed, by the index of the one that feeds them; nil if there are none.
type fedJobs [][]*job

func (f fedJobs) of(i int) []*job {
	if f == nil {
		return nil
	}
	return f[i]
}

func (f fedJobs) all() []*job { return slices.Concat(f...) }

// fed returns what jobs feed. Only what has changed its own board, now
// or before, feeds others: a crash can come between.
func (p *processor) fed(jobs []*job) (fed fedJobs) {
	for i, j := range jobs {
		if j.rules.kind == nil || len(j.rules.kind.Feeds) == 0 || !j.done || j.Refusal != nil || j.Op.Own() {
			continue
		}
		if fed == nil {
			fed = make(fedJobs, len(jobs))
		}
		fed[i] = p.fedBy(j)
	}
	return fed
}

// fedBy returns the jobs of the boards that a change of j's board feeds. They have its
// order id and time. Whether the change is in time and within the guard is decided already.
func (p *processor) fedBy(j *job) []*job {
	file := p.opts.Tiers.File()
	board, _ := j.rules.kind.Parse(j.Board)
	var jobs []*job
	for _, to := range file.Fed(j.rules.kind) {
		member, dims, ok := to.Of(j.Member, board.Dims, j.By)
		if !ok { // the member had no such group
			continue
		}
		kind := to.Class
		c := &Command{Class: kind.Name(), Dims: dims, Member: member, Op: j.Op, Number: j.Number, Form: kind.Form, OrderID: j.OrderID, At: j.Update.At, HasData: kind.Data}
		fed := &job{Command: c, round: j.round, origin: j.origin}
		jobs = append(jobs, fed)
		to, err := kind.At(dims, instant(board, c.At))
		if err == nil {
			err = p.opts.Names.CheckBoard(to.ID)
		}
		if err != nil {
			fed.Refusal, fed.done = asRefusal(noBoard(err)), true
			continue
		}
		to, _ = to.For(member) // a whole board has all members
		c.Board, c.Dims, fed.rules = to.ID, to.Dims, rulesOf(to, kind)
		fed.rules.guard = rooms.Guard{}
		if p.opts.Tiers.Mode(c.Board, "") == rooms.ModeBlocked {
			fed.Refusal, fed.done = errBlocked, true
		}
	}
	return jobs
}

// instant returns a time of the period in which the increments of a board count, whatever
// their own time is: that of a command that names the board's id may be another's.
func instant(b class.Board, at int64) time.Time {
	if b.Period.Tag == "" {
		return time.UnixMilli(at)
	}
	return b.Period.Start
}

// rolled appends to what jobs feed the jobs of the rolling boards that they and what they feed have changed, and
// returns those jobs.
func (p *processor) rolled(jobs []*job, fed fedJobs) (with fedJobs, added []*job) {
	for i, j := range jobs {
		into := p.rolledBy(j)
		for _, changed := range fed.of(i) {
			into = append(into, p.rolledBy(changed)...)
		}
		if len(into) == 0 {
			continue
		}
		if fed == nil {
			fed = make(fedJobs, len(jobs))
		}
		fed[i], added = append(fed[i], into...), append(added, into...)
	}
	return fed, added
}

// rolledBy returns the jobs of the rolling boards that an increment of j's board changes, if that has taken it. They
// have its order id and time.
func (p *processor) rolledBy(j *job) (jobs []*job) {
	if !j.done || j.Refusal != nil || j.Op.Own() {
		return nil
	}
	for _, to := range rollingBoards(p.opts.Tiers.File(), j.Board, j.rules.kind) {
		c := &Command{Board: to.ID, Class: to.kind.Name(), Dims: to.Dims, Member: j.Member, Op: wire.OpIncr, Number: j.Number, Form: to.kind.Form, OrderID: j.OrderID, At: j.Update.At}
		rolled := &job{Command: c, round: j.round, rules: rulesOf(to.Board, to.kind)}
		if p.opts.Tiers.Mode(c.Board, "") == rooms.ModeBlocked {
			rolled.Refusal, rolled.done = errBlocked, true
		}
		if err := p.opts.Names.CheckBoard(c.Board); err != nil {
			rolled.Refusal, rolled.done = asRefusal(noBoard(err)), true
		}
		jobs = append(jobs, rolled)
	}
	return jobs
}
