package app

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// TestReadsFromReplica: small boards and hot pages are read from a replica, the answers are those of the primary, and what a caller asks for
// beyond the replica comes from the primary, as all does while the link is cut.
func TestReadsFromReplica(t *testing.T) {
	t.Parallel()
	args := servers.RedisOptions{Args: []string{"--repl-diskless-sync-delay", "0"}}
	master, replica := testkit.StartRedis(t, args).Addr(), testkit.StartRedis(t, args).Addr()
	h := newFixtureOn(t, master)
	r := &region{T: t, fixture: h, master: master, far: redis.NewClient(&redis.Options{Addr: replica, Protocol: 2})}
	near := redis.NewClient(&redis.Options{Addr: master, Protocol: 2})
	t.Cleanup(func() { r.far.Close(); near.Close() })
	hot := rankcache.BoardID(testkit.Name(t))
	h.writeRooms(t, fmt.Sprintf("boards:\n- {match: %q, mode: super-hot}\n- {match: %q, mode: hot}\n", h.star, hot))
	for _, board := range []rankcache.BoardID{h.star, h.small, hot} {
		h.give(t, board, 5)
	}
	r.follow(master)
	small := []string{"--hot-promote-rate", "100000"} // however often it is read
	alone := h.serve(t, small...)
	r.sidecar = h.serve(t, append(small, "--redis-read", "redis://"+replica)...)
	for _, c := range []*child{alone, r.sidecar} {
		c.WaitReady(time.Minute)
	}
	r.awaitReads(`"reason":"no_keeper"`) // and the primary is read
	r.await(r.sidecar, top(h.small, ""), 200, `"total":5`, within(0, time.Second))
	startListening(t, append([]string{"keep", "--health", "127.0.0.1:0", "--hot-source", "none"}, h.common...)...)
	r.awaitReads(`"used":true`)

	const reads = 400
	used := map[*child]primaryLoad{}
	for _, c := range []*child{alone, r.sidecar} {
		must(t, near.ConfigResetStat(t.Context()).Err())
		for i := range reads {
			r.await(c, top(h.small, fmt.Sprintf("&start=%d", i%5)), 200, `"source":"redis"`, within(0, 5*time.Second))
			r.await(c, top(hot, ""), 200, `"total":5`, whatever)
			r.await(c, "/v1/boards/"+string(h.small)+"/members/"+fmt.Sprint("m", i%5), 200, "", whatever)
		}
		used[c] = loadOf(near.Info(t.Context(), "commandstats").Val())
	}
	before, after := used[alone], used[r.sidecar]
	t.Logf("%d pages, as many standings, and a hot page, on the primary: %+v without a replica, %+v with one: %.3f of the calls, %.3f of the time", reads, before, after,
		float64(after.calls)/float64(before.calls), float64(after.us)/float64(before.us))
	if 2*after.calls > before.calls { // the rest is the machine's: a keeper that is late leaves reads to the primary
		t.Errorf("the primary had %d of %d reads", after.calls, before.calls)
	}

	// The link is cut for the replica alone to be behind: what a caller has written is there nevertheless.
	h.give(t, h.small, 6)
	r.await(r.sidecar, top(h.small, "&min_seq=6"), 200, `"total":6`, whatever)
	r.await(r.sidecar, top(h.small, "&max_age_ms=0"), 200, `"total":6`, within(0, time.Second))
	r.follow("127.0.0.1:1")
	h.give(t, h.small, 7)
	r.await(r.sidecar, top(h.small, "&min_seq=7"), 200, `"total":7`, whatever)
	r.awaitReads(`"reason":"link"`)
	r.await(r.sidecar, top(h.small, ""), 200, `"total":7`, within(0, time.Second))
	r.await(r.sidecar, top(hot, ""), 200, `"total":5`, within(0, 3*time.Second))
	r.follow(master)
	r.awaitReads(`"used":true`)
	r.await(r.sidecar, top(h.small, ""), 200, `"total":7`, within(0, 5*time.Second))
}

func top(id rankcache.BoardID, query string) string {
	return "/v1/boards/" + string(id) + "/top?limit=50" + query
}

// awaitReads waits until the status tells a text about reads from replicas.
func (r *region) awaitReads(text string) {
	r.Helper()
	testkit.Eventually(r.T, time.Minute, func() error {
		_, body := r.sidecar.Get("admin", "/status")
		_, section, _ := strings.Cut(body, `"redis_read":`)
		if section, _, _ = strings.Cut(section, "}"); !strings.Contains(section, text) {
			return fmt.Errorf("want %s: %s", text, section)
		}
		return nil
	})
}

// primaryLoad is what reads of boards took from a Redis.
type primaryLoad struct{ calls, us int }

func loadOf(commandstats string) (l primaryLoad) {
	for line := range strings.Lines(commandstats) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		switch name {
		case "zrevrange", "zrevrank", "zscore", "zcard", "evalsha", "multi", "exec", "hmget":
			calls, rest, _ := strings.Cut(strings.TrimPrefix(rest, "calls="), ",usec=")
			us, _, _ := strings.Cut(rest, ",")
			n, _ := strconv.Atoi(calls)
			took, _ := strconv.Atoi(us)
			l.calls += n
			l.us += took
		}
	}
	return l
}
