package sidecar

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
)

// fakeBoard is a local board whose every state follows from its seq: member i
// of n has the score seq*1000+n-i, so a row that is not of the seq beside it is
// seen at once.
type fakeBoard struct {
	id  rankcache.BoardID
	n   int
	top atomic.Pointer[rankcache.Top]
	at  time.Time
}

func newFakeBoard(id rankcache.BoardID, n int, seq uint64) *fakeBoard {
	b := &fakeBoard{id: id, n: n, at: published}
	b.publish(seq)
	return b
}

// published is the time of everything that fakes publish.
var published = time.Date(2026, 5, 4, 20, 0, 0, 123e6, time.UTC)

func member(i int) string { return fmt.Sprintf("m%06d", i) }

func scoreAt(seq uint64, n, i int) float64 { return float64(seq)*1000 + float64(n-i) }

func (b *fakeBoard) publish(seq uint64) {
	b.top.Store(fakeTop(b.id, b.n, min(b.n, rankcache.MaxTop), seq))
}

// fakeTop returns the head of up to rows entries of a board of n members.
func fakeTop(id rankcache.BoardID, n, rows int, seq uint64) *rankcache.Top {
	t := &rankcache.Top{Board: id, Seq: seq, Members: n, PublishedAt: published}
	for i := range rows {
		t.Entries = append(t.Entries, rankcache.Entry{Member: member(i), Score: scoreAt(seq, n, i)})
	}
	return t
}

func (b *fakeBoard) Top() *rankcache.Top  { return b.top.Load() }
func (b *fakeBoard) CurrentAt() time.Time { return b.at }

func (b *fakeBoard) stamp() rankcache.Stamp {
	return rankcache.Stamp{Seq: b.top.Load().Seq, Members: b.n, At: published}
}

func (b *fakeBoard) Page(start, limit int, order rankcache.Order) rankcache.Page {
	p := rankcache.Page{Stamp: b.stamp(), Start: start}
	for r := start; r < min(start+limit, b.n); r++ {
		i := r
		if order == rankcache.Asc {
			i = b.n - 1 - r
		}
		p.Entries = append(p.Entries, rankcache.Entry{Member: member(i), Score: scoreAt(p.Seq, b.n, i)})
	}
	return p
}

func (b *fakeBoard) Standings(dst []rankcache.Standing, members []string, order rankcache.Order) ([]rankcache.Standing, rankcache.Stamp) {
	s := b.stamp()
	for _, m := range members {
		row := rankcache.Standing{Member: m}
		if i, ok := b.index(m); ok {
			row.Rank, row.Score = i+1, scoreAt(s.Seq, b.n, i)
			if order == rankcache.Asc {
				row.Rank = b.n - i
			}
		}
		dst = append(dst, row)
	}
	return dst, s
}

func (b *fakeBoard) index(m string) (int, bool) {
	var i int
	if _, err := fmt.Sscanf(m, "m%06d", &i); err != nil || i >= b.n || m != member(i) {
		return 0, false
	}
	return i, true
}

func (b *fakeBoard) Around(m string, n int, order rankcache.Order) (rankcache.Page, int, bool) {
	rows, _ := b.Standings(nil, []string{m}, order)
	rank := rows[0].Rank
	if rank == 0 {
		return rankcache.Page{Stamp: b.stamp()}, 0, false
	}
	start := max(rank-1-n, 0)
	return b.Page(start, rank+n-start, order), rank, true
}

// fakeBoards is a set of open boards.
type fakeBoards map[rankcache.BoardID]Board

func (s fakeBoards) Get(id rankcache.BoardID) (Board, bool) {
	b, ok := s[id]
	return b, ok
}

// fakeHot is a hot tier with fixed pages.
type fakeHot struct {
	tops   map[rankcache.BoardID]*rankcache.Top
	at     time.Time // when they were current
	counts sync.Map
	reads  atomic.Int64
}

func (h *fakeHot) Top(id rankcache.BoardID) (*rankcache.Top, time.Time, bool) {
	t := h.tops[id]
	return t, h.at, t != nil
}

