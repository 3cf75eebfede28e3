package rewind

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rankcache/internal/testkit/kit"
)

// newWorld returns a world with servers, writers and boards, in which nothing has happened.
func newWorld(seed uint64, r rules) *world {
	w := &world{rules: r, rand: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_800_000_000, 0), place: make(map[string]int), closing: &closing{},
		refused: make(map[int]bool), cut: make(map[int]bool), safe: make(map[int]bool)}
	parents := make(map[uint64]began)
	w.mendEvery = []time.Duration{20 * time.Millisecond, 500 * time.Millisecond}[w.rand.IntN(2)]
	w.ledger = ledger{at: make(map[string]map[placeKey]update), runs: make(map[string][]*ledgerRun), stood: make(map[string]uint64),
		aside: make(map[orderKey]time.Time), lost: make(map[orderKey]bool), parents: parents, rules: &w.rules}
	w.topic = &topic{id: w.name("topic"), committed: make(map[int32]int64), owner: make(map[int32]*writer)}
	for range 1 + w.rand.IntN(3) {
		w.topic.parts = append(w.topic.parts, &plog{})
	}
	shards := max(1, w.rand.IntN(4)) // one is an address, several are a cluster
	w.forked = make(map[string]bool)
	nodes, forked := 2, w.forked
	if shards == 1 {
		nodes, forked = 3, nil
	}
	for i := range shards {
		s := &shard{id: i, slots: []int{10 * i, 10*i + 1, 10*i + 2}}
		for range nodes {
			s.nodes = append(s.nodes, &node{name: w.name("node"), shard: s, scripts: make(map[Era]bool), data: newData(), up: true, parents: parents, forked: forked})
		}
		s.master = s.nodes[0]
		s.master.become(w.newEra(), nil)
		w.shards, w.flushed = append(w.shards, s), append(w.flushed, false)
	}
	for _, board := range []string{"C0", "C1", "F0", "S0", "T0", "G0", "L0", "L1"} {
		w.place[board] = w.rand.IntN(len(w.shards))
		w.closing.left = append(w.closing.left, board)
	}
	for range 1 + w.rand.IntN(3) {
		w.newWriter()
	}
	w.spawn(nil, w.runLedger)
	w.spawn(nil, w.runJudge)
	w.spawn(nil, w.runMender)
	w.spawn(nil, w.runController)
	w.rebalance()
	return w
}

// command returns a random command.
func (w *world) command() *command {
	board := []string{"C0", "C1", "S0", "S0", "T0", "T0", "G0", "G0", "L0", "L1"}[w.rand.IntN(10)]
	w.orders++
	c := &command{id: w.orders, board: board, member: fmt.Sprint("m", w.rand.IntN(4)), op: opIncr, number: int64(1 + w.rand.IntN(9)), post: w.rand.IntN(3) > 0}
	switch {
	case board == "G0" && w.rand.IntN(3) == 0:
		c.op = opDelete
	case !commutes(board) && w.rand.IntN(2) == 0:
		c.op = opSet
	}
	return c
}

// history runs one history and returns why it is wrong, or nil.
func history(seed uint64, r rules, log bool) (w *world) {
	w = newWorld(seed, r)
	w.log = log
	defer w.close()
	f := someFaults(w.rand)
	if r.only != nil {
		f = *r.only
	}
	for left, steps := 20+w.rand.IntN(30), 0; left > 0 && w.failed == nil; steps++ {
		switch k := w.rand.IntN(150); {
		case k < 4:
			left--
			if c := w.command(); c.post {
				w.postTo(w.writers[w.rand.IntN(len(w.writers))], c)
			} else {
				w.append(c)
			}
		case k == 4:
			w.fault(&f)
		default:
			w.run()
		}
	}
	// The period ends; faults go on for a while.
	for range 100 + w.rand.IntN(1500) {
		if w.failed != nil {
			return w
		}
		if w.closing.ended = true; w.rand.IntN(150) == 0 {
			w.fault(&f)
		}
		w.run()
	}
	w.settle()
	for steps := 0; w.failed == nil && !w.atRest(); steps++ {
		if steps > 200_000 {
			w.fail("it does not come to rest: %d callers, %v to close, ledger %d of %d", w.callers, w.closing.left, w.ledger.next, len(w.ledger.topic))
			break
		}
		w.run()
	}
	if w.failed == nil {
		w.check()
	}
	return w
}

