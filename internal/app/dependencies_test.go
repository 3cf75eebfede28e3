package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kfake"

	"rankcache"
	"rankcache/hotkey"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/sidecar/adminapi"
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
	Dependencies map[string]adminapi.DependencyStatus
}

// await waits until /status and /metrics tell that a service is in a state.
func (o *outage) await(service string, state adminapi.DependencyState, more func(*outageStatus) error) {
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
		up := map[adminapi.DependencyState]string{adminapi.DependencyOK: "1", adminapi.DependencyFailing: "0"}[state]
		if d := s.Dependencies[service]; d.State != state || s.State != "ready" || state == adminapi.DependencyFailing && d.LastError == "" {
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
		if b := s.Boards[0]; b.State != "open" || b.Want != nil || strings.Contains(b.Reason, "equal") || s.Dependencies[serviceKafka].State != adminapi.DependencyOK {
			return fmt.Errorf("board: %+v", b)
		}
		return nil
	}
	for _, service := range []string{serviceRedis, serviceKafka, serviceProfiles} {
		o.await(service, adminapi.DependencyOK, level)
	}
	must(t, o.redis.Pause())
	o.await(serviceRedis, adminapi.DependencyFailing, unknown)
	must(t, o.redis.Resume())
	o.await(serviceRedis, adminapi.DependencyOK, level)

	o.profiles.Store(false)
	o.await(serviceProfiles, adminapi.DependencyFailing, level)
	o.profiles.Store(true)
	o.await(serviceProfiles, adminapi.DependencyOK, level)

	_, port, _ := strings.Cut(o.kafka.Addr(), ":")
	var number int
	fmt.Sscan(port, &number)
	o.kafka.Close()
	o.await(serviceKafka, adminapi.DependencyFailing, level)
	testkit.Kfake(t, kfake.Ports(number))
	o.await(serviceKafka, adminapi.DependencyOK, nothingMore)

	must(t, o.redis.Kill())
	o.await(serviceRedis, adminapi.DependencyFailing, nothingMore)
	must(t, o.redis.Restart(t.Context()))
	o.await(serviceRedis, adminapi.DependencyOK, nothingMore)
}

// TestRedisHook: what shows that Redis serves us, and what does not.
func TestRedisHook(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	client, err := origin.Dial(origin.Options{URL: "redis://default:" + urlSecret + "@" + server.Addr()})
	must(t, err)
	defer client.Close()
	d := adminapi.NewDependency(time.Minute)
	client.AddHook(redisHook{d})
	expect := func(when string, state adminapi.DependencyState, part string) {
		t.Helper()
		if s := d.Status(); s.State != state || !strings.Contains(s.LastError, part) || strings.Contains(s.LastError, urlSecret) {
			t.Errorf("%s: %+v, want %s with %q", when, s, state, part)
		}
	}
	ctx := t.Context()
	must(t, client.Do(ctx, "ACL", "SETUSER", "reader", "on", ">"+urlSecret, "+ping", "+auth").Err())
	expect("a reply", adminapi.DependencyOK, "")
	client.Get(ctx, "missing")
	client.Do(ctx, "NO-SUCH-COMMAND", "key")
	expect("nil and an error reply", adminapi.DependencyOK, "")

	wrong, err := origin.Dial(origin.Options{URL: "redis://reader:" + urlSecret + "2@" + server.Addr()})
	must(t, err)
	defer wrong.Close()
	d = adminapi.NewDependency(time.Minute)
	wrong.AddHook(redisHook{d})
	wrong.Ping(ctx)
	expect("a wrong password", adminapi.DependencyFailing, "WRONGPASS")

	d = adminapi.NewDependency(time.Minute)
	hook := redisHook{d}
	reset := errors.New("read: connection reset")
	_ = hook.ProcessPipelineHook(func(_ context.Context, cmds []redis.Cmder) error {
		cmds[0].SetErr(redis.Nil)
		cmds[1].SetErr(reset)
		return redis.Nil
	})(ctx, []redis.Cmder{redis.NewCmd(ctx), redis.NewCmd(ctx)})
	expect("a pipeline that broke after a missing key", adminapi.DependencyFailing, "connection reset")
}

// TestHotKeySource: own calls and new verdicts of the fleet show that the source answers, an old
// verdict that is read again does not.
func TestHotKeySource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := adminapi.NewDependency(30 * time.Second)
		s := &Sidecar{services: adminapi.Dependencies{serviceHotKeys: d}}
		var passed int
		verdicts := callWatch{s}.watchVerdicts(observed(func() { passed++ }))
		expect := func(when string, want adminapi.DependencyState) {
			t.Helper()
			if got := d.Status(); got.State != want {
				t.Errorf("%s: %+v, want %s", when, got, want)
			}
		}
		first := hotkey.Verdict{At: time.Now()}
		verdicts.Observe(first)
		expect("a verdict", adminapi.DependencyOK)
		time.Sleep(31 * time.Second)
		verdicts.Observe(first)
		expect("the same again", adminapi.DependencyUnknown)
		verdicts.Observe(hotkey.Verdict{At: first.At.Add(-time.Minute)})
		expect("a poller whose clock is behind", adminapi.DependencyOK)
		if passed != 3 {
			t.Errorf("%d verdicts were passed on, want 3", passed)
		}
		callWatch{s}.hotKeysAnswered(time.Second, &hotkey.CallError{Code: hotkey.CodeUnsupported, Err: errors.New("unknown command")})
		expect("a server without hot keys", adminapi.DependencyOff)
		callWatch{s}.hotKeysAnswered(2*time.Second, &hotkey.CallError{Code: "AuthFailure", Err: errors.New("wrong key")})
		time.Sleep(2 * time.Second)
		expect("a refused call", adminapi.DependencyFailing)
		callWatch{s}.hotKeysAnswered(time.Second, nil)
		expect("an answered call", adminapi.DependencyOK)
	})
}

// observed calls a function for each verdict.
type observed func()

func (f observed) Observe(hotkey.Verdict) { f() }
