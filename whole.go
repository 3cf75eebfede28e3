package rankcache

// PageQuery asks for a run of rows of one board and, if Member is set, for that member
// with its surroundings.
type PageQuery struct {
	Board BoardID
	Order Direction
	// Start is the 0-based index of the first row, Limit the most rows; 0: none.
	Start, Limit int
	Member       string // "": none
	Around       int    // neighbours of Member on either side, -1: none are wanted
	Gap          bool   // whether [Surroundings].Better is wanted
	// Mode is the mode of the ranks, Percentile whether percentiles are wanted: both need
	// what is ahead of the rows. Ranks in the answer are ordinal in any mode.
	Mode       RankMode
	Percentile bool
	// Form is how scores are shown: those that are shown as the same are the same score to Gap,
	// Mode and Percentile.
	Form ScoreForm
}

// Ranked reports whether it is wanted what is ahead of the rows.
func (q *PageQuery) Ranked() bool { return q.Mode != Ordinal || q.Percentile }

// WholePage is the answer to one [PageQuery], all of the moment that the page's stamp
// describes.
type WholePage struct {
	Page
	Ahead Ahead        // of the first row, if it is wanted
	Own   Surroundings // of the member asked for
	Err   error        // why the board could not be read
}

// Surroundings is a member's standing with what stands next to it. Neighbours are
// read-only.
type Surroundings struct {
	Standing
	// First is the 0-based index of the first of the Neighbours: the rows around the
	// member's, its own among them.
	First      int
	Neighbours []Entry
	// Ahead is that of the first of the Neighbours, without them that of the member, if it
	// is wanted.
	Ahead Ahead
	// Better is the nearest better score: the next higher one in descending direction,
	// the next lower one in ascending direction. HasBetter is false where no member has one.
	Better    float64
	HasBetter bool
}
