package rewind

import (
	"maps"
	"slices"
	"time"
)

const (
	quiet    = 10 * time.Second // how long the eras must have stayed the same for a change to be followed at once
	askAgain = 5 * time.Second  // how long an answer is waited for
)

type phase uint8 // how far a round has come

const (
	waiting   phase = iota // for a tick, at which the eras are read
	eras                   // are read
	positions              // are read
	logs                   // is read
	marking                // damaged masters
	reading                // commands
)

// Machine is the state of one writer. It is not safe for concurrent use.
type Machine struct {
	round  uint64
	phase  phase
	asked  time.Time // when the answer that is waited for was asked for, or the reading began
	resume time.Time // of waiting: not before

	eras    map[Master]Era
	hashes  map[Master]Hash
	servers servers
	parts   map[int32]*partition
	began   time.Time // the rewind that is not over, or zero
	changed time.Time // the eras, the last time
	pause   time.Duration
	changes int
}

// New returns the machine of a writer that has no partition yet.
func New() *Machine { return &Machine{parts: make(map[int32]*partition)} }

// Step tells the machine of an event, and returns what is to be done, in sequence.
func (m *Machine) Step(now time.Time, e Event) []Action {
	if round, ok := roundOf(e); ok && round != m.round {
		return nil
	}
	switch e := e.(type) {
	case Assigned:
		return m.assign(now, e.Partitions)
	case ErasRead:
		return m.takeEras(now, e.Eras)
	case PositionsRead:
		return m.takePositions(now, e)
	case LogRead:
		return m.takeLog(now, e)
	case Marked:
		if m.phase == marking && e.Answer == NotWritten {
			m.wait(now)
		} else if m.phase == marking {
			return m.begin(now) // which finds the mark
		}
	case Failed:
		m.wait(now)
	case Done:
		m.done(e.Partition, e.Next)
	case Fenced:
		return m.begin(now)
	case Cut:
		return append([]Action{Alert{Kind: Lost}}, m.begin(now)...)
	case Written:
		return m.written(now, e)
	case Tick:
		return m.tick(now, e)
	case Drain:
		return m.write()
	}
	return nil
}

// roundOf returns the round in which what an event tells of was begun.
func roundOf(e Event) (uint64, bool) {
	switch e := e.(type) {
	case ErasRead:
		return e.Round, true
	case PositionsRead:
		return e.Round, true
	case LogRead:
		return e.Round, true
	case Marked:
		return e.Round, true
	case Failed:
		return e.Round, true
	case Done:
		return e.Round, true
	case Fenced:
		return e.Round, true
	case Cut:
		return e.Round, true
	case Written:
		return e.Round, true
	}
	return 0, false
}

// Round returns the present round. Who reads or sends remembers it, and drops what he has once it is another.
func (m *Machine) Round() uint64 { return m.round }

// Reading reports whether commands are to be read, from where [Seek] has told.
func (m *Machine) Reading() bool { return m.phase == reading }

// Era returns the era for which calls to a master are to be made, or "" while it is not known: then posts wait.
func (m *Machine) Era(of Master) Era {
	if m.phase <= eras {
		return ""
	}
	return m.eras[of]
}

// Changes returns how often eras have changed since the machine began.
func (m *Machine) Changes() int { return m.changes }

func (m *Machine) assign(now time.Time, partitions []int32) []Action {
	m.remember()
	m.parts = make(map[int32]*partition, len(partitions))
	for _, p := range partitions {
		m.parts[p] = &partition{}
	}
	return m.begin(now)
}

// remember notes what is published of healed partitions, further than positions tell.
func (m *Machine) remember() {
	if m.phase != reading {
		return
	}
	for id, p := range m.parts {
		for master, era := range m.eras {
			if p.healed[master] {
				m.servers[era].tell(id, p.log.Topic, p.done)
			}
		}
	}
}

func (m *Machine) begin(now time.Time) []Action {
	m.remember()
	m.round++
	if now.Before(m.resume) {
		m.phase = waiting
		return nil
	}
	m.phase, m.asked = eras, now
	return []Action{ReadEras{m.round}}
}

// wait has the round begun again at the next tick.
func (m *Machine) wait(now time.Time) {
	m.round++
	m.phase, m.asked = waiting, now
}

