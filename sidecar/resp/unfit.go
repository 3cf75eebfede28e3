package resp

import (
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache/wire"
)

const maxUnfit = 100 // of how many keys it is told that they are no boards

// unfit tells of keys that are read as boards are, and can't be one: their reads pass on for ever.
type unfit struct {
	names wire.Names
	log   *slog.Logger
	reads prometheus.Counter
	mu    sync.Mutex
	told  map[string]bool
}

func newUnfit(names wire.Names, log *slog.Logger) *unfit {
	return &unfit{names: names, log: log, told: make(map[string]bool), reads: prometheus.NewCounter(prometheus.CounterOpts{Name: "rankcache_resp_unfit_reads_total",
		Help: "Reads over the RESP listener that were passed on because their key can be no board's id: the log names the keys."})}
}

func (u *unfit) note(key []byte) {
	err := u.names.UnfitKey(text(key))
	if err == nil {
		return
	}
	u.reads.Inc()
	u.mu.Lock()
	first := len(u.told) < maxUnfit && len(key) <= maxKey && !u.told[text(key)]
	if first {
		u.told[string(key)] = true
	}
	u.mu.Unlock()
	if first {
		u.log.Warn("reads of a key pass on to Redis: it can be no board's id", "key", string(key), "err", err)
	}
}
