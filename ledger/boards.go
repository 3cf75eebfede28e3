package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"

	"rankcache"
	"rankcache/wire"
)

// boardRun is a row of rank_board: one life of a board.
type boardRun struct {
	class, dims, tag string
	run              uint64
	base             uint64       // members of the runs from this one on are the board's
	begin, first     uint64       // the first seq of the run, and the first that retention has left
	after, was       uint64       // the run that it continues, 0 if that is unknown, and what it was before it was asked anew
	end              uint64       // changes from this seq on do not stand; noEnd: all do
	last, read       *wire.Update // read: what the database had
	eras             string       // of the servers on which it was found, the latest last
	part             int32        // of its board
	changed, added   bool         // since it was read
}

const noEnd = math.MaxInt64 // the end of a run all of whose changes stand

// maxEras is how many servers are kept of a run.
const maxEras = 16

// isOn reports whether a run was found on a server; "" is known of each.
func (b *boardRun) isOn(era string) bool { return strings.Contains(b.eras, era) }

// found notes that a run was found on a server.
func (b *boardRun) found(era string) {
	if b.isOn(era) {
		return
	}
	all := append(strings.Fields(b.eras), era)
	b.eras, b.changed = strings.Join(all[max(0, len(all)-maxEras):], " "), true
}

// isOnOne reports whether a run was found on one of several servers.
func (b *boardRun) isOnOne(eras string) bool {
	return slices.ContainsFunc(strings.Fields(eras), b.isOn)
}

type runsOf map[rankcache.BoardID][]*boardRun // holds the runs of each board, the latest last

func (t *transaction) boardRuns(of []rankcache.BoardID) (runsOf, error) {
	seen := make(runsOf)
	var boards []string
	for _, b := range of {
		seen[b], boards = nil, append(boards, string(b))
	}
	if len(boards) == 0 {
		return seen, nil
	}
	slices.Sort(boards) // all lock them in one order
	q := t.d.query("SELECT board, run, class, dims, tag, base_run, begin_seq, first_seq, after_run, end_seq, seq, sum, members, at, eras, part FROM rank_board WHERE ").
		among(texts("board", boards)).add(" ORDER BY board, run FOR UPDATE")
	return seen, q.each(t, func(row *sql.Rows) error {
		r := boardRun{last: &wire.Update{}}
		var sum sql.NullInt64
		err := row.Scan((*string)(&r.last.Board), &r.run, &r.class, &r.dims, &r.tag, &r.base, &r.begin, &r.first, &r.after, &r.end, &r.last.Seq, &sum, &r.last.Members, &r.last.At, &r.eras, &r.part)
		r.last.Run, r.last.Sum, r.last.HasSum = r.run, uint64(sum.Int64), sum.Valid // #nosec G115 -- stored from 48 bits
		r.read, seen[r.last.Board] = r.last, append(seen[r.last.Board], &r)
		return err
	})
}

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

func (r runsOf) find(board rankcache.BoardID, run uint64) *boardRun {
	for _, b := range r[board] {
		if b.run == run {
			return b
		}
	}
	return nil
}

// at notes the partitions of boards.
func (r runsOf) at(parts map[rankcache.BoardID]int32) {
	for board, part := range parts {
		for _, b := range r[board] {
			if b.part != part {
				b.part, b.changed = part, true
			}
		}
	}
}

func (s *database) hasRun(ctx context.Context, board rankcache.BoardID, run uint64) (has bool, err error) {
	q := s.d.query("SELECT EXISTS (SELECT 1 FROM rank_board WHERE board = ").arg(string(board)).add(" AND run = ").arg(int64(run)).add(")") // #nosec G115 -- an overflow is none
	err = s.db.QueryRowContext(ctx, q.text.String(), q.args...).Scan(&has)
	return has, err
}

// add makes a change part of its board's run.
func (r runsOf) add(u *wire.LedgerUpdate) {
	b := r.find(u.Board, u.Run)
	if b == nil {
		b = &boardRun{run: u.Run, base: u.Run, begin: u.Seq, first: u.Seq, end: noEnd, part: -1, added: true, last: &wire.Update{Board: u.Board, Run: u.Run}}
		r[u.Board] = append(r[u.Board], b)
		slices.SortFunc(r[u.Board], func(a, b *boardRun) int { return cmp.Compare(a.run, b.run) })
	}
	if era := u.Era; u.Past && u.Seq < b.end { // the later run is there, or not: that stays as it was
		b.found(strings.Repeat("0", len(era)))
	} else {
		b.found(era)
	}
	b.class, b.dims, b.tag, b.changed = u.Class, string(wire.AppendDims(nil, u.Dims)), u.Tag, true
	if u.Seq < b.begin { // two writers have published out of order
		if b.first == b.begin {
			b.first = u.Seq
		}
		b.begin, b.after = u.Seq, 0
	}
	if u.Seq >= b.last.Seq {
		b.last = &u.Update
	}
}

// save writes the rows of rank_board that were changed.
func (t *transaction) save(runs runsOf) error {
	var changed []*boardRun
	for _, of := range runs {
		for _, r := range of {
			if r.changed {
				changed = append(changed, r)
			}
		}
	}
	if len(changed) == 0 {
		return nil
	}
	_, err := t.d.insert("rank_board", t.d.replace, boardColumns(changed)...).exec(t)
	return err
}

func boardColumns(runs []*boardRun) []column {
	n := len(runs)
	board, class, dims, tag := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	run, base, begin, first, after, end := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	seq, members, at, sum := make([]int64, n), make([]int64, n), make([]int64, n), make([]*int64, n)
	eras, part := make([]string, n), make([]int64, n)
	for i, r := range runs {
		board[i], class[i], dims[i], tag[i] = string(r.last.Board), r.class, r.dims, r.tag
		run[i], base[i], begin[i], first[i], after[i], end[i] = int64(r.run), int64(r.base), int64(r.begin), int64(r.first), int64(r.after), int64(r.end)
		seq[i], members[i], at[i], sum[i] = int64(r.last.Seq), int64(r.last.Members), r.last.At, sumOf(r.last)
		eras[i], part[i] = r.eras, int64(r.part)
	}
	return []column{texts("board", board), ints("run", run), texts("class", class), texts("dims", dims), texts("tag", tag),
		ints("base_run", base), ints("begin_seq", begin), ints("first_seq", first), ints("after_run", after), ints("end_seq", end),
		ints("seq", seq), orNull("sum", sum), ints("members", members), ints("at", at), texts("eras", eras), ints("part", part)}
}
