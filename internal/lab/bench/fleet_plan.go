package bench

import (
	"slices"

	"rankcache/internal/plan"
	"rankcache/replay"
)

// planned returns what rankcache plan expects of a pod at rest in the benchmark's fleet.
func (b *fleetBench) planned(keepers int) fleetFigures {
	a := plan.Make(plan.Question{Members: slices.Repeat([]int{b.members}, b.boards), IDBytes: len(benchMember(0)), Pods: b.pods,
		Keepers: keepers, StatesEvery: b.statesEvery, AuditRows: replay.DefaultAuditRows})
	return fleetFigures{redisCPU: a.PodRestRedis * 100, redisCommands: a.PodRestCommands, kafkaBytes: a.PodFetchKB * 1e3,
		processCPU: a.PodRestCPU * 100, processMemory: a.PodRestMiB}
}

// comparePlan adds what plan expects, and its ratio to what was measured.
func (b *fleetBench) comparePlan(r *fleetReport) {
	r.PlanNone, r.PlanKept = b.planned(0), b.planned(1)
	r.PlanToNone, r.PlanToKept = r.PlanNone.ratios(r.None), r.PlanKept.ratios(r.Kept)
}
