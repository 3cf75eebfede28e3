package replay

import (
	"testing"
	"time"

	"rankcache"
	"rankcache/wire"
)

func TestDecide(t *testing.T) {
	// caughtUp is a board that may be compared; each case changes what it names.
	caughtUp := observation{total: TotalSeq, kafkaKnown: true, topicKnown: true, ended: true,
		redisKnown: true, want: 10, members: 3, have: rankcache.Progress{Contiguous: 10, Highest: 10}}
	hole := rankcache.Progress{Contiguous: 4, Highest: 12}
	for name, c := range map[string]struct {
		change func(*observation)
		act    action
		state  rankcache.BoardState
	}{
		"caught up":        {func(o *observation) {}, actCompare, rankcache.StateChecking},
		"ahead of want":    {func(o *observation) { o.have.Contiguous = 12 }, actCompare, rankcache.StateChecking},
		"Kafka is away":    {func(o *observation) { o.kafkaKnown, o.topicKnown = false, false }, actWait, rankcache.StateWaiting},
		"no topic":         {func(o *observation) { o.topicKnown = false }, actWait, rankcache.StateWaiting},
		"log not read":     {func(o *observation) { o.ended = false }, actWait, rankcache.StateReplaying},
		"Redis is away":    {func(o *observation) { o.redisKnown = false }, actWait, rankcache.StateWaiting},
		"total 0":          {func(o *observation) { o.want = 0 }, actWait, rankcache.StateWaiting},
		"total 0, no log":  {func(o *observation) { o.want, o.have = 0, rankcache.Progress{} }, actWait, rankcache.StateWaiting},
		"hole, just now":   {func(o *observation) { o.have = hole }, actWait, rankcache.StateChecking},
		"hole stays":       {func(o *observation) { o.have, o.endedFor = hole, holeGrace }, actSnapshot, rankcache.StateSnapshot},
		"short of Redis":   {func(o *observation) { o.want, o.endedFor = 11, holeGrace }, actSnapshot, rankcache.StateSnapshot},
		"cut log":          {func(o *observation) { o.have, o.cut = hole, true }, actSnapshot, rankcache.StateSnapshot},
		"cut, yet whole":   {func(o *observation) { o.cut = true }, actCompare, rankcache.StateChecking},
		"differs":          {func(o *observation) { o.differs = "x" }, actSnapshot, rankcache.StateSnapshot},
		"compacted":        {func(o *observation) { o.have, o.compacted, o.endedFor = hole, true, holeGrace }, actSettle, rankcache.StateChecking},
		"compacted, early": {func(o *observation) { o.have, o.compacted = hole, true }, actWait, rankcache.StateChecking},
		"compacted, short": {func(o *observation) {
			o.have, o.want, o.compacted, o.endedFor = hole, 13, true, holeGrace
		}, actSnapshot, rankcache.StateSnapshot},
		"compacted, differs": {func(o *observation) {
			o.have, o.compacted, o.endedFor, o.differs = hole, true, holeGrace, "x"
		}, actSnapshot, rankcache.StateSnapshot},
		"loaded":          {func(o *observation) { o.loaded, o.after = true, 10 }, actCompare, rankcache.StateChecking},
		"loaded, waiting": {func(o *observation) { o.loaded, o.after = true, 11 }, actWait, rankcache.StateSnapshot},
		"loaded, late":    {func(o *observation) { o.loaded, o.after, o.loadedFor = true, 11, holeGrace }, actSnapshot, rankcache.StateSnapshot},
		"loaded, differs": {func(o *observation) { o.loaded, o.after, o.differs = true, 10, "x" }, actSnapshot, rankcache.StateSnapshot},
		"orders":          {func(o *observation) { o.total, o.have = TotalOrders, rankcache.Progress{OrderIDs: 10} }, actCompare, rankcache.StateChecking},
		"orders, short": {func(o *observation) {
			o.total, o.have, o.endedFor = TotalOrders, rankcache.Progress{OrderIDs: 9}, time.Hour
		}, actWait, rankcache.StateChecking},
		"orders, differs":  {func(o *observation) { o.total, o.have, o.differs = TotalOrders, rankcache.Progress{OrderIDs: 10}, "x" }, actCompare, rankcache.StateChecking},
		"no total":         {func(o *observation) { o.total, o.want, o.have = TotalNone, 0, rankcache.Progress{OrderIDs: 9} }, actCompare, rankcache.StateChecking},
		"no total, nobody": {func(o *observation) { o.total, o.want, o.members = TotalNone, 0, 0 }, actWait, rankcache.StateWaiting},
	} {
		o := caughtUp
		c.change(&o)
		if s := decide(&o); s.act != c.act || s.state != c.state || s.reason == "" {
			t.Errorf("%s: action %d, state %q (%s); want %d, %q", name, s.act, s.state, s.reason, c.act, c.state)
		}
	}
}