func (h *fakeHot) Count(id rankcache.BoardID) {
	h.reads.Add(1)
	id = rankcache.BoardID(strings.Clone(string(id))) // it may be the memory of a request
	n, _ := h.counts.LoadOrStore(id, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// fakeOrigin is Redis holding boards of n members at one seq. Calls are counted;
// hold, when set, keeps a call until it is closed or the context ends.
type fakeOrigin struct {
	n, calls atomic.Int64
	seq      atomic.Uint64
	hold     chan struct{}
	fail     atomic.Pointer[error]
}

func newFakeOrigin(n int, seq uint64) *fakeOrigin {
	o := &fakeOrigin{}
	o.n.Store(int64(n))
	o.seq.Store(seq)
	return o
}

func (o *fakeOrigin) ask(ctx context.Context) (*fakeBoard, error) {
	o.calls.Add(1)
	if o.hold != nil {
		select {
		case <-o.hold:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", rankcache.ErrUnavailable, ctx.Err())
		}
	}
	if err := o.fail.Load(); err != nil {
		return nil, *err
	}
	return newFakeBoard("", int(o.n.Load()), o.seq.Load()), nil
}

func (o *fakeOrigin) failWith(err error) { o.fail.Store(&err) }

func (o *fakeOrigin) Page(ctx context.Context, _ rankcache.BoardID, start, limit int, order rankcache.Order) (rankcache.Page, error) {
	b, err := o.ask(ctx)
	if err != nil {
		return rankcache.Page{}, err
	}
	return b.Page(start, limit, order), nil
}

func (o *fakeOrigin) Standings(ctx context.Context, _ rankcache.BoardID, members []string, order rankcache.Order) ([]rankcache.Standing, rankcache.Stamp, error) {
	b, err := o.ask(ctx)
	if err != nil {
		return nil, rankcache.Stamp{}, err
	}
	rows, stamp := b.Standings(nil, members, order)
	return rows, stamp, nil
}

func (o *fakeOrigin) Around(ctx context.Context, _ rankcache.BoardID, m string, n int, order rankcache.Order) (rankcache.Page, int, error) {
	b, err := o.ask(ctx)
	if err != nil {
		return rankcache.Page{}, 0, err
	}
	p, rank, ok := b.Around(m, n, order)
	if !ok {
		return p, 0, fmt.Errorf("%.20q: %w", m, rankcache.ErrUnknownMember)
	}
	return p, rank, nil
}

// fakeProfiles knows the members whose id does not begin with "x"; those with
// "late" in it are missing until epoch moves on.
type fakeProfiles struct {
	epoch atomic.Int64
	joins atomic.Int64
	hold  chan struct{}
}

func (p *fakeProfiles) Join(_ context.Context, members []string, dst [][]byte) (int, func() bool) {
	p.joins.Add(1)
	if p.hold != nil {
		<-p.hold
	}
	epoch, missing := p.epoch.Load(), 0
	for i, m := range members {
		switch {
		case strings.Contains(m, "late") && epoch == 0:
			missing++
		case m[0] != 'x':
			dst[i] = fmt.Appendf(nil, `{"nick":%q,"v":%d}`, "N-"+m, epoch)
		}
	}
	return missing, func() bool { return p.epoch.Load() == epoch }
}

// tiersOf returns tiers from a rooms file.
func tiersOf(yaml string) func() *rankcache.Tiers {
	rooms, err := rankcache.ParseRooms([]byte(yaml))
	if err != nil {
		panic(err)
	}
	t := rooms.Resolve(nil)
	return func() *rankcache.Tiers { return t }
}

const testRooms = `
rooms:
  - {uid: "88", mode: super-hot, boards: ["local", "tiny", "filling"]}
  - {uid: "99", mode: blocked, boards: ["shut"]}
  - {uid: "77", mode: hot, boards: ["hot"]}
boards:
  - {match: "9_*", mode: blocked}
`

// world is everything that a reader reads from.
type world struct {
	local, tiny *fakeBoard
	hot         *fakeHot
	origin      *fakeOrigin
	profiles    *fakeProfiles
	limits      OriginLimits
	log         *slog.Logger // nil: a warning fails the test
}

func newWorld() *world {
	return &world{
		local: newFakeBoard("local", 57000, 917), tiny: newFakeBoard("tiny", 3, 7),
		hot: &fakeHot{at: published, tops: map[rankcache.BoardID]*rankcache.Top{
			"hot": fakeTop("hot", 2000, 100, 33),
		}},
		origin: newFakeOrigin(1000, 12), profiles: &fakeProfiles{},
	}
}

func (w *world) config() Config {
	return Config{Tiers: tiersOf(testRooms), Boards: fakeBoards{"local": w.local, "tiny": w.tiny},
		Hot: w.hot, Origin: w.origin, Profiles: w.profiles, Limits: w.limits}
}

func (w *world) reader() *Reader {
	r, err := NewReader(w.config(), nil)
	if err != nil {
		panic(err)
	}
	return r
}

func ranksOf(rows []rankcache.Standing) (ranks []int) {
	for r := range slices.Values(rows) {
		ranks = append(ranks, r.Rank)
	}
	return ranks
}
