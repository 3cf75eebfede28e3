package rewind

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// shard is a master of Redis by its name, and the servers that may be it.
type shard struct {
	id     int
	slots  []int // ascending, the few that may be its lowest
	moved  bool  // the lowest one, and no writer has written positions since
	master *node // in truth
	// returned tells that it is a former one.
	returned bool
	nodes    []*node
}

// name is what a shard's master is called: by its lowest slot.
func (s *shard) name() Master { return Master(fmt.Sprint(s.slots[0])) }

func (s *shard) has(key Master) bool {
	return slices.ContainsFunc(s.slots, func(slot int) bool { return Master(fmt.Sprint(slot)) == key })
}

// faults are what a history may have.
type faults struct {
	failover, oldState, empty, flush, hashGone, scriptFlush, freeze, kill, cut, remade, partition, move, back, astray bool
}

func someFaults(r *rand.Rand) faults {
	often := func(n int) bool { return r.IntN(n) == 0 }
	return faults{failover: !often(5), oldState: often(3), empty: often(4), flush: often(6), hashGone: often(5), scriptFlush: often(4),
		freeze: !often(4), kill: often(2), cut: often(10), remade: often(16), partition: often(10), move: often(4), back: !often(3), astray: !often(3)}
}

// fault makes something happen to servers, writers or the log.
func (w *world) fault(f *faults) {
	s := w.shards[w.rand.IntN(len(w.shards))]
	wr := w.writers[w.rand.IntN(len(w.writers))]
	for _, o := range w.shards { // rather one that lacks boards
		if h := o.master.hash(); f.move && h != nil && h.Damaged && w.rand.IntN(2) == 0 {
			w.moveSlot(o, s)
			return
		}
	}
	switch k := w.rand.IntN(20); {
	case k <= 2 && f.failover:
		w.failover(s)
	case k == 3:
		w.demote(s)
	case k == 4 && f.oldState:
		w.restart(s, w.back(s.master, 60))
	case k == 5 && f.empty:
		w.noteSafe(s.id, s.master)
		w.restart(s, 0)
	case k == 6 && f.flush && s.isKnown(len(w.topic.parts)):
		w.flushes++
		w.flushed[s.id] = true
		w.noteSafe(s.id, s.master)
		w.say("FLUSHALL on %s", s.master.name)
		s.master.do(func(d *data) { *d = *newData() })
	case k == 7 && f.hashGone:
		w.flushes++
		w.say("the hash of %s is deleted", s.master.name)
		key := s.name()
		s.master.do(func(d *data) { delete(d.hashes, key) })
	case k == 8 && f.scriptFlush:
		w.scriptFlushes++
		w.say("SCRIPT FLUSH on %s", s.master.name)
		s.master.scripts = make(map[Era]bool)
	case k == 9 && f.freeze:
		wr.frozen = !wr.frozen
		w.say("%s frozen: %v", wr.name, wr.frozen)
		if !wr.frozen && !slices.Contains(w.members, wr) { // it joins again
			w.rebalance()
		}
	case k == 10 && f.kill:
		for _, o := range w.writers { // rather one that has applied what it has not published
			if o.publishing > 0 && w.rand.IntN(2) == 0 {
				wr = o
			}
		}
		w.kill(wr)
	case k == 11:
		w.rebalance()
	case k == 12 && f.cut:
		w.cutLog()
	case k == 13 && (f.remade || f.partition):
		w.changeTopic(f)
	case k == 14 && f.move:
		w.moveSlot(s, w.shards[w.rand.IntN(len(w.shards))])
	case k <= 16 && f.back:
		w.leadBack(s)
	case k == 17 && f.astray:
		w.leadAstray(s, wr)
	case k == 18 && !s.returned && w.isNamed(s.master.era): // an hour after it had replicas, not in the second of a return
		s.master.era = w.newEra()
		w.say("%s goes on in %s", s.master.name, s.master.era)
	}
}

// isNamed reports whether the writers have named a server last, and no earlier name is on its way.
func (w *world) isNamed(era Era) bool {
	last := ""
	for _, u := range w.ledger.topic {
		last = cmp.Or(u.named, last)
	}
	onItsWay := func(wr *writer) bool { return wr.naming != "" && wr.naming != last }
	return len(w.shards) > 1 || last == string(era) && !slices.ContainsFunc(w.writers, onItsWay)
}

// living returns a former master that takes itself for one, or nil. In a cluster config epochs demote it.
func (w *world) living(s *shard) *node {
	n := s.nodes[w.rand.IntN(len(s.nodes))]
	if len(w.shards) > 1 || n == s.master || !n.master || !n.up {
		return nil
	}
	return n
}

// leadBack has the address lead to a former master that was neither demoted nor restarted.
func (w *world) leadBack(s *shard) {
	to := w.living(s)
	if to == nil {
		return
	}
	s.returned = true
	w.say("the address leads back from %s to %s in %s", s.master.name, to.name, to.era)
	s.master = to
	w.checkPositions(s.id, to)
	for _, wr := range w.writers {
		if w.rand.IntN(3) > 0 { // its connections end
			wr.lead(s.id, to)
		}
	}
}

// leadAstray has the address of one writer lead to a former master for a while, or to the master again.
func (w *world) leadAstray(s *shard, wr *writer) {
	if wr.astray = w.living(s); wr.astray == nil {
		wr.lead(s.id, s.master)
		return
	}
	w.say("%s is led to %s in %s", wr.name, wr.astray.name, wr.astray.era)
	wr.lead(s.id, wr.astray)
}

