package cli

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestMaxConns: the connections of all ports stay below the limit of open files, and what is lowered is told.
func TestMaxConns(t *testing.T) {
	addrs := []FlagAddr{{Flag: "data", Conns: 4096}, {Flag: "socket", Addr: "unix:/s", Shares: true}, {Flag: "health", Addr: ":1"},
		{Flag: "resp", Addr: ":2", Conns: 10_000, Files: 2}, {Flag: "rpc", Conns: 14_000}}
	for _, c := range []struct {
		limit uint64
		most  string
		told  int
	}{{48, "[8 8 8 4 0]", 3}, {1024, "[352 352 64 176 0]", 2}, {5000, "[2340 2340 64 1170 0]", 2}, {1 << 63, "[4096 4096 64 10000 0]", 0}} {
		var said strings.Builder
		got := fmt.Sprint(maxConns(c.limit, addrs, slog.New(slog.NewTextHandler(&said, nil))))
		if told := strings.Count(said.String(), "too low"); got != c.most || told != c.told {
			t.Errorf("limit %d: %s, told %d times; want %s, %d\n%s", c.limit, got, told, c.most, c.told, said.String())
		}
	}
}
