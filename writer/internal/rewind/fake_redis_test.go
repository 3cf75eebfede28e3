package rewind

import (
	"maps"
	"slices"
)

// rules are those of the contract; a test switches each off in turn.
type rules struct {
	positionEra   bool    // the script that writes positions compares the era
	positionLife  bool    // and the life of the hash ("gone")
	fence         bool    // scripts that change boards compare the era
	newRun        bool    // a board has a new run in each era
	healing       bool    // repeats are published again until the partition is healed
	boardKey      bool    // the board is the key where order matters
	throughLog    bool    // posts of ordered classes are applied by the reader of their partition
	seenBefore    bool    // a board with a guard knows the offsets that it has seen
	positionClose bool    // boards are closed by positions
	published     bool    // positions tell only what is published
	erasFirst     bool    // eras are read before positions
	looksAtLife   bool    // once a second
	gap           bool    // a board is rebuilt up to the first change that is missing
	asks          bool    // on a damaged master no board begins before the ledger has answered
	namedHead     bool    // the head of a board is the highest run of the servers that were named last, not the highest
	namedFirst    bool    // a writer names the masters of a round before it publishes what it found there
	namedAgain    bool    // a writer names the masters again after a while
	locates       bool    // the ledger asks Redis where the boards are
	healedBehind  bool    // healed is a position in the present era that is at or behind the committed offset
	ownRun        bool    // a repeat tells on which server its run is only if that is the board's run there
	toldLife      bool    // what is published is known of one life of the hash
	only          *faults // what a history may have, nil for any
}

var contract = rules{positionEra: true, positionLife: true, fence: true, newRun: true, healing: true, boardKey: true, throughLog: true, seenBefore: true,
	positionClose: true, published: true, erasFirst: true, looksAtLife: true, gap: true, asks: true, namedHead: true, namedFirst: true, namedAgain: true, locates: true,
	healedBehind: true, ownRun: true, toldLife: true}

// node is a server of Redis. Its data is what the stream of its effects makes of nothing.
type node struct {
	name       string
	shard      *shard
	era        Era
	up, master bool
	stream     []effect
	data       *data
	scripts    map[Era]bool     // in the cache, which survives a change of role
	parents    map[uint64]began // of all runs that any server has begun
	forked     map[string]bool  // of the world
}

type effect func(*data)

// data is what a server has: replicas have a prefix of it.
type data struct {
	boards  map[string]*board
	hashes  map[Master]*Hash // of positions; they move with their slots
	answers map[string]Era   // of the ledger: these boards may begin
}

// board is a board with its meta and its records of orders.
type board struct {
	era      Era // in which its run began
	run, seq uint64
	scores   map[string]score
	orders   map[int]record
	closed   bool
	// The offsets that a board with a guard has seen.
	topic      string
	part       int32
	from, next int64
}

type score struct {
	number int64
	reach  uint64
}

type record struct {
	run, seq uint64
	member   string
	number   int64 // the score then
	gone     bool  // deleted
}

// placed is the record without its run.
func (r record) placed() record {
	r.run = 0
	return r
}

func newData() *data {
	return &data{boards: make(map[string]*board), hashes: make(map[Master]*Hash), answers: make(map[string]Era)}
}

func fold(stream []effect) *data {
	d := newData()
	for _, e := range stream {
		e(d)
	}
	return d
}

func (n *node) do(e effect) {
	n.stream = append(n.stream, e)
	e(n.data)
}

// become makes the node a master, of a stream that is a prefix of what it was.
func (n *node) become(era Era, stream []effect) {
	n.stream = stream[:len(stream):len(stream)] // appends copy it
	n.data, n.era, n.up, n.master = fold(n.stream), era, true, true
}

// refuses returns what a node that is no master answers.
func (n *node) refuses() string {
	switch {
	case !n.up:
		return "down"
	case !n.master:
		return "readonly"
	}
	return ""
}

func (n *node) readEra() (Era, string) { return n.era, n.refuses() }

// hash returns the hash under the name that the node has now.
func (n *node) hash() *Hash { return n.data.hashes[n.shard.name()] }

// lacks returns what a node answers that is no master, or of which the key's slot was moved.
func (n *node) lacks(key Master) string {
	if no := n.refuses(); no != "" || n != n.shard.master || n.shard.has(key) {
		return no
	}
	return "moved"
}

func (n *node) history() (History, string) {
	if n.hash() == nil {
		return History{Era: n.era}, n.refuses()
	}
	return History{n.era, n.hash().Life}, n.refuses()
}

// readPositions is the script that reads the positions and makes the hash.
func (n *node) readPositions(key Master, era Era, life string) (Hash, string) {
	if no := n.lacks(key); no != "" {
		return Hash{}, no
	}
	if n.era != era {
		return Hash{}, "s"
	}
	if n.data.hashes[key] == nil {
		n.do(func(d *data) { d.hashes[key] = &Hash{Life: life, Of: make(map[int32]Position)} })
	}
	h := n.data.hashes[key]
	return Hash{Life: h.Life, Damaged: h.Damaged, Of: maps.Clone(h.Of)}, ""
}

// life returns the life of the hash under a name.
func (n *node) life(key Master) (string, string) {
	no := n.lacks(key)
	if h := n.data.hashes[key]; h != nil && no == "" {
		return h.Life, ""
	}
	return "", no
}

