package writer

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// boardModel is what a board should be: a plain map of scores, and the orders of two
// turns.
type boardModel struct {
	scores    map[string]float64
	sets      [2]map[string]known // order ids by the turn's parity
	born      bool                // there is a meta
	dirty     bool                // something was changed past the scripts
	lost      bool                // the meta was: its run may be higher than the clock, which jumps
	turn      int64
	last, now int64
	run, seq  uint64

	rules    rules
	form     rankcache.ScoreForm
	changes  map[string]int     // of each member within the guard's time
	gains    map[string]float64 // likewise
	gainIn   int64              // counts of that time
	within   int64              // counts of that time
	beyond   string             // limit that the last command was beyond
	unranked int                // changes whose ties are not told apart
	all      map[string]float64 // scores of a board that is trimmed, also of members outside
	data     map[string]string  // of members on the board
	gone     bool               // the hash of the data was deleted
	veils    map[string]veiled  // of members that are, or were, hidden
}

// veiled is a member that is, or was, hidden, and its score while it is.
type veiled struct {
	wire.Hiding
	raw float64
}

// known is an applied order.
type known struct {
	command Command
	update  wire.Update
	trims   []wire.Update
}

const modelSpan = int64(3600_000 + 120_000) // of an order life of 1 h

// prepare mirrors prepare.lua but for the run, which it tells to be a new one.
func (m *boardModel) prepare() (newRun bool) {
	m.last = max(m.last, m.now)
	turn := m.last / modelSpan
	if !m.born {
		m.turn, m.seq = turn, 0
		clear(m.changes)
		clear(m.gains)
		m.gainIn = 0
	}
	if turn > m.turn {
		clear(m.sets[turn%2])
	}
	if turn > m.turn+1 {
		clear(m.sets[(turn+1)%2])
	}
	newRun = !m.born || m.dirty || m.gone
	m.turn, m.born, m.dirty, m.gone = max(m.turn, turn), true, false, false
	return newRun
}

// apply returns what the command should give: a reason of refusal, an earlier update,
// or a new one, and whether the run is a new one.
func (m *boardModel) apply(c *Command) (reason string, first *known, newRun bool) {
	if !m.born || m.gone || max(m.now, m.last)/modelSpan > m.turn {
		newRun = m.prepare()
	}
	m.beyond = ""
	if !m.dirty {
		m.turnGuard()
	}
	for _, set := range m.sets {
		if k, ok := set[c.OrderID]; ok {
			if k.command.Op != c.Op || k.command.Member != c.Member || k.command.Number != c.Number || !reflect.DeepEqual(k.command.Data, c.Data) {
				return "order_conflict", nil, newRun
			}
			return "", &k, newRun
		}
	}
	if m.dirty {
		newRun = m.prepare()
		m.turnGuard()
	}
	switch {
	case c.At < (m.turn-1)*modelSpan+60_000:
		return "too_old", nil, newRun
	case c.At > max(m.now, m.last)+60_000:
		return "early", nil, newRun
	}
	score, limit := m.after(c)
	if m.beyond = m.guard(c, math.Abs(score) <= limit); math.Abs(score) > limit {
		m.beyond = ""
		return "score_range", nil, newRun
	} else if m.beyond != "" && m.rules.guard.Refuse {
		return "guard", nil, newRun
	}
	m.last = max(m.last, m.now)
	m.seq++
	m.keepData(c)
	m.keep(c, score)
	return "", nil, newRun
}

// after returns the score that the command asks for and the highest one that it may have.
func (m *boardModel) after(c *Command) (score, limit float64) {
	old, limit := m.base(c.Member), float64(maxScore)
	if m.rules.features().Ties {
		old, limit = math.Floor(old), wire.MaxTieScore
	}
	switch c.Op {
	case wire.OpIncr:
		return old + c.raw(), limit
	case wire.OpBest:
		if m.has(c.Member) {
			return max(old, c.raw()), limit
		}
		return c.raw(), limit
	case wire.OpSet:
		return c.raw(), limit
	case wire.OpHide, wire.OpRestore:
		return old, limit
	}
	return 0, limit
}

// has reports whether the member has a score, on the board or outside.
func (m *boardModel) has(member string) bool {
	_, on := m.scores[member]
	_, outside := m.all[member]
	veil := m.veils[member]
	return on || outside || veil.Hidden && !veil.Bare
}

// base returns the score that the member has, on the board or outside.
func (m *boardModel) base(member string) float64 {
	if score, ok := m.scores[member]; ok {
		return score
	}
	if m.veils[member].Hidden {
		return m.veils[member].raw
	}
	return m.all[member]
}