func (m *Machine) takeEras(now time.Time, read map[Master]Era) []Action {
	if m.phase != eras {
		return nil
	}
	var alerts []Action
	if m.eras != nil && !sameServers(m.eras, read) {
		alerts = m.noteChange(now)
	}
	m.eras, m.phase, m.asked = maps.Clone(read), positions, now
	return append(alerts, ReadPositions{m.round, m.eras, m.servers.former(m.eras)})
}

// noteChange has the next change wait if this one came soon after the last.
func (m *Machine) noteChange(now time.Time) (alerts []Action) {
	m.changes++
	if now.Sub(m.changed) >= quiet+m.pause {
		m.pause = 0
	} else {
		m.pause = min(max(2*m.pause, time.Second), quiet)
		alerts = append(alerts, Alert{Kind: Alternating})
	}
	m.changed, m.resume = now, now.Add(m.pause)
	return alerts
}

func (m *Machine) takePositions(now time.Time, e PositionsRead) []Action {
	if m.phase != positions {
		return nil
	}
	m.servers, m.hashes = m.servers.take(m.eras, e.Of, e.Lives)
	m.phase, m.asked = logs, now
	return []Action{ReadLog{m.round}}
}

func (m *Machine) takeLog(now time.Time, e LogRead) (actions []Action) {
	if m.phase != logs {
		return nil
	}
	if m.phase, m.asked = marking, now; e.Rebuilds {
		if actions = m.marks(e.Of); len(actions) > 0 {
			return actions
		}
	}
	m.phase = reading
	for _, id := range slices.Sorted(maps.Keys(m.parts)) {
		log := e.Of[id]
		at := find(id, &log, m.hashes, m.eras)
		m.parts[id] = begun(id, &log, at, m.hashes, m.eras, m.servers)
		actions = append(append(actions, at.alerts...), Seek{m.round, id, at.offset, at.published, log.End, log.Noted})
	}
	if m.began.IsZero() && !m.healed() {
		m.began = now
	}
	return actions
}

// marks returns the marks that damaged masters lack.
func (m *Machine) marks(of map[int32]Log) (actions []Action) {
	for _, master := range slices.Sorted(maps.Keys(m.hashes)) {
		h, era := m.hashes[master], m.eras[master]
		for id, log := range of {
			if _, damaged, _ := has(id, &log, h, era); (damaged || h.WasDamaged) && !h.Damaged {
				actions = append(actions, MarkDamaged{m.round, master, era, h.Life, len(of)})
				break
			}
		}
	}
	return actions
}

// tick looks for another history, asks again what was not answered, and writes positions.
func (m *Machine) tick(now time.Time, e Tick) []Action {
	switch {
	case m.round == 0:
		return nil
	case m.phase == waiting:
		return m.begin(now)
	case m.phase != reading:
		if now.Sub(m.asked) > askAgain {
			return m.begin(now)
		}
		return nil
	}
	for master, h := range e.Seen {
		if e.Asked.After(m.asked) && h != (History{m.eras[master], m.hashes[master].Life}) {
			return m.begin(now)
		}
	}
	return m.write()
}

// write returns the positions that are to be written.
func (m *Machine) write() (actions []Action) {
	if m.phase != reading {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(m.parts)) {
		for _, master := range slices.Sorted(maps.Keys(m.eras)) {
			if w, due := m.parts[id].due(master); due {
				w.Round, w.Master, w.Era, w.Life, w.Partition = m.round, master, m.eras[master], m.hashes[master].Life, id
				actions = append(actions, w)
			}
		}
	}
	return actions
}

func (m *Machine) written(now time.Time, e Written) []Action {
	switch e.Answer {
	case OtherEra, Gone:
		return m.begin(now)
	case Wrote:
		if p := m.parts[e.Partition]; p != nil && m.phase == reading {
			p.wrote(e.WritePosition)
			m.servers.wrote(&e.WritePosition)
		}
	}
	if m.began.IsZero() || !m.healed() {
		return nil
	}
	took := now.Sub(m.began)
	m.began = time.Time{}
	return []Action{Healed{took}}
}

func (m *Machine) done(id int32, next int64) {
	if p := m.parts[id]; p != nil {
		p.done = max(p.done, next)
	}
}

func (m *Machine) healed() bool {
	for _, p := range m.parts {
		for master := range m.eras {
			if !p.healed[master] {
				return false
			}
		}
	}
	return true
}
