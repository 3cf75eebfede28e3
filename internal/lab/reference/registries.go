package reference

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"rankcache/internal/cli"
	"rankcache/internal/run"
	"rankcache/internal/serve"
	"rankcache/ledger/reconcile"
	"rankcache/sidecar/adminapi"
)

// processMetrics are the metrics of one command's processes.
type processMetrics struct {
	Command    string
	Registry   prometheus.Gatherer
	Registered []prometheus.Collector // without Go's and the process's
}

// allMetrics returns the metrics of each long-running command, in the order of the manual.
// It builds each process with every optional part and runs none.
func allMetrics() (all []processMetrics, err error) {
	for _, p := range []struct {
		command string
		build   func() (*cli.Registry, error)
	}{{"serve", serveRegistry}, {"keep", keepRegistry}, {"write", writeRegistry}, {"ledger", run.LedgerRegistry}, {"reconcile", reconcileRegistry}, {"poll", pollRegistry}, {"controller", controllerRegistry}} {
		r, err := p.build()
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", p.command, err)
		}
		all = append(all, processMetrics{p.command, r, r.Registered()})
	}
	return all, nil
}

// anyPort, and a broker that is never called.
const anyPort, noBroker = "127.0.0.1:0", "kafka:9092"

// serveRegistry returns the metrics of rankcache serve with every optional part, which does not run.
func serveRegistry() (*cli.Registry, error) {
	s, err := serve.NewSidecar([]string{"--data", anyPort, "--admin", anyPort, "--health", anyPort, "--resp", anyPort, "--rpc", anyPort,
		"--profile-redis-key", "profile:<member>", "--redis-read", "redis://127.0.0.1:6379", "--snapshot-dir", os.TempDir(), "--snapshots", "file:///boards"}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return s.Registry, nil
}

// keepRegistry returns the metrics of rankcache keep, which does not run.
func keepRegistry() (*cli.Registry, error) {
	k, err := serve.NewKeeper([]string{"--health", anyPort, "--snapshots", "file:///boards"}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return k.Registry, nil
}

// writeRegistry returns the metrics of rankcache write, which does not run.
func writeRegistry() (*cli.Registry, error) {
	w, err := run.NewWriter([]string{"--kafka", noBroker, "--scores", anyPort, "--health", anyPort}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return w.Registry, nil
}

// processRegistry returns the metrics that each process has.
func processRegistry() *cli.Registry {
	metrics := cli.NewRegistry()
	new(cli.Options).RegisterProcess(metrics, adminapi.NewReadiness(nil, nil))
	return metrics
}

// reconcileRegistry returns the metrics of rankcache reconcile, which does not run.
func reconcileRegistry() (*cli.Registry, error) {
	metrics := processRegistry()
	new(reconcile.Runner).Register(metrics)
	return metrics, nil
}

// pollRegistry returns the metrics of rankcache poll, which does not run.
func pollRegistry() (*cli.Registry, error) {
	var o cli.Options
	var hot cli.HotKeyOptions
	flags := pflag.NewFlagSet("poll", pflag.ContinueOnError)
	o.Register(flags)
	hot.Register(flags)
	client, err := o.DialRedis()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	metrics := processRegistry()
	_, err = hot.NewPoller(client, o.Names, slog.New(slog.DiscardHandler), metrics)
	return metrics, err
}

// controllerRegistry returns the metrics of rankcache controller with every optional part, which does not run.
func controllerRegistry() (*cli.Registry, error) {
	o := &run.ControllerOptions{}
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.Register(flags)
	err := errors.Join(flags.Set("kafka", noBroker), flags.Set("finals", "file:///finals"), flags.Set("database", "postgres://ledger"))
	if err != nil {
		return nil, err
	}
	books, err := o.Ledger()
	if err != nil {
		return nil, err
	}
	defer books.Close()
	client, err := o.DialRedis()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	metrics := processRegistry()
	_, _, err = o.Build(client, books, slog.New(slog.DiscardHandler), metrics)
	return metrics, err
}
