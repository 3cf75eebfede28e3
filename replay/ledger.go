package replay

import (
	"time"

	"rankcache"
)

// auditLogEvery is the shortest time between two log lines about one board's
// differences.
const auditLogEvery = time.Minute

// ledger is what audits have found of one board.
type ledger struct {
	rankcache.AuditStatus
	logged time.Time
}

// audited notes a comparison.
func (f *follower) audited(l look, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.metrics.checks.WithLabelValues(l.result()).Inc()
	if l.unknown != "" {
		f.ledger.Unknown++
		return
	}
	f.metrics.compared.Add(float64(l.seen))
	f.ledger.At = now
	f.ledger.Checks++
	f.ledger.Members += uint64(l.seen)
}

// differs notes a difference. The lock is held.
func (f *follower) differs(kind, what string, now time.Time) {
	f.ledger.Differences++
	f.ledger.Last, f.ledger.LastAt = what, now
	f.metrics.differences.WithLabelValues(kind).Inc()
}

func (l *look) result() string {
	switch {
	case l.unknown != "":
		return "unknown"
	case len(l.members)+len(l.off) > 0:
		return "different"
	}
	return "equal"
}
