package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kfake"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/health"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/origin"
)

// urlSecret is in every address that the outage's sidecar is given.
const urlSecret = "hush"

// outage is a sidecar with servers of its own, each of which a test can take away.
type outage struct {
	*child
	t        *testing.T
	board    rankcache.BoardID
	redis    *servers.Redis
	kafka    *servers.Kfake
	profiles atomic.Bool // answer
}

func newOutage(t *testing.T) *outage {
	o := &outage{t: t, board: rankcache.BoardID(testkit.Name(t)), redis: testkit.StartRedis(t, servers.RedisOptions{}), kafka: testkit.Kfake(t)}
	o.profiles.Store(true)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !o.profiles.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
		fmt.Fprint(w, `{"profiles":{}}`)
	}))
	t.Cleanup(service.Close)
	fillReplay(t, o.kafka.Addr(), o.redis.Addr(), o.board, 100, 100)
	h := &fixture{rooms: t.TempDir() + "/rooms.yaml", blocked: "none"}
	h.nameRooms(t, o.board)
	h.common = []string{"--redis", "redis://default:" + urlSecret + "@" + o.redis.Addr(), "--kafka", o.kafka.Addr(), "--rooms", h.rooms,
		"--profile-url", strings.Replace(service.URL, "http://", "http://app:"+urlSecret+"@", 1) + "/" + urlSecret, "--profile-negative-ttl", "1ms"}
	o.child = h.serve(t)
	o.WaitReady(time.Minute)
	return o
}

// outageStatus is the part of /status that tells of an outage.
type outageStatus struct {
	State  string
	Boards []struct {
		State, Reason string
		Have          uint64
		Want          *uint64
	}
	Dependencies map[string]health.Status
}

// await waits until /status and /metrics tell that a service is in a state.
func (o *outage) await(service string, state health.State, more func(*outageStatus) error) {
	o.t.Helper()
	begun := time.Now()
	testkit.Eventually(o.t, 30*time.Second, func() error {
		o.Get("data", "/v1/boards/"+string(o.board)+"/top?profiles=1")
		_, text := o.Get("admin", "/status")
		_, metrics := o.Get("admin", "/metrics")
		if strings.Contains(text+metrics, urlSecret) {
			o.t.Fatalf("a urlSecret is shown: %s", text)
		}
		var s outageStatus
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return err
		}
		up := map[health.State]string{health.OK: "1", health.Failing: "0"}[state]
		if d := s.Dependencies[service]; d.State != state || s.State != "ready" || state == health.Failing && d.LastError == "" {
			return fmt.Errorf("%s: want %s: %s", service, state, text)
		} else if line := fmt.Sprintf("rankcache_dependency_up{dependency=%q} %s\n", service, up); !strings.Contains(metrics, line) {
			return fmt.Errorf("no metric %s", line)
		}
		return more(&s)
	})
	o.t.Logf("%s %s after %v", service, state, time.Since(begun).Round(time.Millisecond))
}

func nothingMore(*outageStatus) error { return nil }

// TestOutagesAreTold takes away one service after the other.
func TestOutagesAreTold(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	level := func(s *outageStatus) error {
		if b := s.Boards[0]; b.State != "open" || b.Want == nil || *b.Want != b.Have || b.Reason != "equal to Redis" {
			return fmt.Errorf("board: %+v", b)
		}
		return nil
	}
	unknown := func(s *outageStatus) error {
		if b := s.Boards[0]; b.State != "open" || b.Want != nil || strings.Contains(b.Reason, "equal") || s.Dependencies[cli.ServiceKafka].State != health.OK {
			return fmt.Errorf("board: %+v", b)
		}
		return nil
	}
	for _, service := range []string{cli.ServiceRedis, cli.ServiceKafka, cli.ServiceProfiles} {
		o.await(service, health.OK, level)
	}
	must(t, o.redis.Pause())
	o.await(cli.ServiceRedis, health.Failing, unknown)
	must(t, o.redis.Resume())
	o.await(cli.ServiceRedis, health.OK, level)

	o.profiles.Store(false)
	o.await(cli.ServiceProfiles, health.Failing, level)
	o.profiles.Store(true)
	o.await(cli.ServiceProfiles, health.OK, level)

	_, port, _ := strings.Cut(o.kafka.Addr(), ":")
	var number int
	fmt.Sscan(port, &number)
	o.kafka.Close()
	o.await(cli.ServiceKafka, health.Failing, level)
	testkit.Kfake(t, kfake.Ports(number))
	o.await(cli.ServiceKafka, health.OK, nothingMore)

	must(t, o.redis.Kill())
	o.await(cli.ServiceRedis, health.Failing, nothingMore)
	must(t, o.redis.Restart(t.Context()))
	o.await(cli.ServiceRedis, health.OK, nothingMore)
}

// TestPingRedis: a user who may not PING is served all the same.
func TestPingRedis(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	ping := func(user string) error {
		client, err := origin.Dial(origin.Options{URL: "redis://" + user + ":" + urlSecret + "@" + server.Addr()})
		must(t, err)
		defer client.Close()
		return cli.PingRedis(client)(t.Context())
	}
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer admin.Close()
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">"+urlSecret, "~*", "+get", "+role").Err())
	must(t, ping("reader"))
	if err := ping("nobody"); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a user who is not known: %v", err)
	}
}
