package rewind

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// writer is a writer process: what will be real calls are steps of threads here.
type writer struct {
	*world
	name          string
	m             *Machine
	alive, frozen bool
	view          []*node // whom it takes for the master of each shard
	next          map[int32]int64
	topicID       map[int32]string
	pending       []int32 // partitions that it is to have, once it knows
	pendingTerm   int
	term          int
	told          bool
	assigned      int
	rewinds       int
	marks         int // that it has asked for
	led           int // to another server, by its address
	publishing    int
	early         map[Master]Hash // positions that were read before the eras
	astray        *node           // to which its address leads, nil: to the master
	seen          seenMasters
	naming        string // what it names, while that is on its way
	named         uint64 // the round whose masters were named
}

func (w *world) newWriter() *writer {
	wr := &writer{world: w, name: w.name("w"), m: New(), alive: true, next: make(map[int32]int64), topicID: make(map[int32]string)}
	for _, s := range w.shards {
		wr.view = append(wr.view, s.master)
	}
	w.writers = append(w.writers, wr)
	w.spawn(wr, wr.read)
	w.spawn(wr, wr.tick)
	w.spawn(wr, wr.nameMasters)
	return wr
}

// lead has the address lead to a server.
func (wr *writer) lead(s int, to *node) {
	wr.led++
	wr.view[s] = to
}

// seenMasters tells when all masters have answered with the eras of a round.
type seenMasters struct {
	round uint64
	eras  string
	at    time.Time
}

// nameAgain is how often a writer names the masters.
const nameAgain = 5 * time.Second

// nameMasters has the ledger know which servers the writer takes for the masters.
func (wr *writer) nameMasters(t *thread) {
	last, at := uint64(0), time.Time{}
	for {
		t.sleep(250 * time.Millisecond)
		seen := wr.seen
		if seen.eras == "" || seen.round != wr.m.Round() || wr.now.Sub(seen.at) > 2*time.Second || seen.round == last && (!wr.rules.namedAgain || wr.now.Sub(at) < nameAgain) {
			continue
		}
		wr.naming = seen.eras
		if wr.rand.IntN(8) == 0 { // Kafka is slow
			t.sleep(time.Duration(wr.rand.IntN(2000)) * time.Millisecond)
		}
		ask(t, func() bool {
			wr.naming = ""
			wr.say("%s names %s", wr.name, seen.eras)
			wr.ledger.topic = append(wr.ledger.topic, update{named: seen.eras})
			return true
		})
		last, at = seen.round, wr.now
	}
}

// list returns the eras of the round as they are named.
func (wr *writer) list() string {
	var list []string
	for _, master := range slices.Sorted(maps.Keys(wr.m.eras)) {
		list = append(list, string(wr.m.eras[master]))
	}
	return strings.Join(list, " ")
}

// noteSeen notes that all masters of a round, and no others, have answered.
func (wr *writer) noteSeen(asked time.Time, seen map[Master]History) {
	for master, era := range wr.m.eras {
		if seen[master].Era != era {
			return
		}
	}
	if len(seen) == len(wr.m.eras) && len(seen) > 0 {
		wr.seen = seenMasters{wr.m.Round(), wr.list(), asked}
	}
}

// found returns the record of a change, with the server on which it was found.
func (wr *writer) found(id int, board string, r applied) update {
	u := update{id: id, board: board, record: r.record}
	if len(wr.shards) == 1 {
		u.era = wr.m.eras[wr.shards[0].name()]
		u.past = wr.rules.ownRun && r.run != r.now
	}
	return u
}

func (wr *writer) tell(e Event) {
	for _, a := range wr.m.Step(wr.now, e) {
		wr.say("%s: %T%+v -> %T%+v", wr.name, e, e, a, a)
		wr.act(a)
	}
}

