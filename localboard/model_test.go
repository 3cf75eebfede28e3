package localboard

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/wangjia184/sortedset"

	"rankcache"
	"rankcache/wire"
)

// model is a board in its simplest form: it keeps everything and sorts on every read.
type model struct {
	members map[string]modelMember
	seqs    map[uint64]bool
	orders  map[string]bool
	loaded  uint64 // all up to here count as seen
}

type modelMember struct {
	score   float64
	seq     uint64
	present bool
}

func newModel() *model {
	return &model{members: map[string]modelMember{}, seqs: map[uint64]bool{}, orders: map[string]bool{}}
}

func (m *model) apply(us []wire.Update) (n rankcache.ApplyResult) {
	for _, u := range us {
		old := m.members[u.Member]
		switch {
		case u.Seq == 0 && m.orders[u.OrderID], u.Seq != 0 && m.seen(u.Seq):
			n.Duplicate++
			continue
		case u.Seq == 0:
			m.orders[u.OrderID] = true
		default:
			m.seqs[u.Seq] = true
		}
		if u.Seq != 0 && u.Seq < old.seq {
			n.Stale++
			continue
		}
		n.Applied++
		m.members[u.Member] = old.after(u)
	}
	return n
}

// seen reports whether an update with this seq was applied, as far as a board can know.
func (m *model) seen(seq uint64) bool { return seq <= m.loaded || m.seqs[seq] }

func (old modelMember) after(u wire.Update) modelMember {
	is := modelMember{score: u.Score, seq: max(old.seq, u.Seq), present: u.Op != wire.OpDelete}
	if u.Seq == 0 && u.Op == wire.OpIncr {
		is.score = u.Delta
		if old.present {
			is.score += old.score
		}
	}
	if is.score == 0 {
		is.score = 0 // not -0
	}
	return is
}

func (m *model) load(seq uint64, es []rankcache.Entry) {
	in := map[string]bool{}
	for _, e := range es {
		in[e.Member] = true
		if m.members[e.Member].seq <= seq {
			m.members[e.Member] = modelMember{score: e.Score, seq: seq, present: true}
		}
	}
	for id, is := range m.members {
		if !in[id] && is.seq <= seq {
			m.members[id] = modelMember{seq: seq}
		}
	}
	m.loaded = max(m.loaded, seq)
}

func (m *model) contiguous() uint64 {
	seq := m.loaded
	for m.seqs[seq+1] {
		seq++
	}
	return seq
}

// progress recounts everything.
func (m *model) progress() rankcache.Progress {
	p := rankcache.Progress{Contiguous: m.contiguous(), Highest: m.loaded, OrderIDs: uint64(len(m.orders)), Members: len(m.rows())}
	for seq := range m.seqs {
		p.Highest = max(p.Highest, seq)
	}
	return p
}

// rows returns the board, best first.
func (m *model) rows() []rankcache.Entry {
	rows := []rankcache.Entry{}
	for id, is := range m.members {
		if is.present {
			rows = append(rows, rankcache.Entry{Member: id, Score: is.score})
		}
	}
	slices.SortFunc(rows, func(a, b rankcache.Entry) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
	})
	return rows
}

