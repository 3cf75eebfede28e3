package origin

import (
	"testing"

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
