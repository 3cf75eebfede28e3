package ledger

import (
	"database/sql"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// both runs a test once with each kind of database.
func both(t *testing.T, test func(t *testing.T, s *Store)) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) { test(t, newStore(t, testkit.Database(t, kind))) })
	}
}

// newStore returns a ledger with tables in an empty database.
func newStore(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(t.Context(), "topic", 0, 0); err != nil {
		t.Fatal(err)
	}
	return s
}

// history makes the updates that a writer publishes for boards, with sums that are right.
type history struct {
	board  rankcache.BoardID
	run    uint64
	seq    uint64
	sum    uint64
	scores map[string]float64
	data   map[string]string // of members that have any
	veils  map[string]wire.Hiding
	unseen map[string]float64 // scores of hidden members
	kept   map[string]float64 // scores of trimmed members, from which they go on
}

func newHistory(board rankcache.BoardID, run uint64) *history {
	return &history{board: board, run: run, scores: make(map[string]float64), data: make(map[string]string), veils: make(map[string]wire.Hiding), unseen: make(map[string]float64), kept: make(map[string]float64)}
}

// clone returns a history that goes on by itself, as a replica's does after a failover.
func (h *history) clone() *history {
	c := *h
	c.scores, c.data, c.veils, c.unseen, c.kept = maps.Clone(h.scores), maps.Clone(h.data), maps.Clone(h.veils), maps.Clone(h.unseen), maps.Clone(h.kept)
	return &c
}

// text returns a member joined with its data.
func (h *history) text(member string) string { return rankcache.JoinData(member, h.data[member]) }

// change applies one operation and returns its update. The number of a hide or restore is its serial.
func (h *history) change(op wire.Op, member string, number float64, order string) *wire.LedgerUpdate {
	return h.changeWith(op, member, number, order, "")
}

// changeWith is change of a command that gives data, as [wire.Update.Given] has it.
func (h *history) changeWith(op wire.Op, member string, number float64, order, given string) *wire.LedgerUpdate {
	h.seq++
	before, scored := h.scores[member]
	if scored {
		h.sum -= wire.Hash(h.text(member), before)
	}
	veil := h.veils[member]
	if veil.Hidden {
		before, scored = h.unseen[member]
	}
	if !scored {
		before = h.kept[member]
	}
	if given != "" {
		h.data[member] = given[1:]
	}
	u := wire.Update{Given: given, Board: h.board, Member: member, Op: op, Run: h.run, Seq: h.seq, OrderID: order, At: 1700000000000 + int64(h.seq)}
	switch op {
	case wire.OpIncr:
		u.Delta, u.Score = number, before+number
	case wire.OpSet:
		u.Score = number
	case wire.OpHide, wire.OpRestore:
		if u.Score = before; uint64(number) > veil.Serial {
			veil.Serial, veil.Hidden = uint64(number), op == wire.OpHide
		}
	}
	if op == wire.OpForget {
		delete(h.veils, member)
		delete(h.kept, member)
		veil = wire.Hiding{}
	}
	scored = !op.Removes() && (scored || !op.Moves())
	if veil.Serial > 0 {
		veil.Bare = !scored
		h.veils[member], u.Hiding = veil, veil
	}
	delete(h.scores, member)
	delete(h.unseen, member)
	if delete(h.kept, member); op == wire.OpTrim {
		h.kept[member] = before
	}
	switch {
	case !scored:
		delete(h.data, member)
	case veil.Hidden:
		h.unseen[member] = u.Score
	default:
		h.scores[member], u.Data = u.Score, h.data[member]
		h.sum += wire.Hash(h.text(member), u.Score)
	}
	h.sum &= 1<<48 - 1
	u.Sum, u.HasSum, u.Members = h.sum, true, len(h.scores)
	return &wire.LedgerUpdate{Update: u, Class: "gift", Dims: map[string]string{"zone": "7"}, Tag: "20261122"}
}

func (h *history) incr(member string, by float64) *wire.LedgerUpdate {
	return h.change(wire.OpIncr, member, by, fmt.Sprintf("o-%d-%d", h.run, h.seq+1))
}

// feed applies records from offset first of partition 0 on, as batches of what goes into
// one, and returns the next offset and what became of them.
func feed(t testing.TB, s *Store, first int64, updates ...*wire.LedgerUpdate) (next int64, all Result) {
	t.Helper()
	next = first
	b := NewBatch("topic")
	flush := func() {
		if b.Len() == 0 {
			return
		}
		done, err := s.Apply(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		all = Result{all.Rows + done.Rows, all.Repeats + done.Repeats, all.Aside + done.Aside, all.Bad + done.Bad, all.Reborn + done.Reborn}
		first, b = next, NewBatch("topic")
	}
	for _, u := range updates {
		if !b.Add(u, 0, first, next) {
			flush()
			if !b.Add(u, 0, first, next) {
				t.Fatal("an empty batch takes no record")
			}
		}
		next++
	}
	flush()
	return next, all
}

// wantScores compares the members of a board that the ledger has with those of a history.
func wantScores(t testing.TB, s *Store, h *history) {
	t.Helper()
	got, data := make(map[string]float64), make(map[string]string)
	board := "'" + string(h.board) + "'"
	selectRows(t, s, "SELECT member, raw, COALESCE(data, '') FROM rank_score WHERE raw IS NOT NULL AND board = "+board+" AND run >= (SELECT base_run FROM rank_board WHERE board = "+board+" ORDER BY run DESC LIMIT 1)", func(row *sql.Rows) error {
		var member, text string
		var score float64
		err := row.Scan(&member, &score, &text)
		if got[member] = score; text != "" {
			data[member] = text
		}
		return err
	})
	if diff := cmp.Diff(h.scores, got); diff != "" {
		t.Errorf("scores of %s (-want +got):\n%s", h.board, diff)
	}
	hidden, want := make(map[string]string), make(map[string]string)
	for member, veil := range h.veils {
		want[member] = veil.Text(h.unseen[member])
	}
	must(t, s.Snapshot(t.Context(), h.board, func(v *Snapshot) error {
		return v.Hidings(func(member, veil string) error { hidden[member] = veil; return nil })
	}))
	if diff := cmp.Diff(want, hidden); diff != "" {
		t.Errorf("hidden members of %s (-want +got):\n%s", h.board, diff)
	}
	has := maps.Clone(h.data)
	maps.DeleteFunc(has, func(_, text string) bool { return text == "" })
	if diff := cmp.Diff(has, data); diff != "" {
		t.Errorf("data of %s (-want +got):\n%s", h.board, diff)
	}
}

func selectRows(t testing.TB, s *Store, text string, scan func(*sql.Rows) error) {
	t.Helper()
	err := s.in(t.Context(), sql.LevelDefault, func(tx *transaction) error { return s.d.query(text).each(tx, scan) })
	if err != nil {
		t.Fatal(err)
	}
}

func count(t testing.TB, s *Store, from string) int {
	t.Helper()
	n, err := tryCount(t, s, from)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func tryCount(t testing.TB, s *Store, from string) (n int, err error) {
	err = s.db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+from).Scan(&n)
	return n, err
}

// deleteRecords has the topic's partition 0 begin at an offset.
func deleteRecords(t testing.TB, broker, topic string, before int64) {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Offset = before
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{part}}}
	req.TimeoutMillis = 5000
	resp, err := req.RequestWith(t.Context(), testkit.KafkaClient(t, broker))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
