package plan

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// evening is the load of the design notes: two boards, forty pods.
var evening = Question{Members: []int{57_000, 210_000}, IDBytes: 10, Updates: 500, History: 3 * time.Hour,
	Requests: 200_000, Small: 0.05, HotBoards: 10, Refresh: time.Second, Pods: 40, ProfileMiB: 64, PollEvery: 5 * time.Second, AuditRows: 2000, StatesEvery: 300 * time.Millisecond}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > want*0.02 {
		t.Errorf("%s: got %g, want about %g", what, got, want)
	}
}

func TestMake(t *testing.T) {
	a := Make(evening)
	near(t, "heap", a.PodHeapMiB, 267_000*(memberBytes+10)/1048576.0+0.9e6/1048576+64)
	need := 2*(128<<10) + 267_000*(reservedBytes+10) + (64 << 10) + 210_000*(40+10.0)
	near(t, "memory", a.PodMemoryMiB, (need/0.75/1048576+12+64+55)/0.95)
	near(t, "reads", a.PodReads, 5000)
	near(t, "cpu", a.PodCPU, 5000*readSeconds+500*updateSeconds)
	near(t, "log", a.LogUpdates, 5.4e6)
	near(t, "open", a.OpenSeconds, openSeconds+5.4e6/ReplayPerSecond)
	near(t, "egress", a.KafkaEgressMB, 40*500*float64(a.UpdateBytes)/1e6)
	near(t, "redis before", a.RedisBefore, 200_500)
	near(t, "redis after", a.RedisAfter, 10_000+400+40*(4+7.8)+500)
	near(t, "api", a.APICallsPerHour, 720)
	if a.Verdict != WorthIt {
		t.Errorf("verdict %q: %v", a.Verdict, a.Reasons)
	}
	if a.UpdateBytes < 180 || a.UpdateBytes > 280 {
		t.Errorf("an update takes %d bytes", a.UpdateBytes)
	}
}

// Own ranks of hot boards are Redis's: only pages of these are in memory.
func TestReadsByKind(t *testing.T) {
	q := evening
	q.Members, q.Updates, q.Hot, q.Own, q.Around = nil, 0, 0.95, 0.3, 0.1
	a := Make(q)
	near(t, "from memory", a.FromMemory, 0.6*0.95)
	near(t, "before", a.RedisBefore, 200_000*(0.9+0.2))
	calls := 200_000*(0.6*0.05+0.3+0.1*2) + 400
	if rest := a.RedisAfter - calls; rest < 0 || rest > 40*20 {
		t.Errorf("%.0f calls after, want %.0f and the sidecars' own", a.RedisAfter, calls)
	}
	near(t, "cpu before", a.RedisBeforeCPU, 200_000*redisSeconds*(0.6+0.3*redisOwnShare+0.1*(1+redisOwnShare)))
	near(t, "cpu", a.PodCPU, 5000*(0.6*readSeconds+0.3*ownSeconds+0.1*aroundSeconds))
	q.Hot = 0 // all that is not small is whole in memory
	near(t, "super-hot", Make(q).FromMemory, 0.95)
	q.Hot, q.Own, q.Around = 0.95, 0.7, 0.1
	if a := Make(q); a.Verdict != Doubtful || !strings.Contains(strings.Join(a.Reasons, " "), "19 % of the reads are answered from memory") {
		t.Errorf("%s: %v", a.Verdict, a.Reasons)
	}
	for _, wrong := range []func(*Question){func(q *Question) { q.Hot = 0.96 }, func(q *Question) { q.Own = 0.95 }, func(q *Question) { q.Around = -1 }, func(q *Question) { q.Own = math.NaN() }} {
		other := q
		if wrong(&other); other.Check() == "" {
			t.Errorf("%+v is taken", other)
		}
	}
}

// Boards that linger take memory, and nothing else.
func TestLingering(t *testing.T) {
	q, without := evening, Make(evening)
	q.Lingering = []int{57_000}
	a := Make(q)
	near(t, "heap", a.PodHeapMiB-without.PodHeapMiB, 57_000*(memberBytes+10)/1048576.0)
	near(t, "memory", a.PodMemoryMiB-without.PodMemoryMiB, (boardBytes+57_000*(reservedBytes+10.0))/0.75/1048576/0.95)
	a.PodHeapMiB, a.PodMemoryMiB, a.PodRestMiB = without.PodHeapMiB, without.PodMemoryMiB, without.PodRestMiB
	if !reflect.DeepEqual(a, without) {
		t.Errorf("got %+v, without %+v", a, without)
	}
}

