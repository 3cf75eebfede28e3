package rewind

import (
	"reflect"
	"testing"
	"time"
)

// From where a partition is read, by what the master, Kafka and the group tell.
func TestFind(t *testing.T) {
	t.Parallel()
	log := Log{Topic: "a", Start: 100, End: 1000, LifeBack: 400, HalfLifeBack: 700, Committed: 950, Noted: true}
	for name, c := range map[string]struct {
		committed int64
		hash      Hash
		want      place
	}{
		"the position":                   {950, at("a", 900, "old"), place{900, 950, nil}},
		"less is committed":              {850, at("a", 900, "old"), place{900, 850, nil}},
		"nothing committed":              {-1, at("a", 900, "old"), place{900, -1, nil}},
		"committed beyond the end":       {1001, at("a", 900, "old"), place{900, 0, nil}},
		"no position":                    {950, Hash{}, place{400, 950, damaged(600)}},
		"no position, and less was read": {350, Hash{}, place{350, 350, damaged(650)}},
		"others alone":                   {950, Hash{Of: map[int32]Position{8: {"a", 5, "new"}}}, place{400, 950, damaged(600)}},
		"of another topic":               {950, at("b", 900, "new"), place{400, 0, damaged(600)}},
		"beyond the end":                 {950, at("a", 1001, "new"), place{400, 950, damaged(600)}},
		"older than half an order life":  {950, at("a", 650, "old"), place{400, 950, damaged(600)}},
		"older than an order life":       {950, at("a", 300, "old"), place{300, 950, damaged(700)}},
		"as old, but nothing was lost":   {950, at("a", 650, "new"), place{650, 950, nil}},
		"not in the log any more":        {950, at("a", 40, "new"), place{100, 950, []Action{Alert{Kind: Lost, Partition: 7, Commands: 60}}}},
	} {
		log.Committed = c.committed
		got := find(7, &log, map[Master]Hash{"m": c.hash}, map[Master]Era{"m": "new"})
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	log.Committed, log.Noted = 950, false
	if got := find(7, &log, map[Master]Hash{"m": {}}, map[Master]Era{"m": "new"}); !reflect.DeepEqual(got, place{400, 950, nil}) {
		t.Errorf("a partition that never had a position: %+v", got)
	}
	got := find(7, &log, map[Master]Hash{"m": at("a", 900, "x"), "n": at("a", 800, "x")}, map[Master]Era{"m": "x", "n": "x"})
	if got.offset != 800 {
		t.Errorf("with two masters: %d, want the least, 800", got.offset)
	}
}

func at(topic string, next int64, healed Era) Hash {
	return Hash{Of: map[int32]Position{7: {topic, next, healed}}}
}

func damaged(commands int64) []Action { return []Action{Alert{Damaged, "m", 7, commands}} }

// One rewind: a position is lost with the changes behind it, and healed is told once what was lost is
// published again.
func TestRewind(t *testing.T) {
	t.Parallel()
	m, now := New(), time.Unix(1_800_000_000, 0)
	check := func(e Event, want ...Action) {
		t.Helper()
		if got := m.Step(now, e); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v: %+v, want %+v", e, got, want)
		}
	}
	eras, seen := map[Master]Era{"m": "new"}, map[Master]History{"m": {"new", "l"}}
	check(Assigned{[]int32{7}}, ReadEras{1})
	check(ErasRead{1, eras}, ReadPositions{1, eras, nil})
	check(PositionsRead{1, map[Master]Hash{"m": {Life: "l", Of: map[int32]Position{7: {"a", 900, "old"}}}}, nil}, ReadLog{1})
	check(LogRead{1, map[int32]Log{7: {Topic: "a", End: 1000, Committed: 950, Noted: true}}, true}, Seek{1, 7, 900, 950, 1000, true})
	for _, c := range []struct {
		offset  int64
		outcome Outcome
		want    bool
	}{{940, Applied, true}, {940, Repeated, true}, {940, Refused, false}, {950, Refused, true}} {
		if got := m.Publishes(7, c.offset, c.outcome); got != c.want {
			t.Errorf("publishes outcome %d at %d: %v", c.outcome, c.offset, got)
		}
	}
	check(Done{0, 7, 999}) // of a round that is over
	check(Done{1, 7, 960})
	first := WritePosition{1, "m", "new", "l", 7, "a", 960, false, false}
	check(Tick{now.Add(1), seen}, first)
	check(Written{first, Wrote})
	check(Tick{now.Add(1), seen})
	check(Done{1, 7, 1000})
	now = now.Add(time.Second)
	heal := first
	heal.Next, heal.Heal = 1000, true
	check(Drain{}, heal)
	check(Written{heal, Wrote}, Healed{time.Second})
	if m.Publishes(7, 940, Repeated) || m.Rewinding(7) {
		t.Error("healed, and repeats are published again")
	}
	check(Written{heal, Gone}, ReadEras{2})
	check(ErasRead{2, eras}, ReadPositions{2, eras, nil})
	check(PositionsRead{2, map[Master]Hash{"m": {Life: "k"}}, nil}, ReadLog{2})
	check(LogRead{2, map[int32]Log{7: {Topic: "a", End: 1000, LifeBack: 500, Committed: 1000, Noted: true}}, false}, Alert{Damaged, "m", 7, 500}, Seek{2, 7, 500, 1000, 1000, true})
	check(Tick{now.Add(1), map[Master]History{"m": {"new", "k"}}}, WritePosition{2, "m", "new", "k", 7, "a", 500, false, false})
	check(Tick{now.Add(1), map[Master]History{"m": {"new", "j"}}}, ReadEras{3})
	check(Cut{3}, Alert{Kind: Lost}, ReadEras{4})
}

