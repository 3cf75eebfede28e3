package run

import (
	"errors"
	"log/slog"

	"github.com/spf13/pflag"

	"rankcache/internal/cli"
	"rankcache/ledger/reconcile"
	"rankcache/sidecar/adminapi"
)

// WriteRegistry returns the metrics of rankcache write, which does not run.
func WriteRegistry() (*cli.Registry, error) {
	o := &WriteOptions{}
	o.Register(pflag.NewFlagSet("write", pflag.ContinueOnError))
	o.scores, o.health = "127.0.0.1:0", "127.0.0.1:0"
	w, err := newWriter(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	w.Listeners.Close()
	return w.registry, w.redis.Close()
}

// LedgerRegistry returns the metrics of rankcache ledger, which does not run.
func LedgerRegistry() (*cli.Registry, error) {
	o := &LedgerOptions{}
	o.Register(pflag.NewFlagSet("ledger", pflag.ContinueOnError))
	o.http, o.reads = "127.0.0.1:0", true
	l, err := newLedger(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	l.listeners.Close()
	return l.registry, l.close()
}

// ReconcileRegistry returns the metrics of rankcache reconcile, which does not run.
func ReconcileRegistry() (*cli.Registry, error) {
	return runnerRegistry(&reconcile.Runner{}, adminapi.NewReadiness(nil, nil)), nil
}

// PollRegistry returns the metrics of rankcache poll, which does not run.
func PollRegistry() (*cli.Registry, error) {
	o := &PollOptions{}
	flags := pflag.NewFlagSet("poll", pflag.ContinueOnError)
	o.Options.Register(flags)
	o.poll.Register(flags)
	client, err := o.DialRedis()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	metrics := cli.NewRegistry()
	cli.RegisterProcess(metrics, adminapi.NewReadiness(nil, nil))
	_, err = o.poll.NewPoller(client, o.Names, slog.New(slog.DiscardHandler), metrics)
	return metrics, err
}

// ControllerRegistry returns the metrics of rankcache controller, which does not run.
func ControllerRegistry() (*cli.Registry, error) {
	o := &ControllerOptions{}
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.Register(flags)
	err := errors.Join(flags.Set("finals", "file:///finals"), flags.Set("database", "postgres://ledger"))
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
	metrics := cli.NewRegistry()
	cli.RegisterProcess(metrics, adminapi.NewReadiness(nil, nil))
	_, _, err = o.Build(client, books, slog.New(slog.DiscardHandler), metrics)
	return metrics, err
}
