package load

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"
)

// sent is one line of h2load's log.
type sent struct{ at, took time.Duration }

// readLog takes the latencies from h2load's log: start in µs since 1970, status, µs until the end of the reply.
//
// Each connection asks once in a period. One whose server stalls sends what was due meanwhile when it has its answer,
// and h2load counts from then; here a request that is late by a period or more counts from when it was due, and one
// that was never sent, or not answered, has waited until the end. What is late by less is the load's own lateness. The
// first request of each connection, sent while the others connect, tells its phase and counts for nothing.
func (r *Result) readLog(log []byte, cfg *Config) error {
	var all []sent
	for line := range bytes.Lines(log) {
		var at, took int64
		var status int
		if _, err := fmt.Sscan(string(line), &at, &status, &took); err != nil {
			return fmt.Errorf("h2load's log has the line %.80q: %w", line, err)
		}
		if status > 0 {
			all = append(all, sent{time.Duration(at) * time.Microsecond, time.Duration(took) * time.Microsecond})
		}
	}
	r.charge(all, cfg)
	return nil
}

// charge sets the latencies from what was sent in a run of cfg.
func (r *Result) charge(all []sent, cfg *Config) {
	n := cfg.Connections
	slices.SortFunc(all, func(a, b sent) int { return cmp.Compare(a.at, b.at) })
	var begin time.Duration
	if len(all) > 0 {
		begin = all[0].at
	}
	for len(all) < n { // of a connection without any answer
		all = append(all, sent{at: begin})
	}
	period := time.Duration(float64(n) / cfg.Rate * float64(time.Second))
	due := func(i int) time.Duration { return all[i%n].at + time.Duration(i/n)*period }
	for i := n; i < len(all); i++ {
		took := all[i].took
		if late := all[i].at - due(i); late >= period {
			took += late
		}
		r.latencies = append(r.latencies, took)
	}
	for i, end := len(all), begin+cfg.Window; due(i)+period <= end; i++ {
		r.Unanswered++
		r.latencies = append(r.latencies, end-due(i))
	}
	slices.Sort(r.latencies)
}