// guard counts a change and returns the limit that it is beyond.
func (m *boardModel) guard(c *Command, counts bool) (beyond string) {
	g := m.rules.guard
	if g == (rooms.Guard{}) || c.Op.Moves() {
		return ""
	}
	if _, ok := m.scores[c.Member]; !ok && !m.veils[c.Member].Hidden && c.Op != wire.OpDelete && len(m.scores) >= g.Members {
		beyond = "members"
	} else if counts {
		m.changes[c.Member]++
	}
	if beyond == "" && m.changes[c.Member] > g.Changes {
		beyond = "changes"
	}
	if g.Gain == 0 || !counts || c.Op != wire.OpIncr || c.raw() <= 0 {
		return beyond
	}
	if in := max(m.now, m.last) / g.GainPer.Milliseconds(); in > m.gainIn {
		m.gainIn = in
		clear(m.gains)
	}
	if beyond == "" && m.gains[c.Member]+c.raw() > float64(g.Gain) {
		beyond = "gain"
	}
	if beyond == "" || !g.Refuse {
		m.gains[c.Member] += c.raw()
	}
	return beyond
}

// keep gives the member the score, which stays as it is if what is shown does.
func (m *boardModel) keep(c *Command, score float64) {
	f := m.rules.features()
	old, ok := m.base(c.Member), m.has(c.Member)
	switch {
	case c.Op.Moves() && !ok:
		delete(m.scores, c.Member)
	case c.Op.Moves():
		m.scores[c.Member] = old
	case c.Op == wire.OpDelete:
		delete(m.scores, c.Member)
		delete(m.all, c.Member)
	case !f.Ties:
		m.scores[c.Member] = score
	case !ok || score != rankcache.ScoreInteger.Shown(old):
		m.scores[c.Member] = wire.TieScore(score, m.seq, f.Last)
	default:
		m.scores[c.Member] = old
	}
	if score, on := m.scores[c.Member]; on && f.Trim {
		m.all[c.Member] = score
	}
	if c.Op != wire.OpDelete && !c.Op.Moves() && f.Ties && m.seq >= wire.TieLimit(score) {
		m.unranked++
	}
	m.veil(c)
}

// veil takes the member out of sight if it is hidden, now or before.
func (m *boardModel) veil(c *Command) {
	veil := m.veils[c.Member]
	if c.Op.Moves() && uint64(c.Number) > veil.Serial {
		veil.Serial, veil.Hidden = uint64(c.Number), c.Op == wire.OpHide
	}
	if veil.Serial == 0 {
		return
	}
	score, ok := m.scores[c.Member]
	if veil.Bare, veil.raw = !ok, score; veil.Hidden {
		delete(m.scores, c.Member)
	}
	m.veils[c.Member] = veil
}

// keepData gives the member the command's data, but with best only if that is better.
func (m *boardModel) keepData(c *Command) {
	switch {
	case c.Op == wire.OpDelete:
		delete(m.data, c.Member)
	case c.Data == nil || c.Op == wire.OpBest && m.has(c.Member) && m.base(c.Member) >= c.raw():
	case *c.Data == "":
		delete(m.data, c.Member)
	default:
		m.data[c.Member] = *c.Data
	}
}

// trim returns the updates of the members that a change has driven out.
func (m *boardModel) trim(u wire.Update) (trims []wire.Update) {
	for m.rules.trim > 0 && len(m.scores) > m.rules.trim {
		worst := ""
		for member, score := range m.scores {
			if least, ok := m.scores[worst]; !ok || score < least || score == least && member < worst {
				worst = member
			}
		}
		m.all[worst] = m.scores[worst]
		delete(m.scores, worst)
		delete(m.data, worst)
		m.seq++
		trims = append(trims, wire.Update{Board: u.Board, Member: worst, Op: wire.OpTrim, Form: u.Form, Run: m.run, Seq: m.seq, Sum: m.sum(), HasSum: true,
			Members: len(m.scores), OrderID: u.OrderID, At: u.At})
	}
	return trims
}

// turnGuard forgets the counts of another time, as each call of apply.lua does.
func (m *boardModel) turnGuard() {
	if per := m.rules.guard.Per.Milliseconds(); per > 0 && max(m.now, m.last)/per != m.within {
		m.within = max(m.now, m.last) / per
		clear(m.changes)
	}
}

func (m *boardModel) sum() (sum uint64) {
	for member, score := range m.scores {
		sum = (sum + wire.Hash(rankcache.JoinData(member, m.data[member]), score)) & wire.SumMask
	}
	return sum
}

