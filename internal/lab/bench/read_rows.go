package bench

import "rankcache/internal/lab/load"

// readSpec is one row, measured over TCP and over a Unix socket.
type readSpec struct {
	name   string
	server string // see benchServers
	// ask composes the requests, and looks whether the first reply is right.
	ask     func(*readBench, load.Target) (load.Question, error)
	updates int    // applied a second while it is measured
	source  string // what rankcache must have answered from; "" for others
}

const (
	boardPath    = "/v1/boards/" + string(benchBoardID)
	topPath      = boardPath + "/top"
	top50Path    = topPath + "?limit=50"
	profilesPath = topPath + "?limit=50&profiles=1"
	hotPath      = "/v1/boards/" + string(benchHotBoard) + "/top?limit=50"
	memberPath   = boardPath + "/members/"
	batchPath    = boardPath + "/members:batch"

	updatesBusy, updatesMany = 5_000, 50_000 // a second
)

// readRows is every row, in the order in which they are shown and, within a
// round, measured: what is compared stands close together.
var readRows = []readSpec{
	{"rankcache top50 super-hot", "rankcache", askTop(top50Path, 50), 0, "local"},
	{"bare loop", "loop", askPage(boardPath + "/top50"), 0, ""},
	{"fixed body", "fixed", askPage(boardPath + "/top50"), 0, ""},
	{"rankcache top50 hot", "rankcache", askTop(hotPath, 50), 0, "hot"},
	{"nginx static", "nginx", askPage("/top50"), 0, ""},
	{"nginx static open_file_cache", "nginx", askPage("/cached/top50"), 0, ""},
	{"rankcache top50 traced", "rankcache", askTraced, 0, "local"},
	{"rankcache top10", "rankcache", askTop(topPath+"?limit=10", 10), 0, "local"},
	{"rankcache top50 304", "rankcache", askNotModified, 0, "local"},
	{"rankcache top50 gzip", "rankcache", askGzip, 0, "local"},
	{"rankcache top50 updates 50k/s", "updated", askTop(top50Path, 50), updatesMany, "local"},
	{"rankcache top50 super-hot busy", "busy", askTop(top50Path, 50), updatesBusy, "local"},
	{"rankcache top50 profiles busy", "busy", askTop(profilesPath, 50), updatesBusy, "local"},
	{"fixed body profiles", "fixed profiles", askPage("/profiles50"), 0, ""},
	{"rankcache standing", "rankcache", askStandings(""), 0, "local"},
	{"rankcache standing updates 5k/s", "updated", askStandings(""), updatesBusy, "local"},
	{"fixed body small", "fixed", askPage(memberPath + "standing"), 0, ""},
	{"rankcache neighbours", "rankcache", askStandings("?around=4"), 0, "local"},
	{"rankcache batch", "rankcache", askBatch, 0, "local"},
	{"sortedset rwmutex json", "sortedset", askTop("/top?limit=50", 50), 0, ""},
	{"sortedset rwmutex json fasthttp", "sortedset fasthttp", askTop("/top?limit=50", 50), 0, ""},
	{"plain go service", "plain", askTop("/top?limit=50", 50), 0, ""},
	{"redis zrevrange50", "redis", askRange, 0, ""},
	{"redis zrevrank+zscore", "redis", askRank, 0, ""},
}

// readRatio is one thing to reach: a figure of one row over that of another.
type readRatio struct {
	name   string
	of, to string
	figure func(readSample) float64
	goal   float64
	atMost bool // else at least
}

// readRatios are the aims of docs/BENCHMARKS.md.
var readRatios = []readRatio{
	{"top50_super_hot_cpu_vs_fixed_body", "rankcache top50 super-hot", "fixed body", cpuOf, 1.15, true},
	{"top50_traced_cpu_vs_fixed_body", "rankcache top50 traced", "fixed body", cpuOf, 1.15, true},
	{"top50_hot_cpu_vs_fixed_body", "rankcache top50 hot", "fixed body", cpuOf, 1.15, true},
	{"top50_super_hot_cpu_vs_bare_loop", "rankcache top50 super-hot", "bare loop", cpuOf, 1.5, true},
	{"top50_super_hot_cpu_vs_nginx", "rankcache top50 super-hot", "nginx static", cpuOf, 1, true},
	{"top50_super_hot_cpu_vs_nginx_open_file_cache", "rankcache top50 super-hot", "nginx static open_file_cache", cpuOf, 1, true},
	{"standing_cpu_at_5k_updates_vs_fixed_body_small", "rankcache standing updates 5k/s", "fixed body small", cpuOf, 1.3, true},
	{"plain_go_service_cpu_vs_top50_super_hot", "plain go service", "rankcache top50 super-hot", cpuOf, 8, false},
	{"sortedset_cpu_vs_top50_super_hot", "sortedset rwmutex json", "rankcache top50 super-hot", cpuOf, 4, false},
	{"top50_busy_p99_vs_fixed_body", "rankcache top50 super-hot busy", "fixed body", p99Of, 1.5, true},
	{"profiles50_busy_p99_vs_fixed_body_profiles", "rankcache top50 profiles busy", "fixed body profiles", p99Of, 1.5, true},
	{"top50_rps_at_50k_updates_vs_idle", "rankcache top50 updates 50k/s", "rankcache top50 super-hot", rpsOf, 0.9, false},
}

func rpsOf(s readSample) float64 { return s.closed.Rate() }
func cpuOf(s readSample) float64 { return micros(s.closed.CPUPerRequest()) }
func p99Of(s readSample) float64 { return micros(s.paced.Percentile(0.99)) }