func (wr *writer) act(a Action) {
	switch a := a.(type) {
	case ReadEras:
		wr.spawn(wr, func(t *thread) { wr.readEras(t, a) })
	case ReadPositions:
		wr.spawn(wr, func(t *thread) { wr.readPositions(t, a) })
	case ReadLog:
		wr.spawn(wr, func(t *thread) {
			of, topics := wr.readLog(t, a)
			if wr.m.Round() == a.Round {
				wr.topicID = topics
				wr.rewinds++
			}
			wr.tell(LogRead{a.Round, of, true})
			wr.healAll(of)
		})
	case Seek:
		wr.next[a.Partition] = a.Offset
	case MarkDamaged:
		wr.marks++
		wr.spawn(wr, func(t *thread) { wr.markDamaged(t, a) })
	case WritePosition:
		wr.spawn(wr, func(t *thread) { wr.writePosition(t, a) })
	}
}

// healAll has, without the rule, all be healed that has a position in the present era.
func (wr *writer) healAll(of map[int32]Log) {
	if wr.rules.healedBehind || !wr.m.Reading() {
		return
	}
	for id, p := range wr.m.parts {
		for master, era := range wr.m.eras {
			there := wr.m.hashes[master].Of[id]
			p.healed[master] = p.healed[master] || there.Healed == era && there.Topic == of[id].Topic && there.Next <= of[id].End
		}
	}
}

// eras returns those for which calls are made; none while they are not known.
func (wr *writer) eras() (all []Era) {
	for master := range wr.m.eras {
		if era := wr.m.Era(master); era != "" {
			all = append(all, era)
		}
	}
	return all
}

// discover asks who is the master of a shard. The answer may be one of before.
func (wr *writer) discover(t *thread, s int) {
	n := ask(t, func() *node {
		sh := wr.shards[s]
		if wr.astray != nil && wr.astray.up && wr.astray.master {
			return wr.astray
		}
		if !wr.quiet && wr.rand.IntN(10) == 0 {
			return sh.nodes[wr.rand.IntN(len(sh.nodes))]
		}
		return sh.master
	})
	wr.view[s] = n
}

func (wr *writer) readEras(t *thread, a ReadEras) {
	eras := make(map[Master]Era)
	wr.early = make(map[Master]Hash)
	for s := range wr.shards {
		n := wr.view[s]
		name := ask(t, wr.shards[s].name)
		if !wr.rules.erasFirst {
			wr.early[name], _ = ask2(t, func() (Hash, string) { return n.readPositions(name, n.era, wr.world.name("life")) })
		}
		era, no := ask2(t, n.readEra)
		if no != "" {
			wr.discover(t, s)
			wr.tell(Failed(a))
			return
		}
		ask(t, func() bool { n.scripts[era] = true; return true }) // SCRIPT LOAD on that connection
		eras[name] = era
	}
	wr.tell(ErasRead{a.Round, eras})
}

func ask2[T, U any](t *thread, serve func() (T, U)) (T, U) {
	type both struct {
		a T
		b U
	}
	r := ask(t, func() both { a, b := serve(); return both{a, b} })
	return r.a, r.b
}

func (wr *writer) readPositions(t *thread, a ReadPositions) {
	of := make(map[Master]Hash)
	for _, name := range slices.Sorted(maps.Keys(a.Eras)) {
		s, n := wr.on(name)
		h, no := ask2(t, func() (Hash, string) { return n.readPositions(name, a.Eras[name], wr.world.name("life")) })
		if early, ok := wr.early[name]; ok {
			h = early
		}
		switch no {
		case "":
			of[name] = h
		case "s":
			wr.tell(Fenced{a.Round, name})
			return
		default:
			wr.discover(t, s)
			wr.tell(Failed{a.Round})
			return
		}
	}
	lives := make(map[Master]string)
	for _, name := range a.Former {
		s, n := wr.on(name)
		life, no := ask2(t, func() (string, string) { return n.life(name) })
		if no != "" {
			wr.discover(t, s)
			wr.tell(Failed{a.Round})
			return
		}
		lives[name] = life
	}
	had := wr.m.servers
	wr.tell(PositionsRead{a.Round, of, lives})
	for era, s := range had {
		if now := wr.m.servers[era]; now != nil && !wr.rules.toldLife {
			maps.Copy(now.told, s.told)
		}
	}
}

