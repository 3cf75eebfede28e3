package cli

import (
	"context"
	"crypto/x509"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache/internal/tick"
	"rankcache/internal/watch"
)

const watchEvery = 10 * time.Second // how often files are looked at that nothing uses meanwhile

// watched are the files of a process that are read again. Its methods may be called concurrently.
type watched struct {
	mu    sync.Mutex
	files []watch.Any
	log   *slog.Logger // nil: nothing is logged
}

func (w *watched) Watch(files ...watch.Any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files = append(w.files, files...)
	for _, f := range files {
		f.LogTo(w.log)
	}
}

// LogTo has what becomes of the files logged.
func (w *watched) LogTo(log *slog.Logger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = log
	for _, f := range w.files {
		f.LogTo(log)
	}
}

func (w *watched) all() []watch.Any {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.files)
}

// FileStatuses returns what operators see of all files, each of which is looked at.
func (w *watched) FileStatuses() []watch.Status {
	all := []watch.Status{}
	for _, f := range w.all() {
		all = append(all, f.Status())
	}
	return all
}

func (w *watched) loadFiles() {
	for _, f := range w.all() {
		_ = f.Load()
	}
}

// follow looks at the files until ctx is done.
func (w *watched) follow(ctx context.Context) {
	for range tick.Every(ctx, watchEvery) {
		w.FileStatuses()
	}
}

// authorities returns those of a file, read now, or nil without one.
func (w *watched) authorities(setting, path string) (func() *x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	file := watch.Certificates(setting, path)
	if err := file.Load(); err != nil {
		return nil, err
	}
	w.Watch(file)
	return watch.RootsOf(file), nil
}

// watchKafka adds the files that librdkafka reads when a client is made.
func (w *watched) watchKafka(settings map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		named := strings.HasSuffix(key, ".location") || strings.HasSuffix(key, ".file") || strings.HasSuffix(key, ".keytab")
		if path := settings[key]; named && path != "" && path != "probe" {
			file := watch.Opaque(kafkaPrefix+key, path)
			file.Once = true
			_ = file.Load() // librdkafka tells
			w.Watch(file)
		}
	}
}

var (
	certificateEnd = prometheus.NewDesc("rankcache_certificate_end_seconds", "When the first certificate of a file ends, in Unix time.", []string{"setting"}, nil)
	fileNotInForce = prometheus.NewDesc("rankcache_file_not_in_force", "1 while what a watched file has is not what is used: it can't be read, or only a restart reads it.", []string{"setting"}, nil)
)

// Describe implements [prometheus.Collector].
func (w *watched) Describe(to chan<- *prometheus.Desc) { to <- certificateEnd; to <- fileNotInForce }

// Collect implements [prometheus.Collector].
func (w *watched) Collect(to chan<- prometheus.Metric) {
	seen := map[string]bool{}
	for _, s := range w.FileStatuses() {
		if seen[s.Setting] { // two connections of one setting
			continue
		}
		seen[s.Setting] = true
		bad := 0.0
		if s.Error != "" {
			bad = 1
		}
		to <- prometheus.MustNewConstMetric(fileNotInForce, prometheus.GaugeValue, bad, s.Setting)
		if s.Ends != nil {
			to <- prometheus.MustNewConstMetric(certificateEnd, prometheus.GaugeValue, float64(s.Ends.Unix()), s.Setting)
		}
	}
}
