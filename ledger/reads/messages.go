package reads

import (
	"fmt"
	"math"

	"rankcache"
	"rankcache/ledger"
)

const Path = "/v1/reads" // the route of reads on the ledger's port

// Limits of one request.
const (
	MaxBoards = 10        // how many boards one request may read
	maxAround = 100       // the most neighbours on either side of a member
	maxStart  = 1_000_000 // the deepest first row: the database counts those before it
	// maxRequest and maxAnswer are in bytes. A member in JSON takes 6 times its bytes at most.
	maxRequest = 1 << 20
	maxAnswer  = 16 << 20
)

// Request asks for up to [MaxBoards] boards.
type Request struct {
	Reads []Read `json:"reads"`
}

// Read asks for a run of rows of one board and for members, all of one moment.
type Read struct {
	Board   rankcache.BoardID `json:"board"`
	Order   string            `json:"order,omitempty"` // asc; empty or desc: best first
	Start   int               `json:"start,omitempty"`
	Limit   int               `json:"limit,omitempty"`   // 0: no rows
	Members []string          `json:"members,omitempty"` // up to [rankcache.MaxTop], one if Around or Gap is set
	Around  *int              `json:"around,omitempty"`  // neighbours on either side; absent: none
	Gap     bool              `json:"gap,omitempty"`     // whether Better is wanted
	Ranked  bool              `json:"ranked,omitempty"`  // whether Ahead is wanted
	// Integers tells that scores with the same integer part are the same score to Gap and Ranked.
	Integers bool `json:"integers,omitempty"`
	// Scores asks for scores without ranks, of a board that keeps its best alone in the sorted set; for nothing else.
	Scores bool `json:"scores,omitempty"`
	// Range limits the rows to those with such raw scores: Start and Limit count these alone.
	Range *Range `json:"range,omitempty"`
}

// Range is the raw scores from Least to Most, both included; nil: no limit.
type Range struct {
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
}

func rangeOf(least, most float64) *Range {
	var r Range
	if !math.IsInf(least, -1) {
		r.Least = new(min(least, math.MaxFloat64))
	}
	if !math.IsInf(most, 1) {
		r.Most = new(max(most, -math.MaxFloat64))
	}
	return &r
}

// scores returns the least and the greatest score, which no score is beyond where there is no limit.
func (r *Range) scores() (least, most float64) {
	least, most = -math.MaxFloat64, math.MaxFloat64
	if r.Least != nil {
		least = *r.Least
	}
	if r.Most != nil {
		most = *r.Most
	}
	return least, most
}

func (r *Range) lower() float64 { return min(r.scores()) }

// Response has the answers in the order of the reads.
type Response struct {
	Answers []Answer `json:"answers"`
}

// Answer is one board, or why it is not answered.
type Answer struct {
	// Code is why there is no answer, "": bad_request, unknown_board, not_proved, not_covered, unavailable.
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`

	State   string `json:"state,omitempty"` // as [rankcache.State.String] writes it
	Life    string `json:"life,omitempty"`  // final, or open where the ledger does not know
	AgeMs   int64  `json:"age_ms"`          // since the ledger was last known to have every change
	Members int    `json:"members"`
	Entries []Row  `json:"entries,omitempty"`
	Ahead   int    `json:"ahead,omitempty"` // members with a better score than the first of the entries
	// Before and Within are the members before the range, and in it; nil: none was asked for.
	Before *int  `json:"before,omitempty"`
	Within *int  `json:"within,omitempty"`
	Own    []Own `json:"own,omitempty"`
}

// Row is one row of a board: Score is shown, and Raw is what Redis has; nil: the same.
type Row struct {
	Member string   `json:"member"`
	Score  float64  `json:"score"`
	Raw    *float64 `json:"raw,omitempty"`
	Data   string   `json:"data,omitempty"` // what it has beside its score
}

func rowOf(r ledger.Row) Row { return Row{r.Member, r.Score, rawOf(r.Score, r.Raw), r.Data} }

// rawOf returns a raw score if it is not the one that is shown.
func rawOf(score, raw float64) *float64 {
	if raw == score {
		return nil
	}
	return &raw
}

func (r *Row) raw() float64 {
	if r.Raw == nil {
		return r.Score
	}
	return *r.Raw
}

// Own is a member with what stands next to it. Rank is 1-based; 0: it is not on the board, or ranks were not asked for.
type Own struct {
	Row
	Rank   int  `json:"rank"`
	Scored bool `json:"scored,omitempty"` // of [Read].Scores: the member has a score
	// Cut tells that the board's final does not go as far as the member, if it is there: nothing else is set.
	Cut        bool     `json:"cut,omitempty"`
	First      int      `json:"first,omitempty"` // 0-based index of the first of the neighbours
	Neighbours []Row    `json:"neighbours,omitempty"`
	Ahead      int      `json:"ahead,omitempty"` // of the first of the neighbours, without them of the member
	Better     *float64 `json:"better,omitempty"`
	BetterRaw  *float64 `json:"better_raw,omitempty"` // as Raw
}

func (r *Request) check() error {
	if n := len(r.Reads); n < 1 || n > MaxBoards {
		return fmt.Errorf("%d reads, want 1 to %d", n, MaxBoards)
	}
	for i := range r.Reads {
		if err := r.Reads[i].check(); err != nil {
			return fmt.Errorf("read %d: %w", i, err)
		}
	}
	return nil
}

func (r *Read) check() error {
	around := 0
	if r.Around != nil {
		around = *r.Around
	}
	switch {
	case r.Order != "" && r.Order != rankcache.Descending.String() && r.Order != rankcache.Ascending.String():
		return fmt.Errorf("order %.10q, want asc or desc", r.Order)
	case r.Start < 0 || r.Start > maxStart || r.Limit < 0 || r.Limit > rankcache.MaxTop:
		return fmt.Errorf("%d rows from %d, want 0 to %d from 0 to %d", r.Limit, r.Start, rankcache.MaxTop, maxStart)
	case around < 0 || around > maxAround:
		return fmt.Errorf("%d neighbours, want 0 to %d", around, maxAround)
	case len(r.Members) > rankcache.MaxTop || len(r.Members) > 1 && (r.Around != nil || r.Gap):
		return fmt.Errorf("%d members, want up to %d, and one with around or gap", len(r.Members), rankcache.MaxTop)
	case r.Scores && (r.Limit > 0 || r.Around != nil || r.Gap || r.Ranked || r.Range != nil):
		return fmt.Errorf("a read of scores takes no rows, around, gap, ranked and range")
	case r.Limit == 0 && len(r.Members) == 0 && r.Range == nil:
		return fmt.Errorf("neither rows nor members are wanted")
	}
	for _, m := range r.Members {
		if err := rankcache.CheckMember(m); err != nil {
			return err
		}
	}
	return r.Board.Check()
}

func (r *Read) direction() rankcache.Direction {
	if r.Order == rankcache.Ascending.String() {
		return rankcache.Ascending
	}
	return rankcache.Descending
}

// form returns the form as far as it tells which raw scores are the same.
func (r *Read) form() rankcache.ScoreForm {
	if r.Integers {
		return rankcache.ScoreInteger
	}
	return rankcache.ScoreNumber
}
