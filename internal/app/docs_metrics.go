package app

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/pflag"

	"rankcache/ledger/reconcile"
	"rankcache/sidecar/adminapi"
)

const metricsIntro = `# Metrics

Served as ` + "`/metrics`" + ` on the health port (` + "`serve`" + ` 8972, ` + "`write`" + ` 8974, ` + "`ledger`" + ` 8976, ` + "`reconcile`" + ` 8978, ` + "`poll`" + ` 8975, ` + "`controller`" + ` 8977) and, by ` + "`serve`" + `, on
the admin port. A metric with labels appears with its first event. ` + "`go_…`" + ` and ` + "`process_…`" + ` are
those of Prometheus's Go client.
`

// metricDoc is one metric as the reference lists it.
type metricDoc struct{ name, kind, labels, help string }

// writeMetricsReference writes docs/METRICS.md from the registries of processes
// that are built with every optional part and never run.
func writeMetricsReference(to io.Writer) error {
	var text bytes.Buffer
	for _, p := range []struct {
		command string
		build   func() (*registry, error)
	}{{"serve", serveRegistry}, {"write", writeRegistry}, {"ledger", ledgerRegistry}, {"reconcile", reconcileRegistry}, {"poll", pollRegistry}, {"controller", controllerRegistry}} {
		metrics, err := p.build()
		if err != nil {
			return fmt.Errorf("metrics of %s: %w", p.command, err)
		}
		fmt.Fprintf(&text, "\n## rankcache %s\n\n", p.command)
		tableRow(&text, "metric", "type", "unit", "labels", "what")
		tableRow(&text, "---", "---", "---", "---", "---")
		for _, d := range describeAll(metrics) {
			tableRow(&text, "`"+d.name+"`", d.kind, unitOf(d.name), cmp.Or(d.labels, "-"), noTags.Replace(d.help))
		}
	}
	return writeReference(to, metricsIntro, text.String())
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

// describeAll returns the metrics of the registry by name.
func describeAll(r *registry) (docs []metricDoc) {
	for _, c := range r.registered() {
		descs := make(chan *prometheus.Desc)
		go func() { c.Describe(descs); close(descs) }()
		for d := range descs {
			docs = append(docs, describe(c, d))
		}
	}
	slices.SortFunc(docs, func(a, b metricDoc) int { return cmp.Compare(a.name, b.name) })
	return slices.Compact(docs) // several collectors may share a metric, distinguished by constant labels
}

// descText parses the text of a Desc, whose fields are not exported.
var descText = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), (?:unit: "[^"]*", )?constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

func describe(c prometheus.Collector, d *prometheus.Desc) metricDoc {
	part := descText.FindStringSubmatch(d.String())
	if part == nil {
		return metricDoc{name: d.String(), kind: "unknown"}
	}
	name, _ := strconv.Unquote(part[1])
	help, _ := strconv.Unquote(part[2])
	labels := constLabel.ReplaceAllString(part[3], "$1")
	labels = strings.Join(slices.DeleteFunc([]string{labels, part[4]}, func(s string) bool { return s == "" }), ",")
	return metricDoc{name, kindOf(c, d), strings.ReplaceAll(labels, ",", ", "), help}
}

var constLabel = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)

// kindOf returns the type of the metric d of c: by the type of c, which is all
// there is of a vector without series, or else by a sample. A collector of our
// own that has no series makes counters that end in _total, as Prometheus wants
// it, and gauges.
func kindOf(c prometheus.Collector, d *prometheus.Desc) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	}
	samples := make(chan prometheus.Metric)
	go func() { c.Collect(samples); close(samples) }()
	kind := "gauge"
	if strings.Contains(d.String(), `_total", help`) {
		kind = "counter"
	}
	for m := range samples {
		var sample dto.Metric
		if m.Desc().String() == d.String() && m.Write(&sample) == nil {
			kind = kindOfSample(&sample)
		}
	}
	return kind
}

func kindOfSample(m *dto.Metric) string {
	switch {
	case m.Counter != nil:
		return "counter"
	case m.Gauge != nil:
		return "gauge"
	case m.Histogram != nil:
		return "histogram"
	}
	return "unknown"
}

// unitOf reads the unit from a metric's name, as Prometheus wants it there.
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, unit := range []string{"seconds", "bytes", "ratio"} {
		if strings.HasSuffix(name, "_"+unit) {
			return unit
		}
	}
	return "count"
}