// Random commands with repeats, conflicts, old and early times, turns, a clock that
// jumps back and forth, and changes past the scripts, one at a time or several in one
// call: replies and board are those of the model, and the sum in Redis is that of the
// members. So with each kind of class.
func TestRandomCommandsEqualModel(t *testing.T) {
	t.Parallel()
	guard := rooms.Guard{Changes: 3, Per: time.Minute, Members: 8}
	refuse := guard
	refuse.Refuse = true
	gain := rooms.Guard{Changes: 9, Per: time.Minute, Members: 11, Gain: 300, GainPer: time.Hour}
	data := &rooms.Class{Data: true}
	gains := gain
	gains.Refuse = true
	for i, r := range []rules{{}, {}, {}, {ties: rooms.TiesFirst}, {ties: rooms.TiesLast, guard: guard}, {guard: refuse}, {ties: rooms.TiesFirst, guard: refuse},
		{trim: 5}, {trim: 4, ties: rooms.TiesFirst, guard: guard}, {guard: gain}, {guard: gains, ties: rooms.TiesFirst}, {guard: gains, trim: 4}, {best: true}, {best: true, ties: rooms.TiesLast}, {best: true, trim: 4, ties: rooms.TiesFirst, guard: guard},
		{kind: data}, {kind: data, ties: rooms.TiesFirst, guard: refuse}, {kind: data, trim: 4}, {kind: data, best: true}, {kind: data, best: true, trim: 4, ties: rooms.TiesLast, guard: gains}} {
		h := quiet(t, func(o *Options) { o.BoardLife = 10_000 * time.Hour })
		h.applier.birth.addAtOnce = []int{maxAtOnce, 3}[i%2]
		m := &boardModel{scores: make(map[string]float64), sets: [2]map[string]known{{}, {}}, now: h.at, rules: r, form: rankcache.ScoreForm(i%2) * rankcache.ScoreLowest, changes: make(map[string]int), gains: make(map[string]float64), all: make(map[string]float64), veils: make(map[string]veiled), data: make(map[string]string)}
		h.applier.now = func() time.Time { return time.UnixMilli(m.now) }
		for step := range testkit.Sized(150, 400) {
			if h.modelStep(t, m, step); t.Failed() {
				t.Logf("rules %+v", r)
				return
			}
		}
		equal(t, "unranked", testutil.ToFloat64(h.metrics.ties), float64(m.unranked))
	}
}

func (h *fixture) modelStep(t *testing.T, m *boardModel, step int) {
	switch rand.IntN(20) {
	case 0:
		m.now += rand.Int64N(3 * modelSpan)
	case 1:
		m.now -= min(rand.Int64N(modelSpan), m.now-h.at)
	case 2:
		h.changePast(t, m, step)
	default:
		m.now += rand.Int64N(5000)
	}
	jobs := make([]*job, 1+rand.IntN(3)*rand.IntN(40))
	for i := range jobs {
		jobs[i] = &job{Command: h.randomModelCommand(m), rules: m.rules}
	}
	must(t, h.applier.apply(t.Context(), jobs))
	for _, j := range jobs {
		h.checkModel(t, m, j)
	}
	if !m.dirty {
		meta := h.meta(t)
		equal(t, fmt.Sprint("state after ", step), []any{meta.Run, meta.Seq, meta.Sum, meta.HasSum, meta.Members},
			[]any{m.run, m.seq, m.sum(), true, uint64(len(m.scores))})
		equal(t, "turn", int64(meta.Turn), m.turn)
		equal(t, "board", h.scores(t), m.scores)
		if m.rules.data() {
			equal(t, "data", h.dataOf(t), m.data)
		}
	}
}

// dataOf returns the data of the board's members; what others have left is of no account.
func (h *fixture) dataOf(t *testing.T) map[string]string {
	t.Helper()
	all := h.client.HGetAll(t.Context(), h.opts.Names.CompanionKey(h.board, wire.Data)).Val()
	scores := h.scores(t)
	maps.DeleteFunc(all, func(member, _ string) bool { _, on := scores[member]; return !on })
	return all
}

