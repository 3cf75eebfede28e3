package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"rankcache/internal/lab/load"
)

// readReport is the stable JSON of bench read. Figures are medians over the
// rounds.
type readReport struct {
	Machine  readMachine              `json:"machine"`
	Settings readSettings             `json:"settings"`
	Rows     []readRow                `json:"rows"`
	Ratios   map[string]readRatioLine `json:"ratios"`
	Missing  []string                 `json:"missing"` // why rows were left out
}

type readMachine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Pinned bool   `json:"pinned"` // servers and load have a core each
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Redis  string `json:"redis,omitempty"`
	Nginx  string `json:"nginx,omitempty"`
	H2load string `json:"h2load,omitempty"`
}

type readSettings struct {
	Rounds      int     `json:"rounds"`
	Seconds     float64 `json:"seconds"` // of each run
	Connections int     `json:"connections"`
	Members     int     `json:"members"`
	Profiles    int     `json:"profiles"`
}

type readRow struct {
	Name      string  `json:"name"`
	Transport string  `json:"transport"`
	RPS       float64 `json:"rps"`
	CPU       float64 `json:"cpu_us"` // of all the server's processes, for each request at full rate
	P50       float64 `json:"p50_us"` // at 5,000 requests/s, or half of the full rate if that is less; 0: not of Redis
	P99       float64 `json:"p99_us"`
	P999      float64 `json:"p999_us"`
	Busy      float64 `json:"server_busy"` // cores that the server used at full rate; well below 1: the load was the limit
	Errors    int     `json:"errors"`      // in all rounds together
	ErrorText string  `json:"error,omitempty"`
}

// readRatioLine is one thing to reach. The value is the median of the rounds'
// ratios, so that what slows both rows down in a round cancels.
type readRatioLine struct {
	Value float64 `json:"value"`
	Goal  float64 `json:"goal"`
	Is    string  `json:"is"` // at_most or at_least the goal
	Met   bool    `json:"met"`
}

func (b *readBench) report() *readReport {
	r := &readReport{Machine: thisMachine(b.pinned), Ratios: map[string]readRatioLine{}, Missing: append([]string{}, b.servers.missing...),
		Settings: readSettings{b.rounds, b.duration.Seconds(), b.connections, b.members, b.profiles}}
	for _, c := range b.cases {
		r.Rows = append(r.Rows, c.report())
	}
	for _, ratio := range readRatios {
		for _, transport := range []string{"tcp", "unix"} {
			of, to := b.find(ratio.of, transport), b.find(ratio.to, transport)
			if of != nil && to != nil {
				r.Ratios[ratio.name+"_"+transport] = ratio.line(of.samples, to.samples)
			}
		}
	}
	return r
}

func (b *readBench) find(name, transport string) *readCase {
	for _, c := range b.cases {
		if c.row.name == name && c.transport == transport {
			return c
		}
	}
	return nil
}

func (c *readCase) report() readRow {
	row := readRow{Name: c.row.name, Transport: c.transport}
	row.RPS = c.median(rpsOf)
	row.CPU = c.median(cpuOf)
	row.P50 = c.median(func(s readSample) float64 { return micros(s.paced.Percentile(0.5)) })
	row.P99 = c.median(p99Of)
	row.P999 = c.median(func(s readSample) float64 { return micros(s.paced.Percentile(0.999)) })
	row.Busy = c.median(func(s readSample) float64 { return s.closed.Busy() })
	for _, s := range c.samples {
		row.Errors += s.closed.Errors + s.paced.Errors
		for _, err := range []error{s.closed.Error, s.paced.Error} {
			if err != nil {
				row.ErrorText = err.Error()
			}
		}
	}
	return row
}

func (c *readCase) median(figure func(readSample) float64) float64 {
	values := make([]float64, len(c.samples))
	for i, s := range c.samples {
		values[i] = figure(s)
	}
	return median(values)
}

