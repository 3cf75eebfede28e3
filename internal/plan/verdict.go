package plan

import "fmt"

// Verdicts.
const (
	WorthIt   = "worth it"
	Doubtful  = "doubtful"
	NotNeeded = "not needed"
)

const (
	// idleRedis is a share of one Redis core that nobody has to relieve.
	idleRedis = 0.1
	// littleGain is the least share of its work that Redis should be spared.
	littleGain = 0.5
)

// judge says whether sidecars pay, and why: the page "when you do not need this"
// in numbers.
func (a *Answer) judge(q Question) {
	doubt := func(format string, args ...any) { a.Reasons = append(a.Reasons, fmt.Sprintf(format, args...)) }
	if share := q.Requests / redisPerSecond; share < idleRedis {
		a.Verdict = NotNeeded
		doubt("these reads keep one Redis core %.1f %% busy: a plain ZREVRANGE is simpler and always right", share*100)
		return
	}
	if len(q.Members) > 0 && q.Updates > a.PodReads {
		doubt("each pod would apply %.0f updates/s to answer %.0f reads/s: let the hot tier refresh a page instead of replaying the board", q.Updates, a.PodReads)
	}
	if saved := 1 - a.RedisAfterCPU/a.RedisBeforeCPU; saved < littleGain {
		doubt("Redis would be spared only %.0f %% of its work: most reads are of small boards, or most of the work is updates", max(saved, 0)*100)
	}
	if total := a.PodMemoryMiB * float64(q.Pods); a.PodMemoryMiB > 2048 {
		doubt("%.0f MiB in every pod, %.0f MiB in all: keep only the boards that need it super-hot", a.PodMemoryMiB, total)
	}
	if a.WriterCPU > 1 {
		doubt("these updates keep %.1f cores of writers busy: run several, and mind that Redis spends %.1f cores on them", a.WriterCPU, q.Updates*commandRedisSeconds)
	}
	a.Verdict = WorthIt
	if len(a.Reasons) > 0 {
		a.Verdict = Doubtful
		return
	}
	doubt("Redis goes from %.0f to %.0f calls/s", a.RedisBefore, a.RedisAfter)
}