func (wr *writer) readLog(t *thread, a ReadLog) (map[int32]Log, map[int32]string) {
	of, topics := make(map[int32]Log), make(map[int32]string)
	for p := range int32(len(wr.topic.parts)) {
		of[p] = ask(t, func() Log {
			log, committed := wr.topic.parts[p], int64(-1)
			c, noted := wr.topic.committed[p]
			if noted {
				committed = c
			}
			return Log{Topic: wr.topic.id, Start: log.start, End: log.end(), LifeBack: log.start, HalfLifeBack: log.start, Committed: committed, Noted: noted}
		})
		topics[p] = of[p].Topic
	}
	return of, topics
}

// on returns the shard that has the slot of a name, and the node that the writer takes for it.
func (wr *writer) on(m Master) (s int, n *node) {
	s = slices.IndexFunc(wr.shards, func(s *shard) bool { return s.has(m) })
	return s, wr.view[s]
}

func (wr *writer) markDamaged(t *thread, a MarkDamaged) {
	s, n := wr.on(a.Master)
	answer, no := ask2(t, func() (Answer, string) { return n.markDamaged(&a) })
	if no != "" {
		wr.discover(t, s)
	}
	wr.tell(Marked{a, answer})
}

func (wr *writer) writePosition(t *thread, a WritePosition) {
	s, n := wr.on(a.Master)
	answer, no := ask2(t, func() (Answer, string) {
		answer, no := n.writePosition(&wr.rules, &a)
		wr.checkPositions(s, n)
		return answer, no
	})
	if no != "" {
		wr.discover(t, s)
	}
	wr.tell(Written{a, answer})
}

// tick asks for eras and lives once a second.
func (wr *writer) tick(t *thread) {
	for {
		t.sleep(time.Second)
		asked, seen := wr.now, make(map[Master]History)
		for s := range wr.shards {
			n := wr.view[s]
			var name Master
			h, no := ask2(t, func() (History, string) { name = wr.shards[s].name(); return n.history() })
			if no != "" {
				wr.discover(t, s)
				continue
			}
			if !wr.rules.looksAtLife {
				h.Life = wr.m.hashes[name].Life
			}
			seen[name] = h
		}
		wr.noteSeen(asked, seen)
		wr.tell(Tick{asked, seen})
	}
}

// read is the reader of the log.
func (wr *writer) read(t *thread) {
	for {
		if wr.told {
			wr.told = false
			wr.term = wr.pendingTerm
			wr.assigned++
			wr.tell(Assigned{wr.pending})
		}
		round := wr.m.Round()
		if !wr.m.Reading() || len(wr.next) == 0 {
			t.sleep(20 * time.Millisecond)
			continue
		}
		parts := slices.Sorted(maps.Keys(wr.m.parts))
		if len(parts) == 0 {
			t.sleep(20 * time.Millisecond)
			continue
		}
		p := parts[wr.rand.IntN(len(parts))]
		batch, ok := ask2(t, func() ([]entry, bool) { return wr.fetch(p) })
		switch {
		case wr.m.Round() != round:
		case !ok:
			wr.tell(Cut{round})
		case len(batch) == 0:
			if wr.topic.committed[p] < wr.next[p] {
				ask(t, func() bool { wr.commit(p, wr.next[p]); return true })
			}
			t.sleep(30 * time.Millisecond)
		case wr.process(t, round, p, batch):
			wr.next[p] = batch[len(batch)-1].offset + 1
		}
	}
}

func (wr *writer) fetch(p int32) (batch []entry, ok bool) {
	if wr.topic.id != wr.topicID[p] || int(p) >= len(wr.topic.parts) {
		return nil, false
	}
	log, next := wr.topic.parts[p], wr.next[p]
	if next < log.start {
		return nil, false
	}
	for ; next < log.end() && len(batch) < 4; next++ {
		batch = append(batch, entry{log.records[next], wr.topic.id, p, next})
	}
	return batch, true
}
