package admission

import (
	"time"

	"rankcache"
)

// Refusal is a wanted board that is not kept, as operators see it.
type Refusal struct {
	Board  rankcache.BoardID `json:"board"`
	Bytes  int64             `json:"bytes"` // it would need; 0: not known
	Reason string            `json:"reason"`
	Since  time.Time         `json:"since"`
}

// Status is what operators see of the budget.
type Status struct {
	Budget     int64     `json:"budget_bytes"` // 0: none
	Used       int64     `json:"used_bytes"`   // by the admitted boards, reckoned
	OverBudget bool      `json:"over_budget"`
	Admitted   int       `json:"admitted"`
	Refused    []Refusal `json:"refused"` // and those of unknown size; in the order of naming
}

// Status returns what has been decided.
func (a *Admission) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Status{Budget: a.cfg.Budget, Used: a.used, OverBudget: a.over, Refused: []Refusal{}}
	for _, id := range a.wanted {
		switch v, known := a.verdict[id]; {
		case v.admitted():
			s.Admitted++
		case known:
			s.Refused = append(s.Refused, Refusal{id, v.bytes, v.reason, v.since})
		}
	}
	return s
}