// markDamaged is the positions' script, too.
func (n *node) markDamaged(a *MarkDamaged) (Answer, string) {
	switch h, no := n.data.hashes[a.Master], n.lacks(a.Master); {
	case no != "":
		return NotWritten, no
	case n.era != a.Era:
		return OtherEra, ""
	case h == nil || h.Life != a.Life:
		return Gone, ""
	}
	key := a.Master
	n.do(func(d *data) { d.hashes[key].Damaged = true })
	return Wrote, ""
}

// writePosition is the positions' script.
func (n *node) writePosition(r *rules, w *WritePosition) (Answer, string) {
	if no := n.lacks(w.Master); no != "" {
		return NotWritten, no
	}
	key := w.Master
	if r.positionEra && n.era != w.Era {
		return OtherEra, ""
	}
	if h := n.data.hashes[key]; h == nil || h.Life != w.Life {
		if r.positionLife {
			return Gone, ""
		}
		n.do(func(d *data) { d.hashes[key] = &Hash{Life: w.Life, Of: make(map[int32]Position)} })
	}
	there := n.data.hashes[key].Of[w.Partition]
	p := Position{w.Topic, w.Next, there.Healed}
	if there.Topic == w.Topic && !w.Reset {
		p.Next = max(p.Next, there.Next)
	}
	if w.Heal {
		p.Healed = w.Era
	}
	part := w.Partition
	n.do(func(d *data) { d.hashes[key].Of[part] = p })
	return Wrote, ""
}

// forks notes that a run of a board begins on a former master of a cluster.
func (n *node) forks(board string) {
	if n.forked != nil && n != n.shard.master {
		n.forked[board] = true
	}
}

// prepare is prepare.lua: birth, and a new run in a new era.
func (n *node) prepare(r *rules, eras []Era, name string, run uint64, begins int) string {
	if no := n.refuses(); no != "" {
		return no
	}
	era := n.era
	if r.fence && !slices.Contains(eras, era) {
		return "s"
	}
	b := n.data.boards[name]
	if b == nil && begins != beginAny || b != nil && b.era != era && begins == beginNone {
		return "begins"
	}
	if b == nil || b.era != era && r.newRun {
		n.forks(name)
	}
	if b == nil {
		n.do(func(d *data) {
			d.boards[name] = &board{era: era, run: run, scores: make(map[string]score), orders: make(map[int]record)}
		})
	} else if b.era != era && r.newRun {
		run = max(run, b.run+1)
		n.parents[run] = began{b.run, b.seq}
		n.do(func(d *data) {
			b := d.boards[name]
			b.era, b.run = era, run
		})
	}
	return ""
}

// applied is the reply of apply.lua to one command.
type applied struct {
	outcome Outcome
	record
	now uint64 // the board's run
}

// apply is apply.lua: the commands of one board.
func (n *node) apply(r *rules, eras []Era, name string, commands []entry) ([]applied, string) {
	if no := n.refuses(); no != "" {
		return nil, no
	}
	if r.fence && !slices.ContainsFunc(eras, func(e Era) bool { return n.scripts[e] }) {
		return nil, "noscript"
	}
	if r.fence && !slices.Contains(eras, n.era) {
		return nil, "s"
	}
	b := n.data.boards[name]
	isNew := func(e entry) bool { _, repeats := b.orders[e.id]; return !repeats }
	if b == nil || r.newRun && b.era != n.era && (n.hash() == nil || n.hash().Damaged || slices.ContainsFunc(commands, isNew)) {
		return nil, "prepare" // repeats are answered as they were
	}
	replies := make([]applied, len(commands))
	for i, e := range commands {
		replies[i] = n.one(r, name, e)
	}
	return replies, ""
}

// maxMembers is the cap of guarded boards.
const maxMembers = 2

func (n *node) one(r *rules, name string, e entry) applied {
	b := n.data.boards[name]
	if rec, ok := b.orders[e.id]; ok {
		return applied{Repeated, rec, b.run}
	}
	if b.closed {
		return applied{outcome: Refused}
	}
	seen := guarded(name) && b.topic == e.topic && b.part == e.part
	if r.seenBefore && seen && b.from <= e.offset && e.offset < b.next {
		return applied{outcome: Refused}
	}
	old, on := b.scores[e.member]
	if guarded(name) && !on && e.op != opDelete && len(b.scores) >= maxMembers {
		n.do(func(d *data) { d.boards[name].see(e) })
		return applied{outcome: Refused}
	}
	rec := record{run: b.run, seq: b.seq + 1, member: e.member, number: e.number, gone: e.op == opDelete}
	if e.op == opIncr {
		rec.number += old.number
	}
	n.do(func(d *data) { d.boards[name].take(name, e, rec) })
	return applied{Applied, rec, b.run}
}

// see notes the offset of a command of a board with a guard.
func (b *board) see(e entry) {
	if b.topic != e.topic || b.part != e.part {
		b.topic, b.part, b.from, b.next = e.topic, e.part, e.offset, e.offset
	}
	b.next = max(b.next, e.offset+1)
}

func (b *board) take(name string, e entry, rec record) {
	if guarded(name) {
		b.see(e)
	}
	b.seq, b.orders[e.id] = rec.seq, rec
	if rec.gone {
		delete(b.scores, e.member)
		return
	}
	b.scores[e.member] = score{rec.number, rec.seq}
}

// closeBoard is life.lua.
func (n *node) closeBoard(r *rules, era Era, name string) string {
	if no := n.refuses(); no != "" {
		return no
	}
	if n.era != era {
		return "s"
	}
	if b := n.data.boards[name]; b != nil && !b.closed {
		n.do(func(d *data) { d.boards[name].closed = true })
	}
	return ""
}
