package plan

import (
	"math"
	"strings"
	"testing"
	"time"
)

// evening is the load of the design notes: two boards, forty pods.
var evening = Question{Members: []int{57_000, 210_000}, IDBytes: 10, Updates: 500, History: 3 * time.Hour,
	Requests: 200_000, Small: 0.05, HotBoards: 10, Refresh: time.Second, Pods: 40, ProfileMiB: 64, PollEvery: 5 * time.Second}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > want*0.02 {
		t.Errorf("%s: got %g, want about %g", what, got, want)
	}
}

func TestMake(t *testing.T) {
	a := Make(evening)
	near(t, "heap", a.PodHeapMiB, 267_000*77/1048576.0+0.9e6/1048576+64)
	near(t, "memory", a.PodMemoryMiB, 2*a.PodHeapMiB+64)
	near(t, "reads", a.PodReads, 5000)
	near(t, "cpu", a.PodCPU, 5000*8.2e-6+500*2.72e-6)
	near(t, "log", a.LogUpdates, 5.4e6)
	near(t, "open", a.OpenSeconds, 0.2+5.4e6/610e3)
	near(t, "egress", a.KafkaEgressMB, 40*500*float64(a.UpdateBytes)/1e6)
	near(t, "redis before", a.RedisBefore, 200_500)
	near(t, "redis after", a.RedisAfter, 10_000+400+120+500)
	near(t, "api", a.APICallsPerHour, 720)
	if a.Verdict != WorthIt {
		t.Errorf("verdict %q: %v", a.Verdict, a.Reasons)
	}
	if a.UpdateBytes < 120 || a.UpdateBytes > 220 {
		t.Errorf("an update takes %d bytes", a.UpdateBytes)
	}
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*Question)
		verdict, cause string
	}{
		"as it is":      {func(*Question) {}, WorthIt, "Redis goes from"},
		"few reads":     {func(q *Question) { q.Requests = 2000 }, NotNeeded, "ZREVRANGE is simpler"},
		"many updates":  {func(q *Question) { q.Updates, q.Pods = 9000, 40 }, Doubtful, "updates/s to answer"},
		"small boards":  {func(q *Question) { q.Small = 0.9 }, Doubtful, "spared only"},
		"huge boards":   {func(q *Question) { q.Members = []int{20_000_000} }, Doubtful, "in every pod"},
		"many writers":  {func(q *Question) { q.Updates, q.Requests = 60_000, 9e6 }, Doubtful, "cores of writers"},
		"no boards yet": {func(q *Question) { q.Members, q.Updates = nil, 0 }, WorthIt, ""},
	} {
		q := evening
		c.change(&q)
		a := Make(q)
		if a.Verdict != c.verdict || !strings.Contains(strings.Join(a.Reasons, "; "), c.cause) {
			t.Errorf("%s: %q because %q, want %q because %q", name, a.Verdict, a.Reasons, c.verdict, c.cause)
		}
	}
}

func TestCheck(t *testing.T) {
	if wrong := evening.Check(); wrong != "" {
		t.Error(wrong)
	}
	for want, change := range map[string]func(*Question){
		"pods":     func(q *Question) { q.Pods = 0 },
		"small":    func(q *Question) { q.Small = 1.1 },
		"updates":  func(q *Question) { q.Updates = math.NaN() },
		"members":  func(q *Question) { q.Members = []int{-1} },
		"hot-refr": func(q *Question) { q.Refresh = 0 },
		"negative": func(q *Question) { q.History = -1 },
	} {
		q := evening
		change(&q)
		if wrong := q.Check(); !strings.Contains(wrong, want) {
			t.Errorf("got %q, want %q in it", wrong, want)
		}
	}
}