func TestWatch(t *testing.T) {
	type look struct {
		seq, before, after, highest uint64
		dry                         bool
		fault                       string
	}
	for name, looks := range map[string][]look{
		"keeps up":             {{seq: 5, before: 5, after: 5}, {seq: 9, before: 5, after: 9}, {seq: 9, before: 9, after: 9}},
		"behind, but coming":   {{seq: 9, after: 1}, {seq: 20, before: 1, after: 10, highest: 10}, {seq: 30, before: 10, after: 19, highest: 19}},
		"behind, Kafka away":   {{seq: 9, after: 1}, {seq: 20, after: 1}, {seq: 30, after: 1}, {seq: 40, after: 1}},
		"hole stays":           {{seq: 9, after: 1, highest: 9}, {seq: 20, before: 1, after: 1, highest: 20}, {seq: 30, before: 1, after: 1, highest: 30, fault: kindHole}},
		"log has nothing more": {{seq: 9, after: 1}, {seq: 9, before: 1, after: 1}, {seq: 9, before: 1, after: 1, dry: true, fault: kindHole}},
		"ahead by lag":         {{seq: 4, before: 3, after: 6}},
		"Redis lost its last":  {{seq: 5, before: 5, after: 5}, {seq: 4, before: 5, after: 5, fault: kindAhead}},
		"total gone":           {{seq: 5, before: 5, after: 5}, {seq: 0, before: 5, after: 5, fault: kindGone}},
	} {
		var w watch
		begun := time.Now()
		for i, l := range looks {
			asked := begun.Add(time.Duration(i) * behindMost / 2)
			before := rankcache.Progress{Contiguous: l.before, Highest: l.before}
			after := rankcache.Progress{Contiguous: l.after, Highest: max(l.after, l.highest)}
			why := w.look(TotalSeq, reading{seq: l.seq, asked: asked}, before, after, func(time.Time) bool { return l.dry })
			if got := kindOf(why); got != l.fault {
				t.Errorf("%s, look %d: %+v, want %q", name, i, why, l.fault)
			}
		}
	}
}

func kindOf(f *fault) string {
	if f == nil {
		return ""
	}
	return f.kind
}

// Without a total, a board that stays empty in Redis is gone.
func TestWatchWithoutTotal(t *testing.T) {
	var w watch
	begun := time.Now()
	here := rankcache.Progress{OrderIDs: 5, Members: 3}
	for i, c := range []struct {
		members int
		fault   string
	}{{3, ""}, {0, ""}, {3, ""}, {0, ""}, {0, ""}, {0, kindGone}} {
		r := reading{members: c.members, asked: begun.Add(time.Duration(i) * behindMost / 2)}
		if got := kindOf(w.look(TotalNone, r, here, here, nil)); got != c.fault {
			t.Errorf("look %d: %q, want %q", i, got, c.fault)
		}
	}
}

func TestMeter(t *testing.T) {
	var m meter
	now := time.Now()
	for i := range 50 {
		m.observe(now.Add(time.Duration(i)*100*time.Millisecond), int64(i*50))
	}
	if m.rate < 499 || m.rate > 501 {
		t.Errorf("rate %v, want 500", m.rate)
	}
	m.observe(now.Add(time.Minute), 0)
	if m.rate != 0 {
		t.Errorf("rate %v after a count that fell, want 0", m.rate)
	}
}

func TestConfig(t *testing.T) {
	good := Config{Brokers: "a:1", Names: wire.DefaultNames()}
	if c, err := good.withDefaults(); err != nil || c.Total != TotalSeq || c.Deadline != DefaultDeadline {
		t.Errorf("%+v, %v", c, err)
	}
	for name, change := range map[string]func(*Config){
		"no brokers":    func(c *Config) { c.Brokers = "" },
		"no names":      func(c *Config) { c.Names = wire.Names{} },
		"unknown total": func(c *Config) { c.Total = "x" },
		"negative":      func(c *Config) { c.PollEvery = -1 },
	} {
		c := good
		change(&c)
		if _, err := c.withDefaults(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
