package rewind

import "time"

// process applies a batch, publishes what came of it and commits. It reports false if the round
// is over.
func (wr *writer) process(t *thread, round uint64, p int32, batch []entry) bool {
	var boards []string
	of := make(map[string][]entry)
	for _, e := range batch {
		if of[e.board] == nil {
			boards = append(boards, e.board)
		}
		of[e.board] = append(of[e.board], e)
	}
	var out []update
	var refused []entry
	for _, board := range boards {
		names := []string{board}
		if board[0] == 'C' {
			names = append(names, "F0")
		}
		for _, name := range names {
			replies, ok := wr.call(t, round, name, of[board])
			if !ok {
				return false
			}
			for i, r := range replies {
				e := of[board][i]
				switch {
				case !wr.rules.healing && r.outcome == Repeated && e.offset < wr.m.parts[p].floor:
				case !wr.m.Publishes(p, e.offset, r.outcome):
				case r.outcome == Refused:
					refused = append(refused, e)
				default:
					out = append(out, wr.found(e.id, name, r))
				}
			}
		}
	}
	end := batch[len(batch)-1].offset + 1
	if !wr.rules.published {
		wr.tell(Done{round, p, end})
	}
	if wr.rules.namedFirst && len(out) > 0 && wr.named != round { // before what was found there
		wr.named, out = round, append([]update{{named: wr.list()}}, out...)
	}
	wr.publish(t, out, refused)
	t.sleep(0) // the round may end here, too
	wr.tell(Done{round, p, end})
	if wr.m.Round() == round && wr.rand.IntN(2) == 0 {
		ask(t, func() bool { wr.commit(p, end); return true })
	}
	return wr.m.Round() == round
}

// commit is taken by Kafka from the owner of the partition in the present term alone.
func (wr *writer) commit(p int32, end int64) {
	if wr.topic.owner[p] == wr && wr.term == wr.world.term && wr.topicID[p] == wr.topic.id {
		wr.topic.committed[p] = end
	}
}

func (wr *writer) publish(t *thread, out []update, refused []entry) {
	if len(out)+len(refused) == 0 {
		return
	}
	wr.publishing++
	defer func() { wr.publishing-- }()
	if wr.rand.IntN(8) == 0 { // Kafka is slow
		t.sleep(time.Duration(wr.rand.IntN(2000)) * time.Millisecond)
	}
	ask(t, func() bool {
		wr.ledger.topic = append(wr.ledger.topic, out...)
		for _, e := range refused {
			if e.records == 1 {
				wr.world.refused[e.id] = true
			}
		}
		return true
	})
}

// call applies commands of one board in the era of a round. It reports false if they were not
// applied in it, as far as the writer knows.
func (wr *writer) call(t *thread, round uint64, name string, commands []entry) ([]applied, bool) {
	s := wr.place[name]
	for wr.m.Round() == round {
		eras, n := wr.eras(), wr.view[s]
		replies, no := ask2(t, func() ([]applied, string) { return n.apply(&wr.rules, eras, name, commands) })
		if no == "prepare" {
			if no = wr.prepare(t, n, eras, s, name); no == "waits" {
				t.sleep(50 * time.Millisecond)
				return nil, false
			}
		} else if no == "" && wr.m.Round() == round {
			wr.say("%s: %s in %s: %v %+v", wr.name, name, n.name, ids(commands), replies)
			return replies, true
		}
		switch no {
		case "s", "noscript":
			wr.tell(Fenced{round, wr.shards[s].name()})
		case "down", "readonly":
			wr.discover(t, s)
			t.sleep(20 * time.Millisecond)
		}
	}
	return nil, false
}

// prepare makes a board ready, or returns why that is not done.
func (wr *writer) prepare(t *thread, n *node, eras []Era, s int, name string) string {
	run, begins := wr.nextRun(), wr.begins(name)
	if asks(name) && !wr.m.Reading() { // it is not judged what is lost
		return "waits"
	}
	no := ask(t, func() string { return n.prepare(&wr.rules, eras, name, run, begins) })
	if no != "begins" {
		return no
	}
	switch may := wr.mayBegin(t, s, name); may {
	case "go":
		return ask(t, func() string { return n.prepare(&wr.rules, eras, name, run, beginAny) })
	case "gone":
		return "waits"
	default:
		return may
	}
}

func ids(commands []entry) (all []int) {
	for _, e := range commands {
		all = append(all, e.id)
	}
	return all
}
