package reference

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const metricsIntro = `# Metrics

Served as ` + "`/metrics`" + ` on the health port (` + "`serve`" + ` 8972, ` + "`keep`" + ` 8979, ` + "`write`" + ` 8974, ` + "`ledger`" + ` 8976, ` + "`reconcile`" + ` 8978, ` + "`poll`" + ` 8975, ` + "`controller`" + ` 8977) and, by ` + "`serve`" + `, on
the admin port. The name ends with the unit (` + "`_seconds`, `_bytes`, `_ratio`" + `); the others are counts. A metric with labels
appears with its first event. ` + "`go_…`" + ` and ` + "`process_…`" + ` are those of Prometheus's Go client.
`

// metricDoc is one metric as the reference lists it.
type metricDoc struct{ name, kind, labels, help string }

// writeMetrics writes docs/METRICS.md.
func writeMetrics(to io.Writer) error {
	processes, err := allMetrics()
	if err != nil {
		return err
	}
	of := map[metricDoc][]string{}
	for _, p := range processes {
		for _, d := range describeAll(p.Registered) {
			of[d] = append(of[d], p.Command)
		}
	}
	var text bytes.Buffer
	fmt.Fprint(&text, "\n## Several processes\n\n")
	tableRow(&text, "metric", "type", "labels", "processes", "what")
	tableRow(&text, "---", "---", "---", "---", "---")
	for _, d := range slices.SortedFunc(maps.Keys(of), compareMetrics) {
		if len(of[d]) > 1 {
			tableRow(&text, "`"+d.name+"`", d.kind, cmp.Or(d.labels, "-"), strings.Join(of[d], " "), noTags.Replace(d.help))
		}
	}
	for _, p := range processes {
		fmt.Fprintf(&text, "\n## rankcache %s\n\n", p.Command)
		tableRow(&text, "metric", "type", "labels", "what")
		tableRow(&text, "---", "---", "---", "---")
		for _, d := range describeAll(p.Registered) {
			if len(of[d]) == 1 {
				tableRow(&text, "`"+d.name+"`", d.kind, cmp.Or(d.labels, "-"), noTags.Replace(d.help))
			}
		}
	}
	return writeSections(to, metricsIntro, text.String())
}

func compareMetrics(a, b metricDoc) int { return cmp.Compare(a.name, b.name) }

// describeAll returns the metrics of the collectors, by name.
func describeAll(collectors []prometheus.Collector) (docs []metricDoc) {
	for _, c := range collectors {
		descs := make(chan *prometheus.Desc)
		go func() { c.Describe(descs); close(descs) }()
		for d := range descs {
			docs = append(docs, describe(c, d))
		}
	}
	slices.SortFunc(docs, compareMetrics)
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
