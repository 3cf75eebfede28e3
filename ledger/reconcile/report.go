package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rankcache"
)

// Kinds of differences.
const (
	Missing   = "missing"   // in the books, not in the ledger
	Different = "different" // the order is in both, with another op or number
	Extra     = "extra"     // in the ledger, not in the books
	Bad       = "bad"       // in the books, and no command could be like it
)

var Kinds = []string{Missing, Different, Extra, Bad} // lists the kinds of differences

// Reasons why a missing order is not posted.
const (
	TooOld       = "too_old"       // Redis may have forgotten its order id, so that it might count twice
	InRankLost   = "rank_lost"     // Redis has lost it a moment ago: the writers apply it again
	Closed       = "closed"        // its board is closed
	OnlyLooked   = "only_looked"   // nothing was to be posted
	Changed      = "changed"       // its member was set or deleted since, or changed at all, if the order is a set or delete itself
	TooMany      = "too_many"      // as many as may be were posted within a minute: are these the right books?
	PostedLately = "posted_lately" // and the writers have not applied it: look at update_rank's refused commands
)

// Report is the stable JSON of a comparison. Counts are of rows, an order id and member each.
type Report struct {
	From        time.Time      `json:"from"`
	To          time.Time      `json:"to"` // what is younger is not compared yet
	Books       int            `json:"books"`
	Ledger      int            `json:"ledger"`
	Counts      map[string]int `json:"counts"`      // by kind
	Posted      int            `json:"posted"`      // of those that are missing
	Unnamed     int            `json:"unnamed"`     // rows of the ledger without an order id, which no books can have
	Differences []Difference   `json:"differences"` // the first of each kind, at most as many as were asked for
}

// Difference is one order that books and ledger don't both have alike.
type Difference struct {
	Kind   string            `json:"kind"`
	Order  string            `json:"order"`
	Board  rankcache.BoardID `json:"board,omitempty"`
	Class  string            `json:"class,omitempty"`
	Dims   map[string]string `json:"dims,omitempty"`
	Member string            `json:"member"`
	Books  *Change           `json:"books,omitempty"`
	Ledger *Change           `json:"ledger,omitempty"`
	Posted bool              `json:"posted,omitempty"`
	Why    string            `json:"why,omitempty"` // it is not posted, or bad
}

func newReport(from, to int64) *Report {
	r := &Report{From: time.UnixMilli(from).UTC(), To: time.UnixMilli(to).UTC(), Counts: make(map[string]int), Differences: []Difference{}}
	for _, kind := range Kinds {
		r.Counts[kind] = 0
	}
	return r
}

// Differs reports whether anything differs.
func (r *Report) Differs() int {
	n := 0
	for _, count := range r.Counts {
		n += count
	}
	return n
}

func (r *Report) add(most int, d Difference) {
	if r.Counts[d.Kind]++; r.Counts[d.Kind] <= most {
		r.Differences = append(r.Differences, d)
	}
	if d.Posted {
		r.Posted++
	}
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Differences, func(a, b Difference) int {
		return cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind))
	})
}

// String returns the change as reports print it, "-" for none.
func (c *Change) String() string {
	if c == nil {
		return "-"
	}
	return fmt.Sprintf("%s %v", c.Op, c.Number)
}
