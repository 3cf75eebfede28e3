package main

import (
	"context"

	"rankcache/internal/doctor"
)

const (
	// boardBytes and memberBytes are a local board's: docs/BENCHMARKS.md, "The
	// ordered set", 67 B above an id of up to 31 bytes.
	boardBytes  = 128 << 10
	memberBytes = 98
)

// memory holds the super-hot boards against what there is for them.
func (p *patient) memory(ctx context.Context) doctor.Verdict {
	boards, err := p.superHot(ctx)
	if err != nil {
		return doctor.Verdict{Status: doctor.Warn, Advice: "which boards are super-hot is not known: " + err.Error()}
	}
	m := doctor.Memory{Boards: len(boards), Estimate: boardBytes * int64(len(boards))}
	stamps, err := p.origin.Totals(ctx, boards)
	if err != nil {
		return doctor.Verdict{Status: doctor.Warn, Advice: "the boards' sizes are not known: " + err.Error()}
	}
	for _, s := range stamps {
		m.Members += int64(s.Members)
	}
	m.Estimate += memberBytes * m.Members
	return m.Judge()
}
