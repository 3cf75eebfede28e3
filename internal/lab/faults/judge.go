package faults

import (
	"fmt"
	"slices"
	"time"

	"rankcache"
)

// sources an answer may name.
var sources = []string{"local", "hot", "redis"}

// unknownSpan is how many seqs are looked through for an answer that names none.
const unknownSpan = 2000

// atOnce returns what is wrong with an answer as far as its moment tells.
func (k *knowledge) atOnce(a *Ask, r *Reply, phase Phase) string {
	switch {
	case r.Code == 404 && a.Kind == KindMember:
		return ""
	case r.Err != nil:
		return r.Err.Error()
	case !slices.Contains(sources, r.Source):
		return "unknown source"
	case k.losing || a.past != len(k.past):
		return "" // writes were lost while it was on its way
	}
	if had := k.reached(a.at.Add(-r.Age - time.Millisecond)); r.Seq < had && r.Seq != 0 {
		return fmt.Sprintf("older than its age: Redis had seq %d then", had)
	}
	if len(k.past) > 0 && phase != Recovered {
		return "" // it may be of before the loss
	}
	return k.backwards(a, r)
}

// backwards reports whether the answer goes back behind one that was complete before
// it was requested. Copies do not at all; Redis is read in flights, which do not
// for one question.
func (k *knowledge) backwards(a *Ask, r *Reply) string {
	key := a.floorKey(r.Source)
	if r.Seq < a.floor[r.Source] && r.Seq != 0 {
		return fmt.Sprintf("went back: an earlier answer had seq %d", a.floor[r.Source])
	}
	k.floor[key] = max(k.floor[key], r.Seq)
	return ""
}

// floorKey names what must not go backwards.
func (q *Question) floorKey(source string) string {
	if source != "redis" {
		return source
	}
	return fmt.Sprint(source, q.Kind, q.Start, q.Limit, q.Members)
}

// Verdicts is what judging has found.
type Verdicts struct {
	Judged int
	Wrong  []Wrong
	Lost   []Ask // answered from what Redis had acknowledged and then lost
}

// Judge judges the answers whose seq is known by now; at the end, when no order is
// on its way, those with any other seq are wrong.
func (o *Oracle) Judge(end bool) Verdicts {
	o.mu.Lock()
	defer o.mu.Unlock()
	var v Verdicts
	for _, k := range o.boards {
		v.Judged += len(k.wrong)
		v.Wrong = append(v.Wrong, k.wrong...)
		k.wrong = nil
		k.judge(end, &v)
	}
	return v
}

func (k *knowledge) judge(end bool, v *Verdicts) {
	slices.SortStableFunc(k.asked, func(a, b judged) int { return int(a.Seq) - int(b.Seq) }) // so that the walk is short
	var later []judged
	for _, j := range k.asked {
		if !end && (max(j.Seq, j.meSeq()) > k.now.known() || j.Seq == 0) {
			later = append(later, j)
			continue
		}
		v.Judged++
		why, lost := k.verdict(&j)
		if lost {
			v.Lost = append(v.Lost, *j.Ask)
			if why == "" && j.Phase == Recovered {
				why = "of writes that Redis has lost"
			}
		}
		if why != "" {
			v.Wrong = append(v.Wrong, Wrong{*j.Ask, *j.Reply, why})
		}
	}
	k.asked = later
}

// verdict returns what is wrong with the answer, and whether some of it is right in
// a Redis that has lost writes since. A page and the standing beside it may be of
// two histories, for each names its seq.
func (k *knowledge) verdict(j *judged) (why string, lost bool) {
	for _, against := range []func(*history) string{j.against, j.meAgainst} {
		what := against(k.now)
		if what != "" && slices.ContainsFunc(k.past, func(h *history) bool { return against(h) == "" }) {
			what, lost = "", true
		}
		if why == "" {
			why = what
		}
	}
	return why, lost
}

// Current explains why the answer is not of what Redis has and knows now, "" if it is.
func (o *Oracle) Current(a *Ask, r *Reply) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return (&judged{a, r}).against(o.of(a.Board).now)
}

func (j *judged) meSeq() uint64 {
	if j.Me == nil {
		return 0
	}
	return j.Me.Seq
}

