package app

import (
	"cmp"
	"context"
	"fmt"

	"rankcache/admission"
	"rankcache/internal/doctor"
)

// memory holds the super-hot boards against what --memory-budget gives them,
// reckoned as serve reckons when it decides which of them it keeps.
func (p *patient) memory(ctx context.Context) doctor.Verdict {
	limits, _ := findMemoryLimits() // the zero value says that nobody knows
	budget, err := limits.budget(p.memoryBudget)
	if err != nil {
		return doctor.Verdict{Status: doctor.Fail, Advice: err.Error()}
	}
	boards, err := p.superHot(ctx)
	if err != nil {
		return doctor.Verdict{Status: doctor.Warn, Advice: "which boards are super-hot is not known: " + err.Error()}
	}
	sizes, err := boardSizes{origin: p.origin}.Sizes(ctx, boards)
	if err != nil {
		return doctor.Verdict{Status: doctor.Warn, Advice: "the boards' sizes are not known: " + err.Error()}
	}
	m := doctor.Memory{Boards: len(boards), Budget: cmp.Or(budget, limits.Limit),
		Source: fmt.Sprintf("--memory-budget %s; the %s has %d MiB", p.memoryBudget, limits.Source, limits.Limit>>20)}
	for _, size := range sizes {
		if size != nil {
			m.Members += int64(size.Members)
			m.Estimate += admission.Estimate(*size)
		}
	}
	return m.Judge()
}
