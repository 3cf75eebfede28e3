package app

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"rankcache/ledger/reconcile"
	"rankcache/sidecar/adminapi"
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
		build   func() (*registry, error)
	}{{"serve", serveRegistry}, {"write", writeRegistry}, {"ledger", ledgerRegistry}, {"reconcile", reconcileRegistry}, {"poll", pollRegistry}, {"controller", controllerRegistry}} {
		r, err := p.build()
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", p.command, err)
		}
		all = append(all, Metrics{p.command, r, r.registered()})
	}
	return all, nil
}

func serveRegistry() (*registry, error) {
	o := &serveOptions{}
	o.register(pflag.NewFlagSet("serve", pflag.ContinueOnError))
	o.data, o.admin, o.health = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	o.profiles.redisKey = "profile:<member>"
	o.resp.addr = "127.0.0.1:0"
	o.rpc.addr = "127.0.0.1:0"
	o.snapshots.dir = "boards" // is not touched before the first save
	s, err := newSidecar(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	s.close()
	return s.registry, nil
}

func writeRegistry() (*registry, error) {
	o := &writeOptions{}
	o.register(pflag.NewFlagSet("write", pflag.ContinueOnError))
	o.scores, o.health = "127.0.0.1:0", "127.0.0.1:0"
	w, err := newWriter(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	w.listeners.close()
	return w.registry, w.redis.Close()
}

func ledgerRegistry() (*registry, error) {
	o := &ledgerOptions{}
	o.register(pflag.NewFlagSet("ledger", pflag.ContinueOnError))
	o.http, o.reads = "127.0.0.1:0", true
	l, err := newLedger(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	l.listeners.close()
	return l.registry, l.close()
}

func reconcileRegistry() (*registry, error) {
	return runnerRegistry(&reconcile.Runner{}, adminapi.NewReadiness(nil, nil)), nil
}

func pollRegistry() (*registry, error) {
	o := &pollCommandOptions{}
	flags := pflag.NewFlagSet("poll", pflag.ContinueOnError)
	o.commonOptions.register(flags)
	o.poll.register(flags)
	client, err := o.dialRedis()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	metrics := newRegistry()
	registerProcess(metrics, adminapi.NewReadiness(nil, nil))
	_, err = o.poll.newPoller(client, o.names, slog.New(slog.DiscardHandler), metrics)
	return metrics, err
}

func controllerRegistry() (*registry, error) {
	o := &controllerOptions{}
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.register(flags)
	err := errors.Join(flags.Set("finals", "file:///finals"), flags.Set("database", "postgres://ledger"))
	if err != nil {
		return nil, err
	}
	books, err := o.ledger()
	if err != nil {
		return nil, err
	}
	defer books.Close()
	client, err := o.dialRedis()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	metrics := newRegistry()
	registerProcess(metrics, adminapi.NewReadiness(nil, nil))
	_, _, err = o.build(client, books, slog.New(slog.DiscardHandler), metrics)
	return metrics, err
}
