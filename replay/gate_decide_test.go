package replay

import (
	"testing"
	"time"

	"rankcache"
)

func TestDecide(t *testing.T) {
	// caughtUp is a board that may be compared; each case changes what it names.
	caughtUp := gateInput{total: TotalSeq, kafkaKnown: true, topicKnown: true, ended: true,
		redisKnown: true, target: 10, run: 1, sumWrong: true, members: 3, have: rankcache.Progress{Contiguous: 10, Highest: 10}}
	hole := rankcache.Progress{Contiguous: 4, Highest: 12}
	for name, c := range map[string]struct {
		change func(*gateInput)
		act    action
		state  rankcache.BoardState
	}{
		"caught up":           {func(o *gateInput) {}, actCompare, rankcache.StateChecking},
		"ahead of want":       {func(o *gateInput) { o.have.Contiguous = 12 }, actCompare, rankcache.StateChecking},
		"Kafka is away":       {func(o *gateInput) { o.kafkaKnown, o.topicKnown = false, false }, actWait, rankcache.StateWaiting},
		"no topic":            {func(o *gateInput) { o.topicKnown = false }, actWait, rankcache.StateWaiting},
		"log not read":        {func(o *gateInput) { o.ended = false }, actWait, rankcache.StateReplaying},
		"Redis is away":       {func(o *gateInput) { o.redisKnown = false }, actWait, rankcache.StateWaiting},
		"checksum":            {func(o *gateInput) { o.summed = true }, actProve, rankcache.StateChecking},
		"checksum, hole":      {func(o *gateInput) { o.summed, o.have = true, hole }, actProve, rankcache.StateChecking},
		"checksum, truncated": {func(o *gateInput) { o.summed, o.have, o.truncated = true, hole, true }, actLoad, rankcache.StateSnapshot},
		"checksum, differs":   {func(o *gateInput) { o.summed, o.differs = true, "x" }, actLoad, rankcache.StateSnapshot},
		"checksum, loaded":    {func(o *gateInput) { o.summed, o.loaded, o.after = true, true, 11 }, actProve, rankcache.StateChecking},
		"seq 0, adopted":      {func(o *gateInput) { o.summed, o.target, o.have = true, 0, rankcache.Progress{} }, actLoad, rankcache.StateSnapshot},
		"seq 0, nobody":       {func(o *gateInput) { o.summed, o.target, o.members, o.have = true, 0, 0, rankcache.Progress{} }, actProve, rankcache.StateChecking},
		"no checksum":         {func(o *gateInput) { o.sumWrong = false }, actReadopt, rankcache.StateChecking},
		"no run":              {func(o *gateInput) { o.run = 0 }, actWait, rankcache.StateWaiting},
		"total 0, no log":     {func(o *gateInput) { o.run, o.target, o.have = 0, 0, rankcache.Progress{} }, actWait, rankcache.StateWaiting},
		"no change yet":       {func(o *gateInput) { o.run, o.target, o.members, o.have = 0, 0, 0, rankcache.Progress{} }, actOpenEmpty, rankcache.StateChecking},
		"no change yet, no topic": {func(o *gateInput) {
			o.run, o.target, o.members, o.have, o.topicKnown = 0, 0, 0, rankcache.Progress{}, false
		}, actWait, rankcache.StateWaiting},
		"no change in Redis any more": {func(o *gateInput) { o.run, o.target, o.members = 0, 0, 0 }, actWait, rankcache.StateWaiting},
		"no change after a fault": {func(o *gateInput) {
			o.run, o.target, o.members, o.have, o.differs = 0, 0, 0, rankcache.Progress{}, "x"
		}, actWait, rankcache.StateWaiting},
		"hole, just now":       {func(o *gateInput) { o.have = hole }, actWait, rankcache.StateChecking},
		"hole stays":           {func(o *gateInput) { o.have, o.endedFor = hole, holeGrace }, actLoad, rankcache.StateSnapshot},
		"short of Redis":       {func(o *gateInput) { o.target, o.endedFor = 11, holeGrace }, actLoad, rankcache.StateSnapshot},
		"truncated log":        {func(o *gateInput) { o.have, o.truncated = hole, true }, actLoad, rankcache.StateSnapshot},
		"truncated, yet whole": {func(o *gateInput) { o.truncated = true }, actCompare, rankcache.StateChecking},
		"differs":              {func(o *gateInput) { o.differs = "x" }, actLoad, rankcache.StateSnapshot},
		"loaded":               {func(o *gateInput) { o.loaded, o.after = true, 10 }, actCompare, rankcache.StateChecking},
		"loaded, waiting":      {func(o *gateInput) { o.loaded, o.after = true, 11 }, actWait, rankcache.StateSnapshot},
		"loaded, late":         {func(o *gateInput) { o.loaded, o.after, o.loadedFor = true, 11, holeGrace }, actLoad, rankcache.StateSnapshot},
		"loaded, differs":      {func(o *gateInput) { o.loaded, o.after, o.differs = true, 10, "x" }, actLoad, rankcache.StateSnapshot},
		"orders":               {func(o *gateInput) { o.total, o.have = TotalOrders, rankcache.Progress{OrderIDs: 10} }, actCompare, rankcache.StateChecking},
		"orders, short": {func(o *gateInput) {
			o.total, o.have, o.endedFor = TotalOrders, rankcache.Progress{OrderIDs: 9}, time.Hour
		}, actWait, rankcache.StateChecking},
		"orders, differs":  {func(o *gateInput) { o.total, o.have, o.differs = TotalOrders, rankcache.Progress{OrderIDs: 10}, "x" }, actCompare, rankcache.StateChecking},
		"no total":         {func(o *gateInput) { o.total, o.target, o.have = TotalNone, 0, rankcache.Progress{OrderIDs: 9} }, actCompare, rankcache.StateChecking},
		"no total, nobody": {func(o *gateInput) { o.total, o.target, o.members = TotalNone, 0, 0 }, actWait, rankcache.StateWaiting},
	} {
		o := caughtUp
		c.change(&o)
		if s := decide(&o); s.act != c.act || s.state != c.state || s.reason == "" {
			t.Errorf("%s: action %d, state %q (%s); want %d, %q", name, s.act, s.state, s.reason, c.act, c.state)
		}
	}
}

// The third time within ten minutes a board is left to Redis for ten minutes, which count no further ones.
func TestPastWrites(t *testing.T) {
	var p pastWrites
	begun := time.Now()
	past, other := &fault{kind: kindPast}, &fault{kind: kindRun}
	for _, c := range []struct {
		at    time.Duration
		why   *fault
		rests bool
	}{{0, past, false}, {4, past, false}, {9, other, false}, {11, past, false}, {12, past, true}, {13, past, false}, {21, past, false},
		{23, past, false}, {24, past, false}, {25, past, true}} {
		now := begun.Add(c.at * time.Minute)
		if got := p.begins(c.why, now); got != c.rests || got && !p.until.Equal(now.Add(10*time.Minute)) {
			t.Errorf("after %d minutes: %t, until %v", c.at, got, p.until.Sub(begun))
		}
	}
}
