package replay

import "time"

// repair gives wrong members the state that Redis told, and publishes it. Their
// differences were found in an epoch; in another one they say nothing. The board
// takes none for a member that has been updated since.
func (f *follower) repair(epoch int, wrong []difference, m *metrics) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch != epoch || !f.readable.Load() {
		return
	}
	for i := range wrong {
		d := &wrong[i]
		if f.board.Repair(d.member, d.score, d.there, d.seq) {
			f.ledger.Repairs++
			m.repairs.Inc()
		}
	}
	f.board.Publish()
}

// tell counts the differences and logs them, once per minute.
func (g *gate) tell(l look) {
	all := append(l.members, l.off...)
	g.f.mu.Lock()
	defer g.f.mu.Unlock()
	now := time.Now()
	for i := range all {
		g.f.differs(all[i].kind, all[i].String(), now)
	}
	if now.Sub(g.f.ledger.logged) >= auditLogEvery {
		g.f.ledger.logged = now
		g.log.Warn("board differs from Redis and is healed", "board", g.f.id, "differences", len(all), "first", all[0].String())
	}
}