func (r *readRatio) line(of, to []readSample) readRatioLine {
	values := make([]float64, min(len(of), len(to)))
	for i := range values {
		values[i] = r.figure(of[i]) / max(r.figure(to[i]), 1e-9)
	}
	line := readRatioLine{Value: median(values), Goal: r.goal, Is: "at_least"}
	line.Met = line.Value >= line.Goal
	if r.atMost {
		line.Is, line.Met = "at_most", line.Value <= line.Goal
	}
	return line
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func (r *readReport) print(to io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %d cores, Linux %s, %s; pinned: %v\n", r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, r.Machine.Go, r.Machine.Pinned)
	fmt.Fprintf(&text, "%-32s %-5s %9s %8s %8s %8s %8s %5s %6s\n", "", "", "req/s", "CPU µs", "p50 µs", "p99 µs", "p99.9 µs", "busy", "errors")
	for _, row := range r.Rows {
		fmt.Fprintf(&text, "%-32s %-5s %9.0f %8.2f %8.0f %8.0f %8.0f %5.2f %6d %s\n", row.Name, row.Transport, row.RPS, row.CPU,
			row.P50, row.P99, row.P999, row.Busy, row.Errors, row.ErrorText)
	}
	for _, ratio := range readRatios {
		for _, transport := range []string{"tcp", "unix"} {
			if line, ok := r.Ratios[ratio.name+"_"+transport]; ok {
				fmt.Fprintf(&text, "%-54s %6.2f, %s %g%s\n", ratio.name+"_"+transport, line.Value,
					strings.ReplaceAll(line.Is, "_", " "), line.Goal, map[bool]string{false: "  MISSED"}[line.Met])
			}
		}
	}
	for _, why := range r.Missing {
		fmt.Fprintln(&text, "left out:", why)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

func thisMachine(pinned bool) readMachine {
	m := readMachine{Cores: runtime.NumCPU(), Pinned: pinned, Go: runtime.Version(), CPU: runtime.GOARCH}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, after, _ := strings.Cut(string(text), "model name\t: ")
		m.CPU, _, _ = strings.Cut(after, "\n")
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	m.Redis, m.Nginx, m.H2load = firstLine("redis-server", "--version"), firstLine("nginx", "-v"), firstLine("h2load", "--version")
	return m
}

// firstLine is how a program names its version, "" if it is not here.
func firstLine(name, flag string) string {
	out, _ := exec.Command(name, flag).CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

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
	{"fixed body", "fixed", askPage(boardPath + "/top50"), 0, ""},
	{"rankcache top50 hot", "rankcache", askTop(hotPath, 50), 0, "hot"},
	{"nginx static", "nginx", askPage("/top50"), 0, ""},
	{"nginx static open_file_cache", "nginx", askPage("/cached/top50"), 0, ""},
	{"rankcache top50 all different", "rankcache", askDifferent, 0, "local"},
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
	{"plain go service", "plain", askTop("/top?limit=50", 50), 0, ""},
	{"plain go service, page kept 1s", "kept", askTop("/top?limit=50", 50), 0, ""},
	{"nginx proxy_cache 1s", "nginx proxy_cache", askTop("/top?limit=50", 50), 0, ""},
	{"varnish 1s", "varnish", askTop("/top?limit=50", 50), 0, ""},
	{"valkey zrevrange50", "valkey", askRange, 0, ""},
	{"redis zrevrange50", "redis", askRange, 0, ""},
	{"redis zrevrank", "redis", askRank, 0, ""},
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
	{"top50_all_different_cpu_vs_fixed_body", "rankcache top50 all different", "fixed body", cpuOf, 1.15, true},
	{"top50_hot_cpu_vs_fixed_body", "rankcache top50 hot", "fixed body", cpuOf, 1.15, true},
	{"top50_super_hot_cpu_vs_nginx", "rankcache top50 super-hot", "nginx static", cpuOf, 1, true},
	{"top50_super_hot_cpu_vs_nginx_open_file_cache", "rankcache top50 super-hot", "nginx static open_file_cache", cpuOf, 1, true},
	{"top50_super_hot_cpu_vs_nginx_proxy_cache", "rankcache top50 super-hot", "nginx proxy_cache 1s", cpuOf, 0.65, true},
	{"top50_super_hot_cpu_vs_varnish", "rankcache top50 super-hot", "varnish 1s", cpuOf, 0.65, true},
	{"top50_super_hot_cpu_vs_valkey", "rankcache top50 super-hot", "valkey zrevrange50", cpuOf, 0.65, true},
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