// atRest reports whether nothing is left to do.
func (w *world) atRest() bool {
	if w.callers > 0 || w.ledger.next < len(w.ledger.topic) || len(w.closing.left) > 0 {
		return false
	}
	for _, wr := range w.writers {
		if wr.told || !wr.m.Reading() {
			return false
		}
		for p := range wr.m.parts {
			if wr.m.Rewinding(p) || wr.next[p] < w.topic.parts[p].end() || wr.topicID[p] != w.topic.id {
				return false
			}
		}
	}
	if eras := []string{string(w.shards[0].master.era)}; len(w.shards) == 1 && !slices.Equal(w.ledger.named, eras) {
		return false
	}
	for _, s := range w.shards {
		if !s.master.isPast(w.topic.id, w.ends()) || s.master.hash().Damaged {
			return false
		}
	}
	return true
}

// Histories of failovers and of all that can come between two steps end with each command counted once.
func TestModel(t *testing.T) {
	t.Parallel()
	const parts = 4
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < kit.Sized[uint64](300, 20_000); seed += parts {
				if history(seed, contract, false).failed != nil {
					w := history(seed, contract, true)
					t.Fatalf("-run TestSeed -seed %d: %v\n%s", seed, w.failed, w.story())
				}
			}
		})
	}
}

// story returns what has happened, the last of it.
func (w *world) story() (text string) {
	for _, line := range w.trace[max(0, len(w.trace)-*traceLines):] {
		text += line + "\n"
	}
	return text
}

// without switches one rule off.
var without = map[string]func(*rules){
	"":                       func(*rules) {},
	"position era":           func(r *rules) { r.positionEra = false },
	"gone":                   func(r *rules) { r.positionLife, r.only = false, &faults{flush: true} },
	"fence":                  func(r *rules) { r.fence = false },
	"new run":                func(r *rules) { r.newRun = false },
	"healing":                func(r *rules) { r.healing, r.only = false, &faults{failover: true, kill: true} },
	"board as key":           func(r *rules) { r.boardKey = false },
	"log order":              func(r *rules) { r.throughLog = false },
	"log order, nor healing": func(r *rules) { r.throughLog, r.healing = false, false },
	"seen offsets":           func(r *rules) { r.seenBefore = false },
	"published first":        func(r *rules) { r.published = false },
	"eras first":             func(r *rules) { r.erasFirst = false },
	"a look at the life":     func(r *rules) { r.looksAtLife, r.only = false, &faults{flush: true} },
	"up to what is missing":  func(r *rules) { r.gap = false },
	"asking the ledger":      func(r *rules) { r.asks, r.only = false, &faults{flush: true, cut: true} },
	"closing by positions":   func(r *rules) { r.positionClose = false },
	"head of those named":    func(r *rules) { r.namedHead, r.only = false, &faults{failover: true, back: true} },
	"masters named first":    func(r *rules) { r.namedFirst = false },
	"own run":                func(r *rules) { r.ownRun, r.locates, r.only = false, false, &faults{failover: true, back: true} }, // for ledgers that Redis does not answer
	"published in this life": func(r *rules) { r.toldLife = false },
}

// Without any one of the rules some history goes wrong.
func TestModelNeedsEachRule(t *testing.T) {
	t.Parallel()
	for name, off := range without {
		if name == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := contract
			off(&r)
			for seed := range uint64(20_000) {
				if w := history(seed, r, false); w.failed != nil {
					t.Logf("-run TestSeed -seed %d -without %q: %v", seed, name, w.failed)
					whole := contract
					if whole.only, whole.locates = r.only, r.locates; history(seed, whole, false).failed != nil {
						t.Errorf("seed %d fails with the rule, too", seed)
					}
					return
				}
			}
			t.Errorf("no history fails without it")
		})
	}
}

// The name of a former master comes late, as its writer hung, the history of Redis changes again before the next name, and the board does
// not: only Redis can tell where the board is.
func TestModelNeedsAskingForBoards(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		seed uint64
		only *faults
	}{{15848, nil}, {17967, nil}, {2379, &faults{failover: true, back: true}}} {
		r := contract
		r.only = of.only
		if w := history(of.seed, r, false); w.failed != nil {
			t.Errorf("seed %d: %v", of.seed, w.failed)
		}
		r.locates = false
		if history(of.seed, r, false).failed == nil {
			t.Errorf("seed %d does not need it", of.seed)
		}
	}
}

var (
	seedFlag    = flag.Uint64("seed", 0, "the one history of TestSeed")
	withoutFlag = flag.String("without", "", "the rule that it lacks")
	traceLines  = flag.Int("trace", 150, "lines of a history, its last")
)

// TestSeed tells one history.
func TestSeed(t *testing.T) {
	r := contract
	without[*withoutFlag](&r)
	w := history(*seedFlag, r, true)
	t.Logf("%s", w.story())
	if w.failed != nil {
		t.Error(w.failed)
	}
}
