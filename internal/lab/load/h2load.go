package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// runH2load has h2load send the question.
func runH2load(ctx context.Context, cfg *Config) (*Result, error) {
	dir, err := os.MkdirTemp("", "rankcache-h2load-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	args, err := h2loadArgs(cfg, dir)
	if err != nil {
		return nil, err
	}
	out, err := output(ctx, "h2load", args...)
	if err != nil {
		return nil, err
	}
	r, err := readH2load(out, cfg)
	if err == nil && cfg.Rate > 0 {
		var log []byte
		if log, err = os.ReadFile(filepath.Join(dir, "log")); err == nil {
			err = r.readLog(log, cfg)
		}
	}
	return r, err
}

// h2loadArgs writes the files that h2load reads into dir.
func h2loadArgs(cfg *Config, dir string) (args []string, err error) {
	q, host := &cfg.Question, cfg.Target.Addr
	args = []string{"-t1", "--h1", fmt.Sprint("-c", cfg.Connections)}
	if cfg.Target.Network == "unix" {
		host = "localhost"
		args = append(args, "-B", "unix:"+cfg.Target.Addr)
	}
	if cfg.Calls > 0 {
		args = append(args, fmt.Sprint("-n", cfg.Calls))
	} else {
		args = append(args, "-D", fmt.Sprintf("%dms", cfg.Window.Milliseconds()))
	}
	if cfg.Rate > 0 {
		args = append(args, fmt.Sprint("--rps=", cfg.Rate/float64(cfg.Connections)), "--log-file="+filepath.Join(dir, "log"))
	}
	for _, field := range q.Fields {
		args = append(args, "-H", field)
	}
	if q.Body != nil {
		args = append(args, "-d", filepath.Join(dir, "body"))
		err = os.WriteFile(filepath.Join(dir, "body"), q.Body, 0o600)
	}
	uris := "http://" + host + strings.Join(q.Paths, "\nhttp://"+host) + "\n"
	return append(args, "-i", filepath.Join(dir, "uris")), errors.Join(err, os.WriteFile(filepath.Join(dir, "uris"), []byte(uris), 0o600))
}

// What h2load prints at its end.
var (
	h2loadTime    = regexp.MustCompile(`(?m)^finished in ([0-9.]+[mu]?s),`)
	h2loadCounts  = regexp.MustCompile(`(?m)^requests: .*?(\d+) done, .* (\d+) errored, (\d+) timeout`)
	h2loadStatus  = regexp.MustCompile(`(?m)^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`)
	h2loadTraffic = regexp.MustCompile(`(?m)^traffic: .* \((\d+)\) data$`)
)

// readH2load reads what h2load printed. Statuses are told by their first digit, and bodies by how many bytes they
// have together.
func readH2load(out string, cfg *Config) (*Result, error) {
	var numbers []int
	took := h2loadTime.FindStringSubmatch(out)
	for _, line := range []*regexp.Regexp{h2loadCounts, h2loadStatus, h2loadTraffic} {
		found := line.FindStringSubmatch(out)
		if found == nil || took == nil {
			return nil, fmt.Errorf("h2load prints what is not understood: %.500q", out)
		}
		for _, text := range found[1:] {
			n, _ := strconv.Atoi(text) // digits
			numbers = append(numbers, n)
		}
	}
	window, err := time.ParseDuration(took[1])
	if err != nil || window <= 0 {
		return nil, fmt.Errorf("h2load took %q (%v)", took[1], err)
	}
	done, lost, statuses, data := numbers[0], numbers[1]+numbers[2], numbers[3:7], numbers[7]
	q := &cfg.Question
	r := &Result{Requests: statuses[q.Status/100-2], Window: window, Errors: lost}
	for i, n := range statuses {
		if i != q.Status/100-2 {
			r.Errors += n
		}
	}
	switch {
	case r.Errors > 0:
		r.Error = fmt.Errorf("%d lost, %v answers with status 2xx to 5xx, want %d", lost, statuses, q.Status)
	case q.Length > 0 && // the last body of each connection may have come in part
		(data < done*q.Length || data > (done+cfg.Connections)*q.Length):
		r.Errors, r.Requests = done, 0
		r.Error = fmt.Errorf("%d bodies have %d bytes, want %d each", done, data, q.Length)
	}
	return r, nil
}
