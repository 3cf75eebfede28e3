package ledger

import (
	"cmp"
	"database/sql"
	"slices"

	"rankcache"
	"rankcache/wire"
)

// boardRun is a row of rank_board: one life of a board.
type boardRun struct {
	class, dims, tag string
	run              uint64
	base             uint64 // members of the runs from this one on are the board's
	begin, first     uint64 // the first seq of the run, and the first that retention has left
	last             *wire.Update
}

// runsOf holds the runs of each board, the latest last.
type runsOf map[rankcache.BoardID][]*boardRun

// boardRuns reads and locks the rows of the changes' boards.
func (t *transaction) boardRuns(updates []*wire.Update) (runsOf, error) {
	seen := make(runsOf)
	var boards []string
	for _, b := range boardsOf(updates) {
		seen[b], boards = nil, append(boards, string(b))
	}
	if len(boards) == 0 {
		return seen, nil
	}
	slices.Sort(boards) // all lock them in one order
	q := t.d.query("SELECT board, run, class, dims, tag, base_run, begin_seq, first_seq, seq, sum, members, at FROM rank_board WHERE ").
		among(texts("board", boards)).add(" ORDER BY board, run FOR UPDATE")
	return seen, q.each(t, func(row *sql.Rows) error {
		r := boardRun{last: &wire.Update{}}
		var sum sql.NullInt64
		err := row.Scan((*string)(&r.last.Board), &r.run, &r.class, &r.dims, &r.tag, &r.base, &r.begin, &r.first, &r.last.Seq, &sum, &r.last.Members, &r.last.At)
		r.last.Run, r.last.Sum, r.last.HasSum = r.run, uint64(sum.Int64), sum.Valid // #nosec G115 -- stored from 48 bits
		seen[r.last.Board] = append(seen[r.last.Board], &r)
		return err
	})
}

// boardsOf returns the boards of changes, each once.
func boardsOf(updates []*wire.Update) (boards []rankcache.BoardID) {
	seen := make(map[rankcache.BoardID]bool)
	for _, u := range updates {
		if !seen[u.Board] {
			seen[u.Board] = true
			boards = append(boards, u.Board)
		}
	}
	return boards
}

// find returns the row of a run, or nil.
func (r runsOf) find(board rankcache.BoardID, run uint64) *boardRun {
	for _, b := range r[board] {
		if b.run == run {
			return b
		}
	}
	return nil
}

// highest returns the latest run of a board, or nil.
func (r runsOf) highest(board rankcache.BoardID) *boardRun {
	if runs := r[board]; len(runs) > 0 {
		return runs[len(runs)-1]
	}
	return nil
}

// meet reports whether changes are of another run than their board's latest one, which
// needs a look at the rows of both.
func (r runsOf) meet(updates []*wire.LedgerUpdate) bool {
	for _, u := range updates {
		if h := r.highest(u.Board); h != nil && u.Run != h.run {
			return true
		}
	}
	return false
}

// add makes a change part of its board's run.
func (r runsOf) add(u *wire.LedgerUpdate) *boardRun {
	b := r.find(u.Board, u.Run)
	if b == nil {
		b = &boardRun{run: u.Run, base: u.Run, begin: u.Seq, first: u.Seq, last: &wire.Update{Board: u.Board, Run: u.Run}}
		if h := r.highest(u.Board); h != nil && h.run < u.Run && u.Seq > 1 {
			b.base = h.base // the board went on, with its members
		}
		r[u.Board] = append(r[u.Board], b)
		slices.SortFunc(r[u.Board], func(a, b *boardRun) int { return cmp.Compare(a.run, b.run) })
	}
	b.class, b.dims, b.tag = u.Class, string(wire.AppendDims(nil, u.Dims)), u.Tag
	if u.Seq < b.begin { // two writers have published out of order
		if b.first == b.begin {
			b.first = u.Seq
		}
		if b.begin = u.Seq; u.Seq == 1 {
			b.base = b.run
		}
	}
	if u.Seq > b.last.Seq {
		b.last = &u.Update
	}
	return b
}

// saveRuns writes rows of rank_board.
func (t *transaction) saveRuns(runs []*boardRun) error {
	if len(runs) == 0 {
		return nil
	}
	n := len(runs)
	board, class, dims, tag := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	run, base, begin, first := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	seq, members, at, sum := make([]int64, n), make([]int64, n), make([]int64, n), make([]*int64, n)
	for i, r := range runs {
		board[i], class[i], dims[i], tag[i] = string(r.last.Board), r.class, r.dims, r.tag
		run[i], base[i], begin[i], first[i] = int64(r.run), int64(r.base), int64(r.begin), int64(r.first)
		seq[i], members[i], at[i], sum[i] = int64(r.last.Seq), int64(r.last.Members), r.last.At, sumOf(r.last)
	}
	_, err := t.d.insert("rank_board", t.d.replace, texts("board", board), ints("run", run), texts("class", class), texts("dims", dims), texts("tag", tag),
		ints("base_run", base), ints("begin_seq", begin), ints("first_seq", first), ints("seq", seq), orNull("sum", sum), ints("members", members), ints("at", at)).exec(t)
	return err
}
