package origin

import (
	"slices"
	"testing"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// A restart gives another server id.
func TestServerID(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	client := dialed(t, Options{URL: "redis://" + server.Addr(), Timeout: testTimeout})
	o := New(client, wire.DefaultNames(), WithTimeout(testTimeout))
	first, err := o.ServerID(t.Context(), "1_2_3")
	must(t, err)
	again, err := o.ServerID(t.Context(), "1_2_3")
	must(t, err)
	if len(first) != 40 || again != first {
		t.Errorf("ids %q and %q", first, again)
	}
	must(t, server.Kill())
	must(t, server.Restart(t.Context()))
	next, err := o.ServerID(t.Context(), "1_2_3")
	must(t, err)
	if next == first {
		t.Errorf("the id is %q after a restart, too", next)
	}
}

func TestReadopt(t *testing.T) {
	b := newBoard(t)
	must(t, b.Readopt(t.Context(), b.id, 1<<52+1))
	equal(t, "asked for", b.client.HGet(t.Context(), b.names().Readopt, string(b.id)).Val(), "4503599627370497")
}

// A restart and FLUSHALL give another history, DEL does not.
func TestHistories(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	client := dialed(t, Options{URL: "redis://" + server.Addr(), Timeout: testTimeout})
	o := New(client, wire.DefaultNames(), WithTimeout(testTimeout))
	read := func() string {
		t.Helper()
		names, err := o.Histories(t.Context(), []rankcache.BoardID{"1_2_3", "1_2_4"}, true)
		must(t, err)
		if len(names) != 2 || names[0] != names[1] || len(names[0]) < 40 {
			t.Fatalf("histories %q", names)
		}
		return names[0]
	}
	first := read()
	must(t, client.Set(t.Context(), "1_2_3", "", 0).Err())
	must(t, client.Del(t.Context(), "1_2_3").Err())
	equal(t, "after DEL", read(), first)
	must(t, client.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-flushall").Err())
	app := dialed(t, Options{URL: "redis://app:pw@" + server.Addr(), Timeout: testTimeout})
	if err := app.FlushAll(t.Context()).Err(); err == nil {
		t.Fatal("FLUSHALL is allowed")
	}
	equal(t, "after a FLUSHALL that is refused", read(), first)
	must(t, client.FlushAll(t.Context()).Err())
	before, err := o.Histories(t.Context(), []rankcache.BoardID{"1_2_3"}, false)
	must(t, err)
	equal(t, "what was told before FLUSHALL", before[0], first)
	flushed := read()
	before, err = o.Histories(t.Context(), []rankcache.BoardID{"1_2_3"}, false)
	must(t, err)
	equal(t, "what was told last", before[0], flushed)
	must(t, client.FlushDB(t.Context()).Err())
	again := read()
	must(t, server.Kill())
	must(t, server.Restart(t.Context()))
	restarted := read()
	if all := []string{first, flushed, again, restarted}; len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
		t.Errorf("want four histories: %q", all)
	}
	must(t, client.Do(t.Context(), "ACL", "SETUSER", "default", "-info").Err())
	names, err := o.Histories(t.Context(), []rankcache.BoardID{"1_2_3"}, true)
	must(t, err)
	equal(t, "without +info", names[0], "")
}
