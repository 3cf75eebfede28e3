package doctor

import (
	"strconv"
	"strings"
	"time"
)

const (
	// skewWarn is a difference that makes ages and times in answers wrong enough
	// to mislead people.
	skewWarn = time.Second
	// named is how many names a line of advice lists.
	named = 5
)

// judgeMode holds --redis-mode against what the server says of itself.
func judgeMode(mode, server, cluster string) Verdict {
	isCluster := server == "cluster" || cluster == "1"
	switch {
	case server == "" && cluster == "":
		return warnf("the user may not ask INFO: check by hand that the server is what --redis-mode %s says", mode)
	case server == "sentinel" && mode != "sentinel":
		return failf("this is a sentinel, not a Redis with boards: use --redis-mode sentinel and ?master_name=")
	case isCluster && mode != "cluster":
		return failf("this Redis is a node of a cluster and answers for a part of the boards only: use --redis-mode cluster")
	case !isCluster && mode == "cluster":
		return failf("this Redis is no cluster: use --redis-mode single")
	}
	return okf("--redis-mode %s is what the server is", mode)
}

// judgeEviction says what Redis would throw away when its memory is full.
func judgeEviction(policy, maxmemory, human string) Verdict {
	switch {
	case policy == "":
		return warnf("the user may not ask INFO memory: check that maxmemory-policy is noeviction")
	case policy == "noeviction":
		return okf("maxmemory-policy is noeviction")
	case maxmemory == "0":
		return okf("maxmemory-policy is %s, but there is no maxmemory, so nothing is evicted", policy)
	case strings.HasPrefix(policy, "volatile-"):
		return warnf("maxmemory-policy %s (maxmemory %s) evicts what expires, and boards do: set noeviction, or keep memory well below the limit", policy, human)
	}
	return failf("maxmemory-policy %s (maxmemory %s) may evict boards and their counts of orders, which then start anew: set noeviction", policy, human)
}

// judgeSkew judges a clock that is ahead of ours by skew, known to within fuzz.
func judgeSkew(whose string, skew, fuzz time.Duration) Verdict {
	if skew.Abs() > skewWarn+fuzz {
		where := "ahead of"
		if skew < 0 {
			where = "behind"
		}
		return warnf("the clock of %s is %v %s this machine's: run NTP on both, or ages in answers and logs mislead", whose, skew.Abs().Round(time.Millisecond), where)
	}
	return okf("the clock of %s agrees with this machine's within %v", whose, max(skew.Abs(), fuzz).Round(time.Millisecond))
}

// Memory holds what the super-hot boards will take against what there is.
type Memory struct {
	Boards   int
	Members  int64 // of all super-hot boards
	Estimate int64 // bytes that they will take
	Budget   int64 // bytes that boards may take; 0: not known
	Source   string
}

// Judge says whether the boards fit.
func (m Memory) Judge() Verdict {
	const mib = 1 << 20
	need := strconv.FormatFloat(float64(m.Estimate)/mib, 'f', 1, 64)
	switch {
	case m.Budget == 0:
		return warnf("%d super-hot boards with %d members take about %s MiB; how much there is is not known", m.Boards, m.Members, need)
	case m.Estimate > m.Budget:
		return failf("%d super-hot boards with %d members take about %s MiB, and %d MiB are for them (%s): give more memory or fewer boards", m.Boards, m.Members, need, m.Budget/mib, m.Source)
	case m.Estimate > m.Budget*8/10:
		return warnf("%d super-hot boards take about %s MiB of the %d MiB that are for them (%s): little room to grow", m.Boards, need, m.Budget/mib, m.Source)
	}
	return okf("%d super-hot boards with %d members take about %s MiB of the %d MiB that are for them (%s)", m.Boards, m.Members, need, m.Budget/mib, m.Source)
}

// list names the first few.
func list[T ~string](names []T) string {
	var text []string
	for i, n := range names {
		if i == named {
			text = append(text, "and "+strconv.Itoa(len(names)-named)+" more")
			break
		}
		text = append(text, string(n))
	}
	return strings.Join(text, ", ")
}
