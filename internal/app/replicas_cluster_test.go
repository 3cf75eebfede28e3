package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/doctor"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// TestReadsFromReplicasOfCluster: boards of all masters are read from their replicas, and doctor tells whether they are.
func TestReadsFromReplicasOfCluster(t *testing.T) {
	t.Parallel()
	addrs := testkit.RedisCluster(t)
	h := newFixtureOn(t, addrs[0]+"?addr="+strings.Join(addrs[1:], "&addr="), "--redis-mode", "cluster")
	h.common = append(h.common, "--redis-mode", "cluster")
	boards := make([]rankcache.BoardID, 8)
	for i := range boards {
		boards[i] = rankcache.BoardID(fmt.Sprint(testkit.Name(t), "_", i))
		h.give(t, boards[i], 5)
	}
	startListening(t, append([]string{"keep", "--health", "127.0.0.1:0", "--hot-source", "none"}, h.common...)...)
	r := &region{T: t, fixture: h}
	r.sidecar = h.serve(t, "--hot-promote-rate", "100000", "--redis-read", "replicas")
	r.sidecar.WaitReady(time.Minute)
	r.awaitReads(`"used":true`)
	for _, b := range boards {
		r.await(r.sidecar, top(b, ""), 200, `"total":5`, within(0, 5*time.Second))
		h.give(t, b, 6)
		r.await(r.sidecar, top(b, "&min_seq=6"), 200, `"total":6`, whatever)
	}
	testkit.Eventually(t, time.Minute, func() error { // boards with a seq that replicas have answered
		for _, b := range boards {
			r.await(r.sidecar, top(b, ""), 200, `"total":6`, within(0, 5*time.Second))
		}
		_, metrics := r.sidecar.Get("admin", "/metrics")
		if !strings.Contains(metrics, `rankcache_redis_read_answers_total{by="replica",reason=""}`) || !strings.Contains(metrics, "rankcache_redis_read_used 1\n") {
			return fmt.Errorf("no answer of a replica")
		}
		return nil
	})
	testkit.Eventually(t, time.Minute, func() error { // a node names no replica of which it has not heard an offset yet
		found, _, _ := examine(t, "--redis", h.common[1], "--redis-mode", "cluster", "--redis-read", "replicas", "--kafka", "127.0.0.1:1", "--timeout", "2s")
		if f := found["redis-read"]; f.Status != doctor.OK || !strings.Contains(f.Advice, "boards are read from replicas of 3 masters, the oldest ") {
			return fmt.Errorf("%+v", f)
		}
		return nil
	})
}

// TestDoctorOfReplica: it looks at --redis-read as sidecars do.
func TestDoctorOfReplica(t *testing.T) {
	t.Parallel()
	args := servers.RedisOptions{Args: []string{"--repl-diskless-sync-delay", "0"}}
	master, replica := testkit.StartRedis(t, args), testkit.StartRedis(t, args)
	near, far := master.Client(), replica.Client()
	t.Cleanup(func() { near.Close(); far.Close() })
	host, port, _ := strings.Cut(master.Addr(), ":")
	must(t, far.ReplicaOf(t.Context(), host, port).Err())
	must(t, replica.Do(t.Context(), "ACL", "SETUSER", "narrow", "on", ">hush", "~{rankcache:states:*}:written", "+getrange", "+info", "+role"))
	must(t, replica.Do(t.Context(), "ACL", "SETUSER", "blind", "on", ">hush", "~*", "+@all", "-role"))
	check := func(read, want string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			if !strings.Contains(want, "no keeper") {
				must(t, near.Set(t.Context(), "{rankcache:states:default}:written", time.Now().UnixMicro(), 0).Err())
			}
			found, code, text := examine(t, "--redis", "redis://"+master.Addr(), "--redis-read", "redis://"+read, "--kafka", "127.0.0.1:1", "--timeout", "1s")
			status, advice, _ := strings.Cut(want, ": ")
			if f := found["redis-read"]; string(f.Status) != status || !strings.Contains(f.Advice, advice) || strings.Contains(text, "hush") || code != cli.ExitFailed {
				return fmt.Errorf("%+v, want %s", f, want)
			}
			return nil
		})
	}
	check(replica.Addr(), "warn: boards are read from the primary: no keeper has written a time")
	check(replica.Addr(), "ok: boards are read from a replica of "+master.Addr())
	check("narrow:hush@"+replica.Addr(), "fail: this user may not read boards from the replica")
	check("blind:hush@"+replica.Addr(), "fail: boards are read from the primary: this user may not use INFO, ROLE or GETRANGE")
	check(master.Addr(), "fail: boards are read from the primary: --redis-read leads to a master")
	check("127.0.0.1:1", "fail: boards are read from the primary: no replica answers")
}
