package app

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache/internal/cli"
	"rankcache/internal/run"
	"rankcache/internal/serve"
)

// Metrics are the metrics of one command's processes.
type Metrics struct {
	Command    string
	Registry   prometheus.Gatherer
	Registered []prometheus.Collector // without Go's and the process's
}

// AllMetrics returns the metrics of each long-running command, in the order of the manual.
// It builds each process with every optional part and runs none.
func AllMetrics() (all []Metrics, err error) {
	for _, p := range []struct {
		command string
		build   func() (*cli.Registry, error)
	}{{"serve", serve.Registry}, {"keep", serve.KeepRegistry}, {"write", run.WriteRegistry}, {"ledger", run.LedgerRegistry}, {"reconcile", run.ReconcileRegistry}, {"poll", run.PollRegistry}, {"controller", run.ControllerRegistry}} {
		r, err := p.build()
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", p.command, err)
		}
		all = append(all, Metrics{p.command, r, r.Registered()})
	}
	return all, nil
}