func TestLiveAndLedger(t *testing.T) {
	q := evening
	q.Streams, q.StreamRate, q.LedgerRows, q.LedgerKeep = 100, 10, 500, 30*24*time.Hour
	a := Make(q)
	near(t, "events", a.LiveEvents, 1000)
	near(t, "live cpu", a.PodCPU-Make(evening).PodCPU, 1000*eventSeconds)
	near(t, "live memory", a.LiveMiB, 100*streamBytes/1048576.0)
	near(t, "live heap", a.PodHeapMiB-Make(evening).PodHeapMiB, a.LiveMiB)
	near(t, "live limit", a.PodMemoryMiB-Make(evening).PodMemoryMiB, a.LiveMiB/0.95)
	q.HTTP2 = 30
	near(t, "live memory with HTTP/2", Make(q).LiveMiB, (70*streamBytes+30*http2StreamBytes)/1048576.0)
	near(t, "a day", a.LedgerDayMiB, 500*86400*rowBytes/1048576.0)
	near(t, "30 days", a.LedgerMiB, 30*a.LedgerDayMiB)
}

// A fleet at rest: a keeper does once what each sidecar does else, and a sidecar of a node stands for its pods.
func TestAtRest(t *testing.T) {
	q := evening
	q.Members, q.Updates, q.Requests, q.HotBoards, q.Pods, q.Small = slices.Repeat([]int{2000}, 100), 0, 1e6, 0, 1000, 0
	without := Make(q)
	near(t, "commands", without.RestCommands, 1000*(300+8*5+3))
	near(t, "fetches", without.Fetches, 2)
	near(t, "bytes of fetches", without.KafkaFetchMB, 1000*100*(2*FetchTopicBytes+lookUpTopicBytes)/1e6)
	q.Keepers = 2
	kept := Make(q)
	near(t, "commands with keepers", kept.RestCommands, 1000*(1/0.3+2+1)+1/0.3*303+8*5+12)
	near(t, "commands of a pod", kept.PodRestCommands, 1/0.3+2+1)
	if share := kept.PodRestRedis * 1000 / kept.RestCPU; share < 0.9 || share > 1 {
		t.Errorf("the sidecars take %.3f of it, and the keeper the rest", share)
	}
	q.HotBoards = 1
	if reports := Make(q).RestCommands - kept.RestCommands; reports != 2000 {
		t.Errorf("%v commands of reports", reports)
	}
	q.HotBoards = 0
	near(t, "bytes of values", kept.RestRedisMB, 1000*(29+3100)/0.3/1e6)
	if share := kept.RestCPU / without.RestCPU; share > 0.2 {
		t.Errorf("keepers leave %.2f of Redis's work at rest", share)
	}
	if near(t, "redis", without.RedisAfter-kept.RedisAfter, without.RestTrips-kept.RestTrips); kept.RedisAfterCPU >= without.RedisAfterCPU {
		t.Errorf("Redis %.3f cores, %.3f without keepers", kept.RedisAfterCPU, without.RedisAfterCPU)
	}
	q.PodsPerNode = 20
	node := Make(q)
	if node.Pods != 1000 || node.Sidecars != 50 {
		t.Errorf("%d pods, %d sidecars, want 1000 and 50", node.Pods, node.Sidecars)
	}
	near(t, "reads of a node", node.PodReads, 20*kept.PodReads)
	near(t, "fetches of nodes", node.KafkaFetchMB, 52*100*(2*FetchTopicBytes+lookUpTopicBytes)/1e6)
	q.Topics = 1
	near(t, "fetches of one topic", Make(q).KafkaFetchMB, node.KafkaFetchMB/100)
	q.Updates = 100
	near(t, "fetches under updates", Make(q).Fetches, 100*fetchesAnUpdate)
	q.Updates = 5000
	near(t, "fetches under many updates", Make(q).Fetches, fetchesPerSecond)
}