// changePast changes the board's keys as no writer does, but not so that the number of
// members is right again before a writer has seen it.
func (h *fixture) changePast(t *testing.T, m *boardModel, step int) {
	if m.dirty {
		return
	}
	ctx, board, members := t.Context(), string(h.board), len(m.scores)
	switch rand.IntN(6) {
	case 0:
		must(t, h.client.ZAdd(ctx, board, redis.Z{Member: fmt.Sprint("past", step), Score: math.MaxFloat64 * float64(1-2*rand.IntN(2))}).Err())
	case 1:
		must(t, h.client.ZRemRangeByRank(ctx, board, 0, rand.Int64N(4)).Err())
	case 2:
		must(t, h.client.Del(ctx, board).Err())
	case 3: // as when only the meta was evicted
		must(t, h.client.Del(ctx, h.opts.Names.MetaKey(h.board)).Err())
		m.born, m.lost, m.last = false, true, 0
	case 4: // as when the board's keys have expired
		must(t, h.client.Del(ctx, append(h.applier.allKeys(h.board, &m.rules), h.opts.Names.CompanionKey(h.board, wire.Hidden))...).Err())
		m.born, m.lost, m.last, m.sets = false, true, 0, [2]map[string]known{{}, {}}
		clear(m.all)
		clear(m.veils)
		clear(m.data)
	case 5:
		if m.rules.data() && m.born {
			must(t, h.client.Del(ctx, h.opts.Names.CompanionKey(h.board, wire.Data)).Err())
			m.gone = true
			clear(m.data)
		}
	}
	m.scores = h.scores(t)
	maps.DeleteFunc(m.data, func(member, _ string) bool { _, on := m.scores[member]; return !on })
	m.dirty = m.dirty || len(m.scores) != members
}

func (h *fixture) randomModelCommand(m *boardModel) *Command {
	for _, set := range m.sets { // often a repeat
		for _, k := range set {
			if rand.IntN(8) == 0 {
				c := k.command
				c.At += rand.Int64N(100)
				if rand.IntN(4) == 0 && c.Op != wire.OpDelete {
					c.Number++
				} else if c.HasData && rand.IntN(4) == 0 && c.Op != wire.OpDelete {
					c.Data = new("other")
				}
				return &c
			}
			break
		}
	}
	c := &Command{Board: h.board, OrderID: fmt.Sprint("o", rand.Int64()), Member: fmt.Sprint("m", rand.IntN(12)),
		Op: wire.Op(1 + rand.IntN(3)), Number: math.Round(rand.NormFloat64()*1000) / 8, At: m.now - rand.Int64N(60_000), Form: m.form}
	if m.rules.trim == 0 && !m.rules.data() && rand.IntN(4) == 0 {
		serial := uint64(1 + rand.IntN(1<<20))
		c.Op, c.Number, c.OrderID = wire.OpHide+wire.Op(rand.IntN(2)), float64(serial), wire.HideOrder(serial, c.Member)
		return c
	}
	if c.HasData = m.rules.data(); c.HasData && c.Op != wire.OpDelete && rand.IntN(2) == 0 {
		c.Data = new([]string{"", "car 1", "ü", strings.Repeat("x", rankcache.MaxDataLen)}[rand.IntN(4)])
	}
	if m.rules.best && rand.IntN(3) > 0 {
		if c.Op = wire.OpBest; rand.IntN(4) == 0 {
			c.Number = m.form.Shown(math.Floor(m.base(c.Member))) // as good as the best
		}
	}
	if m.rules.features().Ties {
		c.Number = math.Round(c.Number)
		if rand.IntN(4) == 0 { // few changes have room for a tie-break
			c.Number += math.Copysign(wire.MaxTieScore-500, c.Number)
		}
	}
	if c.Op == wire.OpDelete {
		c.Number = 0
	}
	switch rand.IntN(20) {
	case 0:
		c.At = m.now - rand.Int64N(4*modelSpan)
	case 1:
		c.At = max(m.now, m.last) + rand.Int64N(120_000)
	}
	return c
}

// checkModel compares the outcome of a job with that of the model.
func (h *fixture) checkModel(t *testing.T, m *boardModel, j *job) {
	reason, first, newRun := m.apply(j.Command)
	got := ""
	if j.Refusal != nil {
		got = j.Refusal.Reason
	}
	equal(t, "reason, limit", []string{got, j.Beyond}, []string{reason, m.beyond})
	if newRun {
		run := h.meta(t).Run
		if run == m.run || run < m.run && !m.lost {
			t.Errorf("run %d after %d", run, m.run)
		}
		m.run, m.lost = run, false
	}
	if t.Failed() || reason != "" {
		return
	}
	if first != nil {
		equal(t, "repeat", []any{j.Duplicate, j.Update, j.Trims}, []any{true, first.update, first.trims})
		return
	}
	score := m.scores[j.Member]
	want := wire.Update{Board: h.board, Member: j.Member, Op: j.Op, Form: m.form, Score: score, Run: m.run, Seq: m.seq, Sum: m.sum(), HasSum: true,
		Members: len(m.scores), OrderID: j.OrderID, At: j.At, Data: m.data[j.Member], Given: j.given()}
	if j.Op.HasDelta() {
		want.Delta = j.Number
	}
	veil := m.veils[j.Member]
	if want.Hiding = veil.Hiding; veil.Hidden {
		want.Score = veil.raw
	}
	trims := m.trim(want)
	equal(t, "applied", []any{j.Duplicate, j.Update, j.Trims}, []any{false, want, trims})
	m.sets[m.turn%2][j.OrderID] = known{*j.Command, want, trims}
}

