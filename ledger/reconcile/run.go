package reconcile

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"rankcache/internal/metric"
	"rankcache/internal/tick"
)

const (
	// every is the time between comparisons of what is old enough since, wholeEvery between those of all of window.
	every, wholeEvery = 5 * time.Second, time.Minute
	window            = 10 * time.Minute
	logEvery          = time.Minute
)

// Runner compares again and again.
type Runner struct {
	Reconciler *Reconciler
	Reached    func(context.Context) error // returns once the ledger has all commands of now
	Log        *slog.Logger

	metrics *metrics
	limit   rate.Sometimes
	done    time.Time // up to where orders were compared
	whole   time.Time // when the whole window was
}

type metrics struct {
	rows        *prometheus.CounterVec // by side
	differences *prometheus.GaugeVec   // by kind
	posted      prometheus.Counter
	failures    prometheus.Counter
	success     prometheus.Gauge
}

// Register registers the runner's metrics, before it runs.
func (r *Runner) Register(reg prometheus.Registerer) {
	set := metric.New(reg, "reconcile_")
	defer set.Must()
	r.metrics = &metrics{
		rows:        set.Counters("rows_total", "Orders that were compared, by side: books, ledger.", "side"),
		differences: set.Gauges("differences", "Orders of the last ten minutes that differ, by kind: missing (in the ledger), different, extra (not in the books), bad (no command could be like it).", "kind"),
		posted:      set.Counter("posted_total", "Orders that were missing in the ledger and posted as commands."),
		failures:    set.Counter("failures_total", "Comparisons that failed, or were put off because the ledger did not have all commands."),
		success:     set.Gauge("last_success_timestamp_seconds", "When books and ledger were compared last, Unix time; 0: never."),
	}
	for _, kind := range Kinds {
		r.metrics.differences.WithLabelValues(kind)
	}
}

// Run compares until ctx is done. What fails is tried again.
func (r *Runner) Run(ctx context.Context) error {
	r.limit = rate.Sometimes{Interval: logEvery, First: 1}
	for range tick.NowAndEvery(ctx, every) {
		if err := r.round(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.metrics.failures.Inc()
			r.limit.Do(func() { r.Log.Warn("books and ledger are not compared: the next attempt is in 5 s", "err", err) })
		}
	}
	return nil
}

// round compares what has become old enough since the last round, or the whole window.
func (r *Runner) round(ctx context.Context, now time.Time) error {
	if err := r.Reached(ctx); err != nil {
		return err
	}
	from, to, whole := r.done, now.Add(-Settling), now.Sub(r.whole) >= wholeEvery
	if whole {
		from = now.Add(-window)
	}
	report, err := r.Reconciler.Compare(ctx, from.UnixMilli(), to.UnixMilli(), now)
	r.metrics.posted.Add(float64(report.Posted))
	if err != nil {
		return err // the gauges keep what the last comparison had
	}
	r.note(report, whole)
	if r.done = to; whole {
		r.whole = now
	}
	r.metrics.success.Set(float64(now.Unix()))
	return nil
}

// note counts what was found. A part of the window adds to what the whole had.
func (r *Runner) note(report *Report, whole bool) {
	r.metrics.rows.WithLabelValues("books").Add(float64(report.Books))
	r.metrics.rows.WithLabelValues("ledger").Add(float64(report.Ledger))
	for kind, n := range report.Counts {
		if whole {
			r.metrics.differences.WithLabelValues(kind).Set(0)
		}
		r.metrics.differences.WithLabelValues(kind).Add(float64(n))
	}
	if report.Differs() == 0 {
		return
	}
	for _, d := range report.Differences[:min(len(report.Differences), 3)] {
		r.Log.Warn("an order differs", "kind", d.Kind, "order", d.Order, "board", d.Board, "class", d.Class, "member", d.Member, "books", d.Books, "ledger", d.Ledger, "posted", d.Posted, "why", d.Why)
	}
	r.Log.Warn("books and ledger differ", "from", report.From, "to", report.To, "missing", report.Counts[Missing], "posted", report.Posted,
		"different", report.Counts[Different], "extra", report.Counts[Extra], "bad", report.Counts[Bad])
}