// A sidecar that starts with a snapshot reads the log from there.
func TestSnapshots(t *testing.T) {
	q := evening
	q.SnapshotEvery = 30 * time.Second
	a := Make(q)
	near(t, "log", a.LogUpdates, 500*30)
	near(t, "open", a.OpenSeconds, openSeconds+15_000.0/ReplayPerSecond)
	near(t, "snapshots", a.SnapshotMiB, 267_000*(snapshotBytes+10)/1048576.0)
	near(t, "saved", a.SnapshotsMB, 267_000*(snapshotBytes+10)/1e6/30)
}

// An increment of a board that is summed up changes two boards more, and each member of a period is one change more.
func TestRolling(t *testing.T) {
	q, without := evening, Make(evening)
	q.Rolling, q.Primes, q.PrimePeriod, q.PrimeRate = 100, 20_000, time.Minute, 2000
	if wrong := q.Check(); wrong != "" {
		t.Error(wrong)
	}
	a := Make(q)
	near(t, "primes", a.PrimesPerSecond, 333.3)
	near(t, "primed after", a.PrimeSeconds, 10)
	near(t, "changes", a.RollingChanges, 533.3)
	near(t, "redis", a.RedisAfter-without.RedisAfter, 533.3)
	near(t, "redis cores", a.RedisAfterCPU-without.RedisAfterCPU, 533.3*CommandRedisSeconds)
	near(t, "writers", a.WriterCPU-without.WriterCPU, 533.3*commandWriterSeconds)
	near(t, "of a pod", a.PodCPU, without.PodCPU)
	q.PrimePeriod = 5 * time.Second
	if wrong := q.Check(); !strings.Contains(wrong, "20000 members in 5s are 4000 a second, more than --prime-rate 2000") {
		t.Errorf("got %q", wrong)
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
		"small boards":  {func(q *Question) { q.Small = 0.9 }, Doubtful, "save only"},
		"huge boards":   {func(q *Question) { q.Members = []int{20_000_000} }, Doubtful, "in every pod"},
		"many sidecars": {func(q *Question) { q.Members, q.Pods, q.Requests = slices.Repeat([]int{2000}, 100), 1000, 1e6 }, Doubtful, "run keepers"},
		"many topics":   {func(q *Question) { q.Members, q.Pods, q.Requests = slices.Repeat([]int{2000}, 100), 1000, 1e6 }, Doubtful, "--topics"},
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
		"cores of each sidecar": func(q *Question) { q.Pods, q.Updates = 0, 1e6 },
		"pods":                  func(q *Question) { q.Pods = -1 },
		"small":                 func(q *Question) { q.Small = 1.1 },
		"updates":               func(q *Question) { q.Updates = math.NaN() },
		"members":               func(q *Question) { q.Members = []int{-1} },
		"lingering":             func(q *Question) { q.Lingering = []int{-1} },
		"ledger-rows":           func(q *Question) { q.LedgerRows = math.Inf(1) },
		"rolling-updates":       func(q *Question) { q.Rolling = 501 },
		"primes, prime-rate":    func(q *Question) { q.Primes = 1 },
		"streams":               func(q *Question) { q.Streams = -1 },
		"streams-http2":         func(q *Question) { q.HTTP2 = 1 },
		"hot-refr":              func(q *Question) { q.Refresh = 0 },
		"pods-per-node":         func(q *Question) { q.PodsPerNode = -1 },
		"states-every":          func(q *Question) { q.Keepers, q.StatesEvery = 1, 0 },
		"negative":              func(q *Question) { q.History = -1 },
	} {
		q := evening
		change(&q)
		if wrong := q.Check(); !strings.Contains(wrong, want) {
			t.Errorf("got %q, want %q in it", wrong, want)
		}
	}
}

// Without pods the plan computes how many keep each sidecar at half a core.
func TestPodsFollowFromTheReads(t *testing.T) {
	q := evening
	q.Pods, q.Requests = 0, 1e6
	a := Make(q)
	if !a.PodsComputed || a.PodCPU > MaxPodCPU {
		t.Errorf("%d pods of %.3f cores, computed: %v", a.Pods, a.PodCPU, a.PodsComputed)
	}
	q.Pods = a.Pods - 1
	if fewer := Make(q); fewer.PodsComputed || fewer.PodCPU <= MaxPodCPU {
		t.Errorf("%d pods are enough: %.3f cores", q.Pods, fewer.PodCPU)
	}
	q.Pods, q.Requests = 0, 0
	if a := Make(q); a.Pods != 1 {
		t.Errorf("%d pods without reads, want 1", a.Pods)
	}
}

