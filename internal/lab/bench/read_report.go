package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
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
	P50       float64 `json:"p50_us"` // at half of the full rate
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
	values := make([]float64, len(of))
	for i := range of {
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
	m.Redis, m.Nginx = firstLine("redis-server", "--version"), firstLine("nginx", "-v")
	return m
}

// firstLine is how a program names its version, "" if it is not here.
func firstLine(name, flag string) string {
	out, _ := exec.Command(name, flag).CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}