// compare fails the test unless the published board is the model.
func (m *model) compare(t testing.TB, b *Board) {
	t.Helper()
	want := m.rows()
	progress := m.progress()
	if diff := gocmp.Diff(progress, b.Progress()); diff != "" {
		t.Fatalf("progress (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(want, whole(b, rankcache.Descending)); diff != "" {
		t.Fatalf("rows (-want +got):\n%s", diff)
	}
	compareTop(t, topOf(b), want)
	compareStandings(t, b, want)
	for id, is := range m.members {
		score, seq, on := b.Score(id)
		forgotten := !on && seq >= is.seq && is.seq <= progress.Contiguous // a removal; see TestTombstonesAreBounded
		if on != is.present || on && score != is.score || seq != is.seq && !forgotten {
			t.Fatalf("score of %q: %v, seq %d, %v; want %+v", id, score, seq, on, is)
		}
	}
}

func compareTop(t testing.TB, top *rankcache.Answer, want []rankcache.Entry) {
	t.Helper()
	if n := len(top.Entries); !isTopOf(n, len(want)) {
		t.Fatalf("%d rows in the top of %d", n, len(want))
	}
	if diff := gocmp.Diff(want[:len(top.Entries)], top.Entries, cmpopts.EquateEmpty()); diff != "" || top.Members != len(want) {
		t.Fatalf("top of %d, want of %d (-want +got):\n%s", top.Members, len(want), diff)
	}
}

func compareStandings(t testing.TB, b *Board, want []rankcache.Entry) {
	t.Helper()
	ids := []string{"absent"}
	for _, e := range want {
		ids = append(ids, e.Member)
	}
	desc, _ := standings(b, ids, rankcache.Descending)
	asc, _ := standings(b, ids, rankcache.Ascending)
	if desc[0] != (rankcache.Standing{Member: "absent"}) {
		t.Fatalf("a member that is not on the board: %+v", desc[0])
	}
	for i, e := range want {
		if d, a := desc[i+1], asc[i+1]; d.Rank != i+1 || a.Rank != len(want)-i || d.Score != e.Score || a.Score != e.Score {
			t.Fatalf("standing of row %d, %+v: %+v, from below %+v", i, e, d, a)
		}
	}
}

// whole returns all rows of a board.
func whole(b *Board, direction rankcache.Direction) []rankcache.Entry {
	es := page(b, 0, 1<<30, direction).Entries
	if es == nil {
		return []rankcache.Entry{}
	}
	return es
}

func TestBoardIsTheModel(t *testing.T) {
	for _, c := range []struct {
		name    string
		members int
		seq     func(*rand.Rand) bool
	}{
		{"with seq", 2000, func(*rand.Rand) bool { return true }},
		{"without", 2000, func(*rand.Rand) bool { return false }},
		{"mixed", 300, func(r *rand.Rand) bool { return r.IntN(2) == 0 }},
		{"few members", 3, func(*rand.Rand) bool { return true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, m := newBoard(t), newModel()
			s := &generator{Rand: rand.New(rand.NewPCG(3, uint64(c.members))), members: c.members, scores: smallScores}
			for round := range 60 {
				us := s.batch(1+s.IntN(400), c.seq(s.Rand))
				if got, want := b.Apply(us), m.apply(us); got != want {
					t.Fatalf("round %d: applied %+v, want %+v", round, got, want)
				}
				if round >= 5 && s.IntN(2) == 0 { // the first rounds fill, without an index
					b.Publish()
					m.compare(t, b)
					check(t, b)
				}
			}
			b.Publish()
			m.compare(t, b)
		})
	}
}

// TestBoardIsTheSortedSet compares with another implementation. Its scores are
// integers, to which the doubles are mapped in order; its ranks rise.
func TestBoardIsTheSortedSet(t *testing.T) {
	b, m, set := newBoard(t), newModel(), sortedset.New()
	s := &generator{Rand: rand.New(rand.NewPCG(5, 6)), members: 1500, scores: anyScore}
	for range 40 {
		us := s.batch(200, true)
		b.Apply(us)
		m.apply(us)
		b.Publish()
	}
	for id, is := range m.members {
		if is.present {
			set.AddOrUpdate(id, sortedset.SCORE(ordered(is.score)), nil)
		}
	}
	if set.GetCount() != topOf(b).Members {
		t.Fatalf("%d members, want %d", topOf(b).Members, set.GetCount())
	}
	for i, e := range whole(b, rankcache.Ascending) {
		if n := set.GetByRank(i+1, false); n.Key() != e.Member || int64(n.Score()) != ordered(e.Score) {
			t.Fatalf("row %d from below is %+v, want %q", i, e, n.Key())
		}
	}
	for id := range m.members {
		got, _ := standings(b, []string{id}, rankcache.Ascending)
		if want := set.FindRank(id); got[0].Rank != want {
			t.Fatalf("rank of %q from below is %d, want %d", id, got[0].Rank, want)
		}
	}
}