// docs/BENCHMARKS.md and docs/speed are what people read, so they must have what the plan computes with.
func TestFiguresAreThoseOfTheDocs(t *testing.T) {
	var doc []byte
	pages, err := filepath.Glob("../../docs/speed/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../docs/BENCHMARKS.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		doc = append(doc, text...)
	}
	for _, f := range []struct {
		name    string
		value   float64
		pattern string // its first group is the figure, in units of unit
		unit    float64
	}{
		{"memberBytes", memberBytes, `\((\d+) B at 210,000, \d+ at 57,000\)`, 1},
		{"counterBytes", counterBytes, `\| memory of the counters \| \| ([\d.]+) MB \|`, 1e6},
		{"readSeconds", readSeconds, `\| rankcache top50 super-hot \| tcp \| [\d,]+ \| ([\d.]+) \|`, 1e-6},
		{"ownSeconds", ownSeconds, `\| rankcache standing \| tcp \| [\d,]+ \| ([\d.]+) \|`, 1e-6},
		{"aroundSeconds", aroundSeconds, `\| rankcache neighbours \| tcp \| [\d,]+ \| ([\d.]+) \|`, 1e-6},
		{"redisOwnShare", redisOwnShare, `takes ([\d.]+) of the CPU of a page of 50 rows`, 1},
		{"readsPerSecond", readsPerSecond, `\| rankcache top50 super-hot \| tcp \| ([\d,]+) \|`, 1},
		{"updatingPerSecond", updatingPerSecond, `\| rankcache top50 updates 50k/s \| tcp \| ([\d,]+) \|`, 1},
		{"redisPerSecond", redisPerSecond, `\| redis zrevrange50 \| tcp \| ([\d,]+) \|`, 1},
		{"redisSeconds", redisSeconds, `\| redis zrevrange50 \| tcp \| [\d,]+ \| ([\d.]+) \|`, 1e-6},
		{"replayPerSecond", ReplayPerSecond, `(?m)^\| the log, one partition \| ([\d,]+) \|`, 1},
		{"openSeconds", openSeconds, `a board opens after [\d.]+ to ([\d.]+) s in most runs`, 1},
		{"eventSeconds", eventSeconds, `\| CPU of an event[^|]*\| \| ([\d.]+) µs`, 1e-6},
		{"streamBytes", streamBytes, `\| heap and stacks of a stream over HTTP/1.1[^|]*\| \| ([\d,]+) B \|`, 1},
		{"http2StreamBytes", http2StreamBytes, `\| the same over HTTP/2[^|]*\| \| ([\d,]+) B \|`, 1},
		{"rowBytes", rowBytes, `\| postgres \| [\d,]+ \| [\d,]+ \| [\d.]+ ms \| ([\d,]+) \|`, 1},
		{"busyTripSeconds", busyTripSeconds, `\| a round trip[^|]*\| ([\d.]+) µs`, 1e-6},
		{"tripSeconds", tripSeconds, `\| those 1 ms apart \| ([\d.]+) µs`, 1e-6},
		{"rareTripSeconds", rareTripSeconds, `\| those 10 ms apart \| ([\d.]+) µs`, 1e-6},
		{"stateSeconds", StateSeconds, `\| the state of a board \| ([\d.]+) µs`, 1e-6},
		{"rowSeconds", RowSeconds, `\| a row of the walk \| ([\d.]+) µs`, 1e-6},
		{"scanSeconds", ScanSeconds, `\| a row of a load \| ([\d.]+) µs`, 1e-6},
		{"restCores", restCores, `a sidecar at rest takes ([\d.]+) % of a core`, 1e-2},
		{"restTopicCores", restTopicCores, `of a core and ([\d.]+) % for each topic`, 1e-2},
		{"restMiB", restMiB, `and ([\d.]+) MiB of private memory`, 1},
		{"restTopicMiB", restTopicMiB, `of private memory, ([\d.]+) for each topic`, 1},
		{"valueSeconds", ValueSeconds, `\| the keeper's value of 100 boards \| ([\d.]+) µs`, 1e-6},
		{"reportSeconds", ReportSeconds, `\| a report of reads \| ([\d.]+) µs`, 1e-6},
		{"readReportSeconds", ReadReportSeconds, `\| the keeper reads a report \| ([\d.]+) µs`, 1e-6},
		{"fetchTopicBytes", FetchTopicBytes, `a fetch and its answer take (\d+) B of each topic`, 1},
		{"lookUpTopicBytes", lookUpTopicBytes, `looks up its topics, (\d+) B of each`, 1},
		{"fetchesAnUpdate", fetchesAnUpdate, `that is ([\d.]+) fetches for an update`, 1},
		{"fetchesPerSecond", fetchesPerSecond, `\((\d+) fetches a second`, 1},
		{"logAddSeconds", logAddSeconds, `a change takes ([\d.]+) µs more there`, 1e-6},
		{"logReadsPerSecond", logReadsPerSecond, `reads it after changes, (\d+) times a second at most`, 1},
		{"logReadSeconds", logReadSeconds, `times a second at most, (\d+) µs each beside`, 1e-6},
		{"orderBytes", orderBytes, `\| plain \| \| 1\.00 \| [\d.]+ µs \| [\d.]+ µs \| [\d,]+ \| (\d+) B \|`, 1},
		{"commandRedisSeconds", CommandRedisSeconds, `CPU per command ([\d.]+) µs in Redis`, 1e-6},
		{"commandWriterSeconds", commandWriterSeconds, `and ([\d.]+) µs in the writer`, 1e-6},
	} {
		found := regexp.MustCompile(f.pattern).FindAllSubmatch(doc, -1)
		if len(found) != 1 {
			t.Errorf("%s: %d places in docs/BENCHMARKS.md and docs/speed match %s, want 1", f.name, len(found), f.pattern)
			continue
		}
		want, err := strconv.ParseFloat(strings.ReplaceAll(string(found[0][1]), ",", ""), 64)
		if want *= f.unit; err != nil || math.Abs(f.value-want) > 1e-9*want {
			t.Errorf("%s is %g, the documentation has %g (%v): copy its figure to figures.go", f.name, f.value, want, err)
		}
	}
}

