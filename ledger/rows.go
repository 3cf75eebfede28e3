package ledger

import (
	"database/sql"
	"fmt"
	"slices"

	"rankcache"
	"rankcache/wire"
)

// logColumns are those of rank_log, in the order of [scanUpdate].
const logColumns = "board, run, seq, member, order_id, op, delta, score, raw, sum, members, at, by_groups, data, given, veil"

// updateColumns returns changes as the columns of rank_log.
func updateColumns(updates []*wire.Update) []column {
	n := len(updates)
	board, member, op := make([]string, n), make([]string, n), make([]string, n)
	run, seq, members, at := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	order, by, data, given, veil := make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	sum := make([]*int64, n)
	delta, score, raw := make([]*float64, n), make([]*float64, n), make([]*float64, n)
	for i, u := range updates {
		board[i], member[i], op[i] = string(u.Board), u.Member, u.Op.String()
		run[i], seq[i], members[i], at[i] = int64(u.Run), int64(u.Seq), int64(u.Members), u.At
		sum[i] = sumOf(u)
		score[i], raw[i] = scoresOf(u)
		if u.OrderID != "" {
			order[i] = &u.OrderID
		}
		if u.By != "" {
			by[i] = &u.By
		}
		veil[i] = textOf(u.Hiding.Text(u.Score))
		if data[i] = textOf(u.Data); u.Given != "" {
			given[i] = new(u.Given[1:])
		}
		if u.Op.HasDelta() {
			delta[i] = &u.Delta
		}
	}
	return withSome([]column{texts("board", board), ints("run", run), ints("seq", seq), texts("member", member), someTexts("order_id", order), texts("op", op),
		doubles("delta", delta), doubles("score", score), doubles("raw", raw), orNull("sum", sum), ints("members", members), ints("at", at), someTexts("by_groups", by)},
		someTexts("data", data), someTexts("given", given), someTexts("veil", veil))
}

// withSome returns columns and those of more that have a text.
func withSome(all []column, more ...column) []column {
	for _, c := range more {
		if texts, _ := c.values.([]*string); slices.ContainsFunc(texts, func(text *string) bool { return text != nil }) {
			all = append(all, c)
		}
	}
	return all
}

