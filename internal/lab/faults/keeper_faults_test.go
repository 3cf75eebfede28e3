package faults

import (
	"errors"
	"slices"
	"strings"
)

// keeperFaults are those of Redis under a sidecar that hears a keeper instead of looking itself.
func keeperFaults() []fault {
	return []fault{{
		name: "Redis with Sentinel fails over and loses writes, with a keeper", losesWrites: true, due: redisAway,
		prepare: func(w *env) { w.useSentinel(); w.startKeeper() },
		inject:  func(w *env) { w.hearsKeeper(); w.failOverSentinel(50) },
	}, {
		name:    "Redis Cluster: a master is killed and left dead, with a keeper",
		prepare: func(w *env) { w.useCluster(); w.startKeeper() },
		inject:  func(w *env) { w.hearsKeeper(); w.killMaster() },
	}}
}

// startKeeper starts a keeper, which waits for the topics of its boards as a sidecar does.
func (w *env) startKeeper() {
	w.Helper()
	args := []string{"keep", "--health", "127.0.0.1:0", "--rooms", w.rooms, "--redis", "redis://" + w.redis.Addr(), "--redis-timeout", "900ms", "--kafka", w.seeds, "--give-up-after", "20s"}
	startListening(w, w.cgroup, slices.Concat(args, w.common)...)
}

// hearsKeeper waits until the sidecar has compared boards with a keeper's value.
func (w *env) hearsKeeper() {
	w.Helper()
	const series = `rankcache_replay_readings_total{source="keeper"} `
	w.eventually(func() error {
		_, text := w.sidecar().Get("health", "/metrics")
		if !strings.Contains(text, series) || strings.Contains(text, series+"0\n") {
			return errors.New("the sidecar has heard of no keeper")
		}
		return nil
	})
}
