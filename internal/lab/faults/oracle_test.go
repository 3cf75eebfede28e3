package faults

import (
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/wire"
)

const board = rankcache.BoardID("1_2_3")

// threeOrders is an oracle that knows for a second: a has 1, then b 2, then a is
// gone.
func threeOrders(t *testing.T) *Oracle {
	o := NewOracle()
	for i, u := range []wire.Update{
		{Member: "a", Op: wire.OpSet, Score: 1}, {Member: "b", Op: wire.OpSet, Score: 2}, {Member: "a", Op: wire.OpDelete},
	} {
		u.Board, u.Seq = board, uint64(i+1)
		if err := o.Applied(u, time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func top(seq uint64, total int, rows ...Row) *Reply {
	return &Reply{Code: 200, Source: "local", Seq: seq, Total: total, Rows: rows, Age: time.Hour}
}

// TestOracleFindsWhatIsWrong: an oracle that finds nothing is worth nothing.
func TestOracleFindsWhatIsWrong(t *testing.T) {
	a, b := Row{Rank: 1, Member: "a", Score: 1}, Row{Rank: 1, Member: "b", Score: 2}
	second := Row{Rank: 2, Member: "a", Score: 1}
	for name, c := range map[string]struct {
		reply *Reply
		want  string // "" for right
	}{
		"right at 1":     {top(1, 1, a), ""},
		"right at 2":     {top(2, 2, b, second), ""},
		"right at 3":     {top(3, 1, b), ""},
		"another seq's":  {top(3, 2, b, second), "total"},
		"wrong order":    {top(2, 2, a, Row{Rank: 2, Member: "b", Score: 2}), "row 1"},
		"wrong score":    {top(1, 1, Row{Rank: 1, Member: "a", Score: 1.5}), "row 1"},
		"wrong rank":     {top(1, 1, Row{Rank: 2, Member: "a", Score: 1}), "row 1"},
		"empty":          {top(3, 1), "0 rows"},
		"unknown seq":    {top(4, 1, b), "unknown seq"},
		"no seq":         {top(0, 2, b, second), ""},
		"no seq, wrong":  {top(0, 2, second, b), "not the board at any seq"},
		"unknown source": {&Reply{Code: 200, Source: "hearsay", Seq: 1, Total: 1, Rows: []Row{a}}, "source"},
		"fresh, too old": {&Reply{Code: 200, Source: "local", Seq: 1, Total: 1, Rows: []Row{a}}, "older than its age"},
	} {
		o := threeOrders(t)
		o.Tell(o.Ask(Question{Board: board, Kind: KindTop, Limit: 10}), c.reply)
		wantVerdict(t, name, o, c.want)
	}
}

func wantVerdict(t *testing.T, name string, o *Oracle, want string) {
	t.Helper()
	v := o.Judge(true)
	switch {
	case v.Judged != 1:
		t.Errorf("%s: %d judged", name, v.Judged)
	case want == "" && len(v.Wrong) > 0:
		t.Errorf("%s: %v", name, v.Wrong[0])
	case want != "" && (len(v.Wrong) != 1 || !strings.Contains(v.Wrong[0].Why, want)):
		t.Errorf("%s: got %v, want %q", name, v.Wrong, want)
	}
}

func TestOracleFindsAnswersThatGoBack(t *testing.T) {
	o, q := threeOrders(t), Question{Board: board, Kind: KindTop, Limit: 10}
	o.Tell(o.Ask(q), top(3, 1, Row{Rank: 1, Member: "b", Score: 2}))
	if v := o.Judge(true); len(v.Wrong) > 0 {
		t.Fatal(v.Wrong)
	}
	o.Tell(o.Ask(q), top(1, 1, Row{Rank: 1, Member: "a", Score: 1}))
	wantVerdict(t, "back to 1", o, "went back")
}

// TestOracleFollowsRedisThatLosesWrites: what was lost is an answer of its own
// kind until the recovery, and a mixture of both histories is wrong.
func TestOracleFollowsRedisThatLosesWrites(t *testing.T) {
	o, q := threeOrders(t), Question{Board: board, Kind: KindTop, Limit: 10}
	o.Enter(Faulty)
	o.Rewind(board, 1)
	for seq, member := range []string{2: "c", 3: "d"} {
		if member != "" {
			o.Applied(wire.Update{Board: board, Member: member, Op: wire.OpSet, Score: 9, Seq: uint64(seq)}, time.Now())
		}
	}
	lost := top(3, 1, Row{Rank: 1, Member: "b", Score: 2})
	o.Tell(o.Ask(q), lost)
	o.Tell(o.Ask(q), top(2, 3, Row{Rank: 1, Member: "c", Score: 9}, Row{Rank: 2, Member: "b", Score: 2}, Row{Rank: 3, Member: "a", Score: 1}))
	if v := o.Judge(true); len(v.Lost) != 1 || len(v.Wrong) != 1 {
		t.Errorf("%d lost, %d wrong, want 1 and 1: %v", len(v.Lost), len(v.Wrong), v.Wrong)
	}
	o.Enter(Recovered)
	o.Tell(o.Ask(q), lost)
	wantVerdict(t, "after the recovery", o, "lost")
}

// TestOracleFindsMixedMoments: an answer that holds an update before an earlier one is
// of no moment.
func TestOracleFindsMixedMoments(t *testing.T) {
	o := threeOrders(t)
	o.Tell(o.Ask(Question{Board: board, Kind: KindTop, Limit: 10}), top(1, 2, Row{Rank: 1, Member: "b", Score: 2}, Row{Rank: 2, Member: "a", Score: 1}))
	wantVerdict(t, "2 without 1", o, "total 2")
}

// TestOracleFollowsChangesByHand: the board before and after the change are answers
// at the same seq until the recovery, what is neither is not.
func TestOracleFollowsChangesByHand(t *testing.T) {
	o, q := threeOrders(t), Question{Board: board, Kind: KindTop, Limit: 10}
	o.Enter(Faulty)
	o.Changed(board, map[string]Place{"b": {}, "c": {score: 5, on: true}})
	before, after := top(3, 1, Row{Rank: 1, Member: "b", Score: 2}), top(3, 1, Row{Rank: 1, Member: "c", Score: 5})
	for _, r := range []*Reply{before, after, top(3, 2, Row{Rank: 1, Member: "c", Score: 5}, Row{Rank: 2, Member: "b", Score: 2})} {
		o.Tell(o.Ask(q), r)
	}
	if v := o.Judge(true); len(v.Lost) != 1 || len(v.Wrong) != 1 {
		t.Errorf("%d lost, %d wrong, want 1 and 1: %v", len(v.Lost), len(v.Wrong), v.Wrong)
	}
	o.Enter(Recovered)
	o.Tell(o.Ask(q), after)
	wantVerdict(t, "after the change", o, "")
	o.Tell(o.Ask(q), before)
	wantVerdict(t, "before the change", o, "lost")
}

// TestOracleForgetsUnreadWrites: no answer was of what is lost, so that later ones of it
// are wrong at once.
func TestOracleForgetsUnreadWrites(t *testing.T) {
	o, q := threeOrders(t), Question{Board: board, Kind: KindTop, Limit: 10}
	o.Enter(Faulty)
	o.Lost(board, 1)
	if err := o.Applied(wire.Update{Board: board, Member: "c", Op: wire.OpSet, Score: 9, Seq: 2}, time.Now()); err != nil {
		t.Fatal(err)
	}
	o.Tell(o.Ask(q), top(2, 2, Row{Rank: 1, Member: "b", Score: 2}, Row{Rank: 2, Member: "a", Score: 1}))
	wantVerdict(t, "what was lost", o, "row 1")
}

// TestOracleComparesChecksums: right rows do not excuse another board's checksum.
func TestOracleComparesChecksums(t *testing.T) {
	for name, c := range map[string]struct {
		sum  uint64
		want string
	}{"right": {wire.Hash("b", 2), ""}, "another": {wire.Hash("b", 2) + 1, "sum"}} {
		o, r := threeOrders(t), top(3, 1, Row{Rank: 1, Member: "b", Score: 2})
		r.State = rankcache.State{Run: 1, Seq: 3, Sum: c.sum, HasSum: true}
		o.Tell(o.Ask(Question{Board: board, Kind: KindTop, Limit: 10}), r)
		wantVerdict(t, name, o, c.want)
	}
}

// TestOracleKnowsHiddenMembers: a is hidden at 3, gets 4 unseen, and a restore that another command has overtaken leaves it
// hidden until 6, when it is back with all that it has.
func TestOracleKnowsHiddenMembers(t *testing.T) {
	hidden := wire.Hiding{Hidden: true}
	updates := []wire.Update{
		{Member: "a", Op: wire.OpSet, Score: 1, Given: "0x", Data: "x"}, {Member: "b", Op: wire.OpSet, Score: 2},
		{Member: "a", Op: wire.OpHide, Score: 1, OrderID: wire.HideOrder(5, "a"), Hiding: hidden, Data: "x"},
		{Member: "a", Op: wire.OpIncr, Delta: 4, Score: 5, Hiding: hidden, Data: "x"},
		{Member: "a", Op: wire.OpRestore, Score: 5, OrderID: wire.HideOrder(4, "a"), Hiding: hidden, Data: "x"},
		{Member: "a", Op: wire.OpRestore, Score: 5, OrderID: wire.HideOrder(6, "a"), Data: "x"},
	}
	b, second, back := Row{Rank: 1, Member: "b", Score: 2}, Row{Rank: 2, Member: "b", Score: 2}, Row{Rank: 1, Member: "a", Score: 5, Data: "x"}
	for name, c := range map[string]struct {
		reply *Reply
		want  string
	}{
		"seen":                    {top(2, 2, b, Row{Rank: 2, Member: "a", Score: 1, Data: "x"}), ""},
		"hidden":                  {top(3, 1, b), ""},
		"hidden, but on the page": {top(3, 2, b, Row{Rank: 2, Member: "a", Score: 1, Data: "x"}), "total"},
		"counts for ranks":        {top(4, 1, second), "row 1"},
		"overtaken":               {top(5, 1, b), ""},
		"overtaken, but seen":     {top(5, 2, back, second), "total"},
		"back":                    {top(6, 2, back, second), ""},
		"back without its points": {top(6, 2, b, Row{Rank: 2, Member: "a", Score: 1, Data: "x"}), "row 1"},
		"back with other data":    {top(6, 2, Row{Rank: 1, Member: "a", Score: 5, Data: "y"}, second), "data"},
	} {
		o := NewOracle()
		for i, u := range updates {
			u.Board, u.Seq = board, uint64(i+1)
			if err := o.Applied(u, time.Now().Add(-time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		o.Tell(o.Ask(Question{Board: board, Kind: KindTop, Limit: 10}), c.reply)
		wantVerdict(t, name, o, c.want)
	}
}

// TestOracleAddsUp: what commands add up to is not taken from their answers.
func TestOracleAddsUp(t *testing.T) {
	for name, u := range map[string]wire.Update{
		"points":      {Op: wire.OpIncr, Delta: 2, Score: 2, Data: "x"},
		"data":        {Op: wire.OpIncr, Delta: 2, Score: 3},
		"other data":  {Op: wire.OpSet, Score: 3, Given: "0y", Data: "x"},
		"worse":       {Op: wire.OpBest, Delta: 0, Score: 0, Data: "x"},
		"not hidden":  {Op: wire.OpHide, Score: 1, OrderID: wire.HideOrder(1, "a"), Data: "x"},
		"hidden":      {Op: wire.OpIncr, Delta: 2, Score: 3, Hiding: wire.Hiding{Hidden: true}, Data: "x"},
		"without any": {Op: wire.OpRestore, OrderID: wire.HideOrder(1, "a"), Hiding: wire.Hiding{Bare: true}, Data: "x"},
	} {
		h := newHistory()
		first := wire.Update{Member: "a", Op: wire.OpSet, Score: 1, Given: "0x", Data: "x", Seq: 1}
		if u.Member, u.Seq = "a", 2; h.add(first) != nil || h.add(u) == nil {
			t.Errorf("%s: an answer was taken that does not follow", name)
		}
	}
}