// The address of the master has led to another server and back: that this one was healed tells nothing of what was committed meanwhile. A
// position that is not behind does, and so does what the writer itself has published in this era.
func TestHealedOnlyUpToItsPosition(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	eras := map[Master]Era{"m": "a"}
	begin := func(m *Machine, next, committed int64) {
		m.Step(now, Assigned{[]int32{7}})
		m.Step(now, ErasRead{m.Round(), eras})
		m.Step(now, PositionsRead{m.Round(), map[Master]Hash{"m": {Life: "l", Of: map[int32]Position{7: {"t", next, "a"}}}}, nil})
		m.Step(now, LogRead{m.Round(), map[int32]Log{7: {Topic: "t", End: 1000, Committed: committed, Noted: true}}, false})
	}
	check := func(m *Machine, rewinding bool, published int64) {
		t.Helper()
		if m.Rewinding(7) != rewinding || m.Publishes(7, published-1, Repeated) || rewinding && !m.Publishes(7, published, Repeated) || m.Publishes(7, published, Refused) {
			t.Errorf("rewinding %v, want %v, with repeats from %d on published", m.Rewinding(7), rewinding, published)
		}
	}
	m := New()
	begin(m, 900, 950)
	check(m, true, 900)
	begin(m, 950, 950)
	check(m, false, 900)
	m.Step(now, Done{m.Round(), 7, 980})
	begin(m, 950, 970) // it keeps the partition, and knows more than the position
	check(m, false, 950)
	begin(m, 950, 990) // another writer had it meanwhile
	check(m, true, 980)
	eras = map[Master]Era{"m": "b"}
	begin(m, 950, 990)
	eras = map[Master]Era{"m": "a"}
	begin(m, 950, 990)
	check(m, true, 950)
}