// against returns what is wrong with the answer if h is the truth.
func (j *judged) against(h *history) string {
	switch {
	case j.Code == 404:
		return j.missing(h)
	case j.Seq > h.known():
		return fmt.Sprintf("unknown seq, only up to %d is known", h.known())
	case j.Seq == 0:
		return j.between(h)
	}
	h.walk(j.Seq)
	// Redis's own checksum may be wrong for a while after a change by hand.
	if j.Source == "local" && j.State.HasSum && j.State != (rankcache.State{Run: j.State.Run, Seq: j.Seq, Sum: h.sum, HasSum: true}) {
		return fmt.Sprintf("state %v, want seq %d and sum %012x", j.State, j.Seq, h.sum)
	}
	return j.compare(h)
}

// between looks for a seq at which the answer, which names none, is right.
func (j *judged) between(h *history) string {
	to := min(h.known(), j.low+unknownSpan)
	why := "no such seq"
	for seq := j.low; seq <= to; seq++ {
		h.walk(seq)
		if why = j.compare(h); why == "" {
			return ""
		}
	}
	return fmt.Sprintf("not the board at any seq from %d to %d: %s", j.low, to, why)
}

// missing checks that the member was not on the board at some seq that may have
// been looked at.
func (j *judged) missing(h *history) string {
	for seq := min(j.low, h.known()); seq <= h.known(); seq++ {
		if seq == j.low {
			if h.walk(seq); h.rank(j.Members[0]) == 0 {
				return ""
			}
		}
		if seq > 0 && h.changes[seq-1].removes(j.Members[0]) {
			return ""
		}
	}
	return fmt.Sprintf("member %s was on the board from seq %d on", j.Members[0], j.low)
}

// compare compares the answer with the board that h has walked to.
func (j *judged) compare(h *history) string {
	if j.Total != len(h.rows) {
		return fmt.Sprintf("total %d, want %d", j.Total, len(h.rows))
	}
	switch j.Kind {
	case KindTop, KindMe: // whose standing has a seq of its own
		return h.sameRows(j.Rows, j.Start, h.page(j.Question.Start, j.Limit))
	case KindMember:
		return j.compareMember(h)
	}
	return samePlaces(j.Places, j.Members, h)
}

// meAgainst returns what is wrong with the caller's own standing, which is of a
// seq of its own.
func (j *judged) meAgainst(h *history) string {
	switch {
	case j.Me == nil || j.Me.Seq == 0:
		return "" // not on the board, or not known when
	case j.Me.Seq > h.known():
		return fmt.Sprintf("unknown seq %d of me, only up to %d is known", j.Me.Seq, h.known())
	}
	h.walk(j.Me.Seq)
	return samePlaces([]Row{*j.Me}, j.Members, h)
}

func (j *judged) compareMember(h *history) string {
	if why := samePlaces([]Row{{Rank: j.Rank, Member: j.Member, Score: j.Score, Data: j.Data}}, j.Members, h); why != "" {
		return why
	}
	from := max(j.Rank-1-j.Limit, 0)
	return h.sameRows(j.Near, from, h.page(from, j.Rank+j.Limit-from))
}

func (h *history) sameRows(got []Row, start int, want []rankcache.Entry) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.badProfile() {
			return fmt.Sprintf("member %s has the profile %s", g.Member, g.Profile)
		}
		if g.Rank != start+i+1 || g.Member != w.Member || g.Score != w.Score {
			return fmt.Sprintf("row %d is rank %d %s %v, want %s %v", start+i+1, g.Rank, g.Member, g.Score, w.Member, w.Score)
		}
		if data := h.places[w.Member].data; g.Data != data {
			return fmt.Sprintf("row %d, %s, has data %q, want %q", start+i+1, g.Member, g.Data, data)
		}
	}
	return ""
}

func samePlaces(got []Row, members []string, h *history) string {
	if len(got) != len(members) {
		return fmt.Sprintf("%d members, want %d", len(got), len(members))
	}
	for i, m := range members {
		if g, rank, p := got[i], h.rank(m), h.places[m]; g.Member != m || g.Rank != rank || g.Score != p.score || g.Data != p.data {
			return fmt.Sprintf("member %s has rank %d, %v and data %q, want %d, %v and %q (%s)", g.Member, g.Rank, g.Score, g.Data, rank, p.score, p.data, m)
		}
	}
	return ""
}
