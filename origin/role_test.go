package origin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// A replica is not read, by whatever method, and is read when it is a master. (A client that
// has just seen it as a master asks again within roleHolds.)
func TestReplicaIsRefused(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	defer admin.Close()
	client := dialed(t, Options{URL: "redis://" + server.Addr(), Timeout: testTimeout})
	b := board{New(client, wire.DefaultNames(), WithTimeout(testTimeout)), client, "1_2_3"}
	b.fill(t, 917, abc...)
	checkSeq(t, b, 917)
	if known, err := CheckMaster(t.Context(), client); !known || err != nil {
		t.Errorf("a master: known %v, %v", known, err)
	}
	host, port, _ := net.SplitHostPort(testkit.Redis(t))
	must(t, admin.ReplicaOf(t.Context(), host, port).Err())
	must(t, admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
	client = dialed(t, Options{URL: "redis://" + server.Addr(), Timeout: testTimeout})
	b = board{New(client, wire.DefaultNames(), WithTimeout(testTimeout)), client, "1_2_3"}
	for method, err := range everyMethod(t.Context(), b.Origin, b.id) {
		if !errors.Is(err, ErrNotMaster) || !errors.Is(err, rankcache.ErrUnavailable) || !strings.Contains(err.Error(), testkit.Redis(t)) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if _, err := CheckMaster(t.Context(), client); !errors.Is(err, ErrNotMaster) {
		t.Error("CheckMaster:", err)
	}
	must(t, admin.ReplicaOf(t.Context(), "no", "one").Err())
	b.fill(t, 918, abc...)
	checkSeq(t, b, 918)
}

// A proxy may not know ROLE, and an ACL may forbid it: the role is unknown, and boards are
// read.
func TestUnknownRole(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown":   {"--rename-command", "ROLE", ""},
		"forbidden": strings.Fields("--user default on nopass ~* &* +@all -role"),
	} {
		server := testkit.StartRedis(t, servers.RedisOptions{Args: args})
		client := dialed(t, Options{URL: "redis://" + server.Addr(), Timeout: testTimeout})
		if known, err := CheckMaster(t.Context(), client); known || err != nil {
			t.Errorf("%s: known %v, %v", name, known, err)
		}
		b := board{New(client, wire.DefaultNames(), WithTimeout(testTimeout)), client, "1_2_3"}
		b.fill(t, 917, abc...)
		checkSeq(t, b, 917)
	}
}

// A Sentinel has no boards, and finds the master.
func TestSentinelRole(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	host, port, _ := net.SplitHostPort(server.Addr())
	sentinel := startSentinel(t, host, port)
	wrong := dialed(t, Options{URL: "redis://" + sentinel, Timeout: testTimeout})
	if _, err := CheckMaster(t.Context(), wrong); !errors.Is(err, ErrNotMaster) {
		t.Error("a Sentinel:", err)
	}
	client := dialed(t, Options{URL: "redis://" + sentinel + "?master_name=m", Mode: ModeSentinel, Timeout: testTimeout})
	b := board{New(client, wire.DefaultNames(), WithTimeout(testTimeout)), client, "1_2_3"}
	b.fill(t, 917, abc...)
	checkSeq(t, b, 917)
}

// One Sentinel still names a master that is gone: the others are asked, too.
func TestSentinelThatIsBehind(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	host, port, _ := net.SplitHostPort(server.Addr())
	gone, err := servers.FreeAddr()
	must(t, err)
	_, gonePort, _ := net.SplitHostPort(gone)
	behind, ahead := startSentinel(t, host, gonePort), startSentinel(t, host, port)
	for range 8 { // the client believes the one that answers first
		client := dialed(t, Options{URL: "redis://" + behind + "?master_name=m&addr=" + ahead, Mode: ModeSentinel, Timeout: testTimeout})
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// Requests that failed while there was no master do not make later ones fail.
func TestMasterIsBack(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	host, port, _ := net.SplitHostPort(server.Addr())
	client := dialed(t, Options{URL: "redis://" + startSentinel(t, host, port) + "?master_name=m&pool_size=1", Mode: ModeSentinel, Timeout: testTimeout})
	must(t, server.Kill())
	for range 3 {
		if err := client.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("without a master: %v", err)
		}
	}
	must(t, server.Restart(t.Context()))
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

// Where a replica is taken, so is a master, and one that does not tell; a Sentinel is not. A connection to one is refused, and the next is
// checked again.
func TestMasterOrReplica(t *testing.T) {
	t.Parallel()
	master, replica := testkit.StartRedis(t, servers.RedisOptions{}), testkit.StartRedis(t, servers.RedisOptions{})
	host, port, _ := net.SplitHostPort(master.Addr())
	must(t, replica.Do(t.Context(), "replicaof", host, port))
	silent := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--rename-command", "ROLE", ""}})
	sentinel := startSentinel(t, host, port)
	dial := func(addr, role string) redis.UniversalClient {
		return dialed(t, Options{URL: "redis://" + addr + "", Role: role, Timeout: testTimeout})
	}
	for _, role := range []string{RoleReplica, RoleRead} {
		for _, addr := range []string{master.Addr(), replica.Addr(), silent.Addr()} {
			if err := dial(addr, role).Ping(t.Context()).Err(); err != nil {
				t.Errorf("%s, %s: %v", role, addr, err)
			}
		}
		wrong := dial(sentinel, role)
		for range 2 {
			if err := wrong.Ping(t.Context()).Err(); !errors.Is(err, ErrNotMaster) || !strings.Contains(err.Error(), "Sentinel") {
				t.Errorf("%s, a Sentinel: %v", role, err)
			}
		}
	}
	if err := dial(replica.Addr(), RoleMaster).Ping(t.Context()).Err(); !errors.Is(err, ErrNotMaster) {
		t.Errorf("a replica as a master: %v", err)
	}
	for addr, want := range map[string]string{replica.Addr(): "a replica of " + master.Addr(), master.Addr(): "a master: nothing replicates to it", silent.Addr(): "ROLE is refused"} {
		if is, err := CheckReplica(t.Context(), dial(addr, RoleReplica)); err != nil || !strings.Contains(is, want) {
			t.Errorf("%q, %v; want %q", is, err, want)
		}
	}
}

// startSentinel starts a Sentinel that watches one master as m.
func startSentinel(t *testing.T, host, port string) (addr string) {
	t.Helper()
	addr, err := servers.FreeAddr()
	must(t, err)
	_, own, _ := net.SplitHostPort(addr)
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "port %s\nbind 127.0.0.1\nsentinel monitor m %s %s 1\n", own, host, port), 0o600))
	cmd := exec.Command("redis-server", config, "--sentinel")
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	defer client.Close()
	testkit.Eventually(t, testTimeout, func() error { return client.Ping(t.Context()).Err() })
	return addr
}