// The mark goes with the slot of the positions: a damaged master that has another name then is marked again.
func TestMarkMovesWithItsSlot(t *testing.T) {
	t.Parallel()
	m, now := New(), time.Unix(1_800_000_000, 0)
	marked := Hash{Life: "l", Damaged: true, Of: map[int32]Position{7: {"a", 4, "-"}}}
	steps := func(eras map[Master]Era, hashes map[Master]Hash) (last []Action) {
		round := m.Round()
		m.Step(now, ErasRead{round, eras})
		m.Step(now, PositionsRead{round, hashes, nil})
		return m.Step(now, LogRead{round, map[int32]Log{7: {Topic: "a", End: 10, Committed: 10, Noted: true}}, true})
	}
	m.Step(now, Assigned{[]int32{7}})
	if got := steps(map[Master]Era{"0": "x", "9": "y"}, map[Master]Hash{"0": marked, "9": at("a", 10, "y")}); len(got) != 1 || !m.Reading() {
		t.Fatalf("%+v", got)
	}
	m.Step(now.Add(time.Second), Tick{now.Add(time.Second), map[Master]History{"0": {"y", "l"}}})
	got := steps(map[Master]Era{"1": "x", "0": "y"}, map[Master]Hash{"1": {Life: "new"}, "0": marked})
	if want := []Action{MarkDamaged{2, "1", "x", "new", 1}}; !reflect.DeepEqual(got, want) || m.Reading() {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

// A damaged master is marked before anything is applied, by the first writer that finds it: also one that has
// other partitions than those which tell.
func TestMarksDamaged(t *testing.T) {
	t.Parallel()
	m, now, eras := New(), time.Unix(1_800_000_000, 0), map[Master]Era{"m": "new", "n": "x"}
	log := LogRead{1, map[int32]Log{7: {Topic: "a", End: 10, Committed: 10}, 8: {Topic: "a", End: 10, HalfLifeBack: 5, Committed: 10}}, true}
	hashes := map[Master]Hash{"m": {Life: "l", Of: map[int32]Position{7: {"a", 10, "old"}, 8: {"a", 4, "old"}}},
		"n": {Life: "k", Of: map[int32]Position{7: {"a", 10, "x"}, 8: {"a", 4, "x"}}}}
	mark := MarkDamaged{1, "m", "new", "l", 2}
	steps := func(round uint64) []Action {
		m.Step(now, ErasRead{round, eras})
		m.Step(now, PositionsRead{round, hashes, nil})
		log.Round = round
		return m.Step(now, log)
	}
	m.Step(now, Assigned{[]int32{7}})
	if got := steps(1); !reflect.DeepEqual(got, []Action{mark}) || m.Reading() {
		t.Fatalf("%+v", got)
	}
	if got := m.Step(now, Marked{mark, NotWritten}); got != nil {
		t.Errorf("not marked: %+v", got)
	}
	m.Step(now, Tick{})
	if got := steps(3); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	mark.Round = 3
	if got := m.Step(now, Marked{mark, Wrote}); !reflect.DeepEqual(got, []Action{ReadEras{4}}) {
		t.Errorf("marked: %+v", got)
	}
	h := hashes["m"]
	h.Damaged = true
	hashes["m"] = h
	if got := steps(4); !reflect.DeepEqual(got, []Action{Seek{4, 7, 10, 10, 10, false}}) || !m.Reading() {
		t.Errorf("%+v", got)
	}
	log.Rebuilds = false // there is nobody who looks at the mark
	hashes["m"] = Hash{Life: "l", Of: h.Of}
	m.Step(now, Fenced{4, "m"})
	if got := steps(5); !m.Reading() {
		t.Errorf("%+v", got)
	}
}

// A position that can't be right is replaced, also by a lower one.
func TestResetsPosition(t *testing.T) {
	t.Parallel()
	log := Log{Topic: "a", End: 10, Committed: 10}
	hashes, eras := map[Master]Hash{"m": at("a", 11, "x")}, map[Master]Era{"m": "x"}
	p := begun(7, &log, find(7, &log, hashes, eras), hashes, eras, servers{"x": {}})
	p.done = 10
	w, due := p.due("m")
	if want := (WritePosition{Topic: "a", Next: 10, Heal: true, Reset: true}); !due || w != want {
		t.Errorf("%+v, want %+v", w, want)
	}
	if w.Master = "m"; true {
		p.wrote(w)
	}
	if _, due := p.due("m"); due {
		t.Error("due again")
	}
}

// Two servers that are taken for one master in turn make the writer wait longer and longer.
func TestAlternatingMasters(t *testing.T) {
	t.Parallel()
	m, now := New(), time.Unix(1_800_000_000, 0)
	m.Step(now, Assigned{})
	m.Step(now, ErasRead{1, map[Master]Era{"m": "a"}})
	rounds, alerts := 0, 0
	for i := range 600 { // ten minutes
		now = now.Add(time.Second)
		era := Era([]string{"a", "b"}[i%2])
		for _, a := range append(m.Step(now, Tick{now, map[Master]History{"m": {Era: era}}}), m.Step(now, Fenced{m.Round(), "m"})...) {
			if a, ok := a.(ReadEras); ok {
				rounds++
				for _, a := range m.Step(now, ErasRead{a.Round, map[Master]Era{"m": era}}) {
					if a, ok := a.(Alert); ok && a.Kind == Alternating {
						alerts++
					}
				}
			}
		}
	}
	if rounds > 200 || alerts == 0 || m.Changes() > 70 {
		t.Errorf("%d rounds, %d alerts, %d changes in ten minutes", rounds, alerts, m.Changes())
	}
}

// Slots move, and with the lowest one the name of a master and its hash: nothing was lost. A server that got the hash
// of another one beside its own is as far as the less of both.
func TestRenamedMasters(t *testing.T) {
	t.Parallel()
	m, now := New(), time.Unix(1_800_000_000, 0)
	round := func(eras map[Master]Era, hashes map[Master]Hash, lives map[Master]string) []Action {
		n := m.Round()
		m.Step(now, ErasRead{n, eras})
		m.Step(now, PositionsRead{n, hashes, lives})
		return m.Step(now, LogRead{n, map[int32]Log{7: {Topic: "a", End: 1000, LifeBack: 500, Committed: 1000, Noted: true}}, false})
	}
	of := func(life string, next int64, healed Era) Hash {
		return Hash{Life: life, Of: map[int32]Position{7: {"a", next, healed}}}
	}
	m.Step(now, Assigned{[]int32{7}})
	check := func(what string, got []Action, want ...Action) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("begin", round(map[Master]Era{"0": "x", "5": "y"}, map[Master]Hash{"0": of("l", 990, "x"), "5": of("k", 980, "y")}, nil), Seek{1, 7, 980, 1000, 1000, true})
	m.Step(now, Written{WritePosition{1, "0", "x", "l", 7, "a", 995, false, false}, Wrote})
	now = now.Add(time.Second)
	m.Step(now, Tick{now, map[Master]History{"1": {"x", ""}, "0": {"y", "l"}}})
	check("moved", round(map[Master]Era{"1": "x", "0": "y"}, map[Master]Hash{"1": {Life: "j"}, "0": of("l", 995, "x")},
		map[Master]string{"0": "l", "5": "k"}), Seek{2, 7, 980, 1000, 1000, true})
	if m.Changes() != 0 {
		t.Error("the servers are the same")
	}
	m.Step(now, Done{2, 7, 1000})
	check("written", m.Step(now, Drain{}), WritePosition{2, "0", "y", "l", 7, "a", 1000, true, false}, WritePosition{2, "1", "x", "j", 7, "a", 1000, true, false})
	m.Step(now, Fenced{2, "1"})
	check("emptied", round(map[Master]Era{"1": "x", "0": "y"}, map[Master]Hash{"1": {Life: "i"}, "0": of("l", 1000, "y")}, nil),
		Alert{Damaged, "1", 7, 500}, Seek{3, 7, 500, 1000, 1000, true})
}

// A master with another name is read again before its positions were written under that: it still has what it had.
func TestRenamedMasterIsReadAgain(t *testing.T) {
	t.Parallel()
	m, now := New(), time.Unix(1_800_000_000, 0)
	round := func(eras map[Master]Era, hashes map[Master]Hash, lives map[Master]string) []Action {
		n := m.Round()
		m.Step(now, ErasRead{n, eras})
		m.Step(now, PositionsRead{n, hashes, lives})
		return m.Step(now, LogRead{n, map[int32]Log{7: {Topic: "a", End: 1000, LifeBack: 500, Committed: 1000, Noted: true}}, false})
	}
	had := Hash{Life: "l", Of: map[int32]Position{7: {"a", 990, "x"}}}
	m.Step(now, Assigned{[]int32{7}})
	round(map[Master]Era{"0": "x"}, map[Master]Hash{"0": had}, nil)
	now = now.Add(time.Second)
	m.Step(now, Tick{now, map[Master]History{"1": {"x", ""}}})
	for n := range uint64(3) {
		if got, want := round(map[Master]Era{"1": "x"}, map[Master]Hash{"1": {Life: "j"}}, map[Master]string{"0": "l"}), []Action{Seek{2 + n, 7, 990, 1000, 1000, true}}; !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		m.Step(now, Fenced{2 + n, "1"})
	}
}

// A master's keys were deleted, and its lowest slot moved, before a writer looked: it has nothing of what it had.
func TestRenamedMasterWasEmptied(t *testing.T) {
	t.Parallel()
	m, now := New(), time.Unix(1_800_000_000, 0)
	log := map[int32]Log{7: {Topic: "a", End: 1000, LifeBack: 500, Committed: 1000, Noted: true}}
	m.Step(now, Assigned{[]int32{7}})
	m.Step(now, ErasRead{1, map[Master]Era{"0": "x"}})
	m.Step(now, PositionsRead{1, map[Master]Hash{"0": {Life: "l", Of: map[int32]Position{7: {"a", 990, "x"}}}}, nil})
	m.Step(now, LogRead{1, log, false})
	now = now.Add(time.Second)
	m.Step(now, Tick{now, map[Master]History{"1": {"x", ""}}})
	got := m.Step(now, ErasRead{2, map[Master]Era{"1": "x"}})
	if want := []Action{ReadPositions{2, map[Master]Era{"1": "x"}, []Master{"0"}}}; !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	m.Step(now, PositionsRead{2, map[Master]Hash{"1": {Life: "j"}}, map[Master]string{"0": "k"}})
	got = m.Step(now, LogRead{2, log, false})
	if want := []Action{Alert{Damaged, "1", 7, 500}, Seek{2, 7, 500, 1000, 1000, true}}; !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

// What is not answered is asked again.
func TestAsksAgain(t *testing.T) {
	t.Parallel()
	m, now := New(), time.Unix(1_800_000_000, 0)
	m.Step(now, Assigned{})
	if got := m.Step(now.Add(time.Second), Tick{}); got != nil {
		t.Errorf("after a second: %+v", got)
	}
	if got := m.Step(now.Add(6*time.Second), Tick{}); !reflect.DeepEqual(got, []Action{ReadEras{2}}) {
		t.Errorf("after six seconds: %+v", got)
	}
	m.Step(now, Failed{2})
	if m.Era("m") != "" || m.Reading() {
		t.Error("an era is known")
	}
	if got := m.Step(now.Add(7*time.Second), Tick{}); !reflect.DeepEqual(got, []Action{ReadEras{4}}) {
		t.Errorf("after a failure: %+v", got)
	}
}

// A posted command is answered by its record, or refused once it was its turn.
func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	p, h := &Post{"m", "a", 7, 100, now}, History{"x", "l"}
	for name, c := range map[string]struct {
		look Look
		age  time.Duration
		want Verdict
	}{
		"recorded":                    {Look{Recorded: true}, 0, WasApplied},
		"not its turn":                {Look{h, Position{"a", 100, ""}, false, h}, 0, Waits},
		"its turn, no record":         {Look{h, Position{"a", 101, ""}, false, h}, 0, WasRefused},
		"a position of another topic": {Look{h, Position{"b", 101, ""}, false, h}, 0, Waits},
		"of two eras":                 {Look{h, Position{"a", 101, ""}, false, History{"y", "l"}}, 0, Waits},
		"of two lives":                {Look{h, Position{"a", 101, ""}, false, History{"x", "k"}}, 0, Waits},
		"nothing is known":            {Look{}, 0, Waits},
		"too long":                    {Look{}, PostTimeout + 1, NotInTime},
	} {
		if got := Judge(now.Add(c.age), p, &c.look); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
