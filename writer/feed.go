package writer

import (
	"slices"
	"time"

	"rankcache/class"
	"rankcache/rooms"
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
