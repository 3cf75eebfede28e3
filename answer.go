package rankcache

import "time"

// Answer is the answer to one [Query]: its rows, and each of its members. Unless an [Own] tells otherwise, all of it is
// of the one moment that the stamp describes. Its entries are shared and must not be changed.
type Answer struct {
	Stamp
	Source     Source
	CurrentAt  time.Time // when the source was last known to equal Redis; zero: never
	Lags       bool      // the answer is of a replica of Redis: it was Redis's own at CurrentAt or later
	Form       ScoreForm // how the scores are shown: those of entries and members are raw
	Incomplete bool      // the board sums up several periods and does not have all of them yet
	Beyond     bool      // members with scores of Range may be missing: they are beyond the first n of the sorted set
	// Kept is the same for all answers with the same rows of one state; nil: the rows were read for this query alone.
	Kept *Kept

	Start   int
	Entries []Entry
	Data    *Data // what those of the entries have beside their scores, perhaps of further members; nil: nothing
	Ahead   Ahead // of the first row, if it was asked for
	Matches int   // all rows within Range, if it was asked for
	Own     []Own // of the query's members, in their order
	// Shards are the seqs of a split board's shards; seq and sum of the stamp are their sums. nil: it is not split.
	Shards []uint64
	Err    error // why the board could not be read. Nothing else is set then.
}

// Own is one member with what stands next to it.
type Own struct {
	Standing
	Stamp  Stamp // of the board that it is of: beside a page of a hot board it may be Redis's
	Source Source
	// First is the 0-based index of the first of the Neighbours, the rows around the member's. They are read-only.
	First      int
	Neighbours []Entry
	Data       *Data // as that of an answer, of the member and the neighbours
	Ahead      Ahead // that of the first of the Neighbours, without them that of the member, if it was asked for
	// Better is the nearest better score in the query's direction; HasBetter is false where no member has one.
	Better    float64
	HasBetter bool
	// Ladder is what the rank is from, and that of Ahead; nil: they are exact. Within is how far from the true rank
	// this one may be, if the board has not changed since the ladder was made.
	Ladder *Ladder
	Within int
	Err    error // why the member could not be read, though the rows could
}

// Source is who answers.
type Source uint8

// The sources of an answer.
const (
	SourceLocal  Source = iota // whole local copy
	SourceHot                  // refreshed local top page
	SourceRedis                // Redis
	SourceLedger               // the ledger, while Redis is away
	SourceFinal                // the ledger's final of a closed board
)

const Sources = SourceFinal + 1 // how many there are

// String returns the source as answers name it: local, hot, redis, ledger or final.
func (s Source) String() string { return [...]string{"local", "hot", "redis", "ledger", "final"}[s] }

// IsCopy reports whether the source is a copy in this process.
func (s Source) IsCopy() bool { return s < SourceRedis }

// ScoreRank returns the rank of Range's one score: 1 + the members with a better one; 0 beyond the first n.
func (a *Answer) ScoreRank() int {
	if a.Beyond && a.Matches == 0 {
		return 0
	}
	return a.Start + 1
}

// Fail makes a tell nothing but err.
func (a *Answer) Fail(err error) { *a = Answer{Own: a.Own[:0], Err: err} }

// Begin makes a an answer to q without rows, which has its members' names.
func (a *Answer) Begin(q *Query, source Source, stamp Stamp, currentAt time.Time) {
	own := a.Own[:0]
	for _, m := range q.Members {
		own = append(own, Own{Standing: Standing{Member: m}, Stamp: stamp, Source: source})
	}
	*a = Answer{Stamp: stamp, Source: source, CurrentAt: currentAt, Form: q.Form, Start: q.Start, Own: own}
}

// Find sets those of q's members that are among the rows, the first of which has the 0-based
// index first, best first, or that are on no row of the whole board. Others get [ErrNotKept].
func (a *Answer) Find(q *Query, rows []Entry, first int) {
	whole := first == 0 && len(rows) >= a.Members
	for i := range a.Own {
		own := &a.Own[i]
		if q.Scores != nil {
			own.Err = ErrNotKept
			continue
		}
		if at := rowOf(rows, own.Member); at < 0 && !whole || at >= 0 && !own.take(q, rows, first, at, whole) {
			own.Err = ErrNotKept
		}
		own.Data = a.Data
	}
}

// rowOf returns the index of the member's row, -1 if it has none.
func rowOf(rows []Entry, member string) int {
	for i := range rows {
		if rows[i].Member == member {
			return i
		}
	}
	return -1
}

// take sets the member, which is at a row, and what q wants around it; false if the rows end before these do.
func (o *Own) take(q *Query, rows []Entry, first, at int, whole bool) bool {
	o.Score, o.Rank = rows[at].Score, first+at+1
	ahead := at
	if q.Around > 0 {
		n := q.Neighbours()
		if at+n >= len(rows) && !whole {
			return false
		}
		ahead = max(0, at-n)
		o.First, o.Neighbours = first+ahead, rows[ahead:min(at+n+1, len(rows))]
	}
	if q.Ranked() {
		o.Ahead = aheadOf(rows, ahead, q.Form)
	}
	for i := at - 1; q.Gap && i >= 0 && !o.HasBetter; i-- {
		o.Better = rows[i].Score
		o.HasBetter = !q.Form.Same(o.Better, o.Score)
	}
	return true
}

// Approximate gives the member, whose score and stamp are known, the rank and what is ahead by the ladder of q.
func (o *Own) Approximate(q *Query) {
	o.Ladder = q.Ladder
	o.Rank, o.Within = q.Ladder.Place(Entry{o.Member, o.Score}, q.Order, o.Stamp.Members)
	if q.Percentile {
		o.Ahead = q.Ladder.Ahead(o.Score, q.Form, q.Order, o.Stamp.Members)
	}
}

// aheadOf counts the members with a better score than that of a row. The rows begin with the best.
func aheadOf(rows []Entry, at int, form ScoreForm) Ahead {
	score := rows[at].Score
	for at > 0 && form.Same(rows[at-1].Score, score) {
		at--
	}
	return Ahead{Members: at, Scores: -1}
}