// moveSlot moves the lowest slot of a master, with the positions that are in it, to another one that lacks nothing.
func (w *world) moveSlot(from, to *shard) {
	key := from.name()
	if from == to || len(from.slots) < 2 || !from.master.up || !to.master.isHealed(len(w.topic.parts)) {
		return
	}
	w.moves++
	w.say("slot %s moves from %s to %s", key, from.master.name, to.master.name)
	from.slots, to.slots = from.slots[1:], append(to.slots, from.slots[0])
	slices.Sort(to.slots)
	from.moved, to.moved = true, to.name() == key || to.moved
	if h := from.master.data.hashes[key]; h != nil {
		to.master.do(func(d *data) { d.hashes[key] = &Hash{Life: h.Life, Damaged: h.Damaged, Of: maps.Clone(h.Of)} })
	}
	from.master.do(func(d *data) {
		delete(d.hashes, key)
		d.answers = make(map[string]Era)
	})
}

// isKnown reports whether writers have looked at a master since it got another name. Keys that are deleted before are not missed: it has
// what it had, for all that they know.
func (s *shard) isKnown(parts int) bool {
	s.moved = s.moved && !s.master.isHealed(parts)
	return !s.moved
}

// isHealed reports whether a node has all that was lost before its era.
func (n *node) isHealed(parts int) bool {
	if !n.up || n.hash() == nil || n.hash().Damaged || len(n.hash().Of) < parts {
		return false
	}
	for _, p := range n.hash().Of {
		if p.Healed != n.era {
			return false
		}
	}
	return true
}

// back returns a length of the node's stream that is at most so much shorter than it is.
func (w *world) back(n *node, most int) int {
	return max(len(n.stream)-w.rand.IntN(most), 0)
}

func (w *world) newEra() Era { return Era(w.name("era")) }

// failover promotes a replica. The old master may be down, or not notice.
func (w *world) failover(s *shard) {
	old := s.master
	to := s.nodes[w.rand.IntN(len(s.nodes))]
	if to == old || to.master && to.up {
		return
	}
	n := w.back(old, []int{1, 3, 12, 40}[w.rand.IntN(4)])
	old.up = w.rand.IntN(2) == 0
	s.master, s.returned = to, false
	to.become(w.newEra(), old.stream[:n])
	w.say("%s is the master of %d in %s, without %d effects of %s (up: %v)", to.name, s.id, to.era, len(old.stream)-n, old.name, old.up)
	w.checkPositions(s.id, to)
}

// demote has an old master become a replica.
func (w *world) demote(s *shard) {
	for _, n := range s.nodes {
		if n != s.master {
			n.up, n.master = true, false
		}
	}
}

// restart has the master begin again with an earlier state of its own.
func (w *world) restart(s *shard, n int) {
	lost := len(s.master.stream) - n
	s.master.scripts = make(map[Era]bool)
	s.master.become(w.newEra(), s.master.stream[:n])
	w.say("%s restarts in %s without %d effects", s.master.name, s.master.era, lost)
	w.checkPositions(s.id, s.master)
}

func (w *world) kill(wr *writer) {
	wr.alive, wr.frozen = false, false
	w.say("%s is killed", wr.name)
	for _, t := range w.threads { // what it has sent may come, or not
		if t.of == wr && t.inFlight && w.rand.IntN(2) == 0 {
			t.inFlight = false
		}
	}
	w.writers = slices.DeleteFunc(w.writers, func(o *writer) bool { return o == wr })
	w.newWriter()
	w.rebalance()
}

// rebalance gives each partition to a writer that is taken for alive. Those that are not asked go on
// with what they have.
func (w *world) rebalance() {
	w.term++
	w.members = nil
	for _, wr := range w.writers {
		if !wr.frozen || w.rand.IntN(3) == 0 {
			w.members = append(w.members, wr)
		}
	}
	w.topic.owner = make(map[int32]*writer)
	of := make(map[*writer][]int32)
	for p := range len(w.topic.parts) {
		if len(w.members) > 0 {
			wr := w.members[w.rand.IntN(len(w.members))]
			of[wr] = append(of[wr], int32(p))
			w.topic.owner[int32(p)] = wr
		}
	}
	for _, wr := range w.members {
		wr.pending, wr.pendingTerm, wr.told = of[wr], w.term, true
	}
}

// cutLog has retention take the beginning of a partition.
func (w *world) cutLog() {
	p := w.topic.parts[w.rand.IntN(len(w.topic.parts))]
	start := p.start + w.rand.Int64N(p.end()-p.start+1)
	for _, c := range p.records[p.start:start] {
		w.cut[c.id] = true
	}
	w.say("the log is cut from %d to %d", p.start, start)
	p.start = start
	w.logEvents++
}

// changeTopic adds a partition, or makes the topic again.
func (w *world) changeTopic(f *faults) {
	w.logEvents++
	w.repartial = true
	if f.partition && len(w.topic.parts) < 4 {
		w.topic.parts = append(w.topic.parts, &plog{})
		w.say("a partition is added")
		w.rebalance()
		return
	}
	if !f.remade {
		return
	}
	for _, p := range w.topic.parts {
		for _, c := range p.records {
			w.cut[c.id] = true
		}
	}
	w.topic.id = w.name("topic")
	for i := range w.topic.parts {
		w.topic.parts[i] = &plog{}
	}
	if w.rand.IntN(2) == 0 {
		w.topic.committed = make(map[int32]int64)
	}
	w.say("the topic is made again: %s", w.topic.id)
}

// settle ends all faults.
func (w *world) settle() {
	w.quiet = true
	for _, s := range w.shards {
		w.demote(s)
		s.master.up = true
	}
	all := true
	for _, wr := range w.writers {
		all = all && !wr.frozen
		wr.frozen, wr.astray = false, nil
	}
	if !all || w.rand.IntN(3) == 0 {
		w.rebalance()
	}
	w.now = w.now.Add(time.Second)
}