// The meta that the scripts write is what Go reads and writes: life, end and times
// included.
func TestMetaOfLuaIsThatOfGo(t *testing.T) {
	h := quiet(t, func(o *Options) { o.BoardLife, o.OrderLife, o.OrderBuckets = time.Hour, 2*time.Hour, 7 })
	h.at0(1_800_000_000_123)
	must(t, h.applier.apply(t.Context(), []*job{{Command: &Command{Board: h.board, Member: "m", Op: wire.OpIncr, Number: 2.5, OrderID: "o", At: 1_800_000_000_000}}}))
	value, err := h.client.Get(t.Context(), h.opts.Names.MetaKey(h.board)).Result()
	must(t, err)
	m, err := wire.ParseMeta(value)
	must(t, err)
	equal(t, "meta", m, wire.Meta{State: rankcache.State{Run: m.Run, Seq: 1, Sum: wire.Hash("m", 2.5), HasSum: true}, Members: 1,
		Expires: 1_800_004_051_123, Now: 1_800_000_000_123, Turn: 1_800_000_000_123 / 7_320_000, OrderLife: 7200, Buckets: 7})
	equal(t, "run", m.Run>>10, uint64(1_800_000_000_123))

	// Life, end and what a change must keep survive it.
	m.Life, m.End = wire.LifeClosing, 1_800_000_009_999
	must(t, h.client.Set(t.Context(), h.opts.Names.MetaKey(h.board), wire.AppendMeta(nil, &m), redis.KeepTTL).Err())
	must(t, h.applier.apply(t.Context(), []*job{{Command: &Command{Board: h.board, Member: "n", Op: wire.OpSet, Number: 1, OrderID: "p", At: 1_800_000_000_000}}}))
	m.Seq, m.Members, m.Sum = 2, 2, (m.Sum+wire.Hash("n", 1))&wire.SumMask
	equal(t, "meta", h.meta(t), m)
}

// A meta of another version is not read and not overwritten.
func TestMetaOfAnotherVersionIsKept(t *testing.T) {
	h := quiet(t, nil)
	h.do1(t, h.opCommand("incr", "o", "m", "delta", 1))
	key := h.opts.Names.MetaKey(h.board)
	value := h.client.Get(t.Context(), key).Val()
	for _, other := range []string{"\x02" + value[1:], value + "x", "7"} {
		must(t, h.client.Set(t.Context(), key, other, 0).Err())
		h.checkRefused(t, h.opCommand("incr", "p", "m", "delta", 1), "type")
		must(t, h.applier.prepare(t.Context(), h.board, rules{}, ""))
		equal(t, "meta", h.client.Get(t.Context(), key).Val(), other)
	}
	equal(t, "board", h.scores(t), map[string]float64{"m": 1})
}

// A board keeps the number of buckets of its birth; a writer with another setting
// learns it.
func TestBucketsOfBirth(t *testing.T) {
	h := quiet(t, nil)
	h.do1(t, h.opCommand("incr", "o", "m", "delta", 1))
	h.opts.OrderBuckets = 9
	other := h.restarted(t)
	equal(t, "seq", other.do1(t, h.opCommand("incr", "p", "m", "delta", 1)).Update.Seq, uint64(2))
	equal(t, "repeat", other.do1(t, h.opCommand("incr", "o", "m", "delta", 1)).Duplicate, true)
	equal(t, "buckets", h.meta(t).Buckets, uint16(DefaultOrderBuckets))
	must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: "past"}).Err())
	equal(t, "adopted", h.restarted(t).do1(t, h.opCommand("incr", "q", "m", "delta", 1)).Update.Members, 2)
	equal(t, "keys", len(h.client.Keys(t.Context(), "{"+string(h.board)+"}*").Val()), 2*DefaultOrderBuckets+1)
}