// With the log in Redis there is no Kafka, and Redis pays for each sidecar: 20 that follow 500 changes a second take a
// tenth of a core (docs/speed/FLEET.md), and many more are cheaper with Kafka.
func TestLogInRedis(t *testing.T) {
	q := Question{Members: slices.Repeat([]int{200}, 100), IDBytes: 10, Updates: 500, History: time.Hour, Requests: 200_000, Own: 0.5, Pods: 20, LogInRedis: true, StatesEvery: time.Second}
	a := Make(q)
	if a.KafkaIngressMB+a.KafkaEgressMB+a.KafkaFetchMB+a.RolloutMB+a.Fetches+a.LogMiB+a.LogUpdates+a.PodFetchKB != 0 || a.PodRestCPU > restCores || a.OpenSeconds > 1 {
		t.Errorf("there is no Kafka: %+v", a)
	}
	if a.LogCPU < 0.07 || a.LogCPU > 0.13 || a.Verdict != WorthIt {
		t.Errorf("%.3f cores, %s: %q", a.LogCPU, a.Verdict, a.Reasons)
	}
	near(t, "order ids", a.OrdersMiB, 500*7200*108/1048576.0)
	with := a.RedisAfterCPU
	q.LogInRedis = false
	if b := Make(q); b.LogCPU != 0 || with-b.RedisAfterCPU < 0.05 || b.KafkaEgressMB == 0 {
		t.Errorf("%.3f cores with a log in Redis, %.3f with Kafka", with, b.RedisAfterCPU)
	}
	q.LogInRedis, q.Pods = true, 200
	if a := Make(q); a.Verdict != Doubtful || !strings.Contains(strings.Join(a.Reasons, ";"), "sidecars on Kafka is cheaper") {
		t.Errorf("%s: %q", a.Verdict, a.Reasons)
	}
}