// textOf returns a text as it is stored, nil if it is empty.
func textOf(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// sumOf returns a change's checksum as it is stored, nil if it is unknown.
func sumOf(u *wire.Update) *int64 {
	if !u.HasSum {
		return nil
	}
	sum := int64(u.Sum)
	return &sum
}

// scoresOf returns a score after a change as shown, and raw; nil if the member is gone. A hidden one has both.
func scoresOf(u *wire.Update) (score, raw *float64) {
	if !u.Scored() {
		return nil, nil
	}
	return new(u.Form.Shown(u.Score)), &u.Score
}

// scanUpdate reads a row of logColumns, behind columns of the caller's.
func scanUpdate(row *sql.Rows, before ...any) (*wire.Update, error) {
	var u wire.Update
	var op string
	var order, by, data, given, veil sql.NullString
	var delta, score, raw sql.NullFloat64
	var sum sql.NullInt64
	err := row.Scan(append(before, (*string)(&u.Board), &u.Run, &u.Seq, &u.Member, &order, &op, &delta, &score, &raw, &sum, &u.Members, &u.At, &by, &data, &given, &veil)...)
	if err != nil {
		return nil, err
	}
	if u.Op, err = wire.ParseUpdateOp(op); err != nil {
		return nil, fmt.Errorf("rank_log, board %s, run %d, seq %d: %w", u.Board, u.Run, u.Seq, err)
	}
	u.OrderID, u.By, u.Data, u.Delta, u.Score = order.String, by.String, data.String, delta.Float64, score.Float64
	if given.Valid {
		u.Given = "\x00" + given.String
	}
	if raw.Valid { // rows of earlier versions have none where it would be the score
		u.Score = raw.Float64
		u.Form, _ = rankcache.FormOf(u.Score, score.Float64)
	}
	if veil.Valid {
		u.Hiding, _, _ = wire.ParseHidden(veil.String)
		u.Hiding.Bare = !score.Valid
	}
	u.Sum, u.HasSum = uint64(sum.Int64), sum.Valid // #nosec G115 -- stored from 48 bits
	return &u, nil
}

// updatesTo returns a scan of rows of logColumns for a function that takes them.
func updatesTo(fn func(*wire.Update) error) func(*sql.Rows) error {
	return func(row *sql.Rows) error {
		u, err := scanUpdate(row)
		if err != nil {
			return err
		}
		return fn(u)
	}
}

// same reports whether two records tell of the same change. What an operation does not have is not stored.
func same(a, b *wire.Update) bool {
	x, y := *a, *b
	for _, u := range []*wire.Update{&x, &y} {
		if !u.Op.HasDelta() {
			u.Delta = 0
		}
		if u.Op.Removes() {
			u.Score = 0
		}
		u.Form, u.By, u.Given = rankcache.ScoreNumber, "", "" // older writers don't tell them
	}
	return x == y
}

// repeats reports whether a change is that of a row, from which what can tell of a forgotten member is gone.
func repeats(row, u *wire.Update) bool {
	x := *u
	if !row.HasSum {
		x.Sum, x.HasSum = row.Sum, false
	}
	if wire.Forgotten(row.Member) {
		x.Member, x.OrderID, x.Data = row.Member, "", ""
	}
	return same(row, &x)
}

func keyColumns(updates []*wire.Update) []column {
	board, run, seq := make([]string, len(updates)), make([]int64, len(updates)), make([]int64, len(updates))
	for i, u := range updates {
		board[i], run[i], seq[i] = string(u.Board), int64(u.Run), int64(u.Seq)
	}
	return []column{texts("board", board), ints("run", run), ints("seq", seq)}
}

// orderColumns name rows of rank_log by order id; changes without one are left out.
func orderColumns(updates []*wire.Update) []column {
	var board, member, order, op []string
	for _, u := range updates {
		if u.OrderID != "" {
			board, member, order, op = append(board, string(u.Board)), append(member, u.Member), append(order, u.OrderID), append(op, u.Op.String())
		}
	}
	return []column{texts("board", board), texts("member", member), texts("order_id", order), texts("op", op)}
}

// memberColumns name rows of rank_score, each once.
func memberColumns(updates []*wire.Update) []column {
	seen := make(map[memberKey]bool, len(updates))
	var board, member []string
	for _, u := range updates {
		if k := memberOf(u); !seen[k] {
			seen[k] = true
			board, member = append(board, string(u.Board)), append(member, u.Member)
		}
	}
	return []column{texts("board", board), texts("member", member)}
}

type memberKey struct {
	board  rankcache.BoardID
	member string
}

func memberOf(u *wire.Update) memberKey { return memberKey{u.Board, u.Member} }

// its adds that a row is of the member.
func (k memberKey) its(q *query) *query {
	return q.add(" WHERE board = ").arg(string(k.board)).add(" AND member = ").arg(k.member)
}

type logKey struct {
	board    rankcache.BoardID
	run, seq uint64
}

type orderKey struct {
	memberKey
	order string
	op    wire.Op // a change and the trim that it caused have one order id, and may have one member
}

func orderOf(u *wire.Update) orderKey { return orderKey{memberOf(u), u.OrderID, u.Op} }

// scoreColumns returns each member's latest state as rank_score's columns: score, data and what hides it.
func scoreColumns(updates []*wire.Update) []column {
	latest := make(map[memberKey]*wire.Update, len(updates))
	var order []memberKey
	for _, u := range updates {
		k := memberOf(u)
		before := latest[k]
		if before == nil {
			order = append(order, k)
		}
		if before == nil || later(u, before) {
			latest[k] = u
		}
	}
	n := len(order)
	board, member, run, seq := make([]string, n), make([]string, n), make([]int64, n), make([]int64, n)
	score, raw, data, veil := make([]*float64, n), make([]*float64, n), make([]*string, n), make([]*string, n)
	for i, k := range order {
		u := latest[k]
		board[i], member[i], run[i], seq[i] = string(k.board), k.member, int64(u.Run), int64(u.Seq)
		if u.Seen() {
			score[i], raw[i] = scoresOf(u)
		}
		data[i], veil[i] = textOf(u.Data), textOf(u.Hiding.Text(u.Score))
	}
	return withSome([]column{texts("board", board), texts("member", member), ints("run", run), ints("seq", seq), doubles("score", score), doubles("raw", raw)}, someTexts("data", data), someTexts("veil", veil))
}

func later(a, b *wire.Update) bool { return a.Run > b.Run || a.Run == b.Run && a.Seq > b.Seq }

// entries runs a query of members, raw scores and data, joined; those without a score are left out.
func (t *transaction) entries(q *query, fn func(rankcache.Entry) error) error {
	return q.each(t, func(row *sql.Rows) error {
		var member string
		var raw sql.NullFloat64
		var data sql.NullString
		if err := row.Scan(&member, &raw, &data); err != nil || !raw.Valid {
			return err
		}
		return fn(rankcache.Entry{Member: rankcache.JoinData(member, data.String), Score: raw.Float64})
	})
}
