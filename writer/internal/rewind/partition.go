package rewind

type partition struct {
	log    Log
	target int64 // healed once everything before is done
	floor  int64 // refusals before are published already
	told   int64 // repeats before too
	// done is what the positions may tell. What is applied and not published may not count: a rewind
	// begins before the committed offset, so that whoever goes on after this writer would not publish it.
	done    int64
	written map[Master]int64 // the positions that are there
	healed  map[Master]bool
	reset   map[Master]bool // the position that is there can't be right
}

// begun returns the progress at the beginning of a round. That a master was healed in its era is not enough: writers
// may have been led to another server and back, and have committed there what this one lacks.
func begun(id int32, log *Log, at place, hashes map[Master]Hash, eras map[Master]Era, known servers) *partition {
	p := &partition{log: *log, target: log.End, floor: at.published, told: known.told(id, log.Topic), done: at.offset,
		written: make(map[Master]int64), healed: make(map[Master]bool), reset: make(map[Master]bool)}
	for master, era := range eras {
		there, ok := hashes[master].Of[id]
		good := ok && there.Topic == log.Topic && there.Next <= log.End
		p.reset[master] = ok && !good
		p.healed[master] = good && !hashes[master].Renamed && there.Healed == era && max(there.Next, known[era].toldOf(id, log.Topic)) >= log.Committed
		if p.written[master] = -1; good {
			p.written[master] = there.Next
		}
	}
	return p
}

// due returns what is to be written of a master's position, if anything.
func (p *partition) due(master Master) (w WritePosition, due bool) {
	heal := !p.healed[master] && p.done >= p.target
	if p.done <= p.written[master] && !heal {
		return w, false
	}
	return WritePosition{Topic: p.log.Topic, Next: p.done, Heal: heal, Reset: p.reset[master]}, true
}

func (p *partition) wrote(w WritePosition) {
	p.written[w.Master] = max(p.written[w.Master], w.Next)
	p.reset[w.Master] = false
	p.healed[w.Master] = p.healed[w.Master] || w.Heal
}

// Outcome is what became of a command on one board.
type Outcome uint8

// Outcomes.
const (
	Applied  Outcome = iota + 1 // now
	Repeated                    // it was applied before
	Refused
)

// Publishes reports whether the reader publishes the outcome of the command at an offset: a repeat may be the work of a
// writer that died before it did, so only what is published for certain is left out.
func (m *Machine) Publishes(id int32, offset int64, o Outcome) bool {
	p := m.parts[id]
	return p == nil || o == Applied || offset >= p.floor || o == Repeated && m.Rewinding(id) && offset >= p.told
}

// Rewinding reports whether a partition may lack changes on some master.
func (m *Machine) Rewinding(id int32) bool {
	p := m.parts[id]
	if p == nil {
		return false
	}
	for master := range m.eras {
		if !p.healed[master] {
			return true
		}
	}
	return false
}
