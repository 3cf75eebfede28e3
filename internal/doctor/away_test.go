package doctor

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// cantLook makes checks of a server that is away, all at once, and wants each to say that it could not look.
func cantLook(t *testing.T, how string, checks []Check) {
	t.Helper()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, c := range checks {
		wg.Go(func() {
			v := look(t.Context(), c, time.Second)
			if v.Status != Unknown || !strings.HasPrefix(v.Advice, "can't look: ") {
				t.Errorf("%s, %s: %s: %s", how, c.Name, v.Status, v.Advice)
			}
		})
	}
}

// A Redis that goes away between two checks is no finding about its mode, its user's rights or its clock.
func TestRedisThatGoesAway(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, MaxRetries: -1})
	defer client.Close()
	r := Redis{Client: client, Mode: "single", Names: wire.DefaultNames(), Roles: []string{"serve"}}
	all := r.Checks()
	check(t, "at first", all[0].Look(t.Context()), "ok")
	rest := append(all[1:], r.HotKeys(), r.Expiry(func() []Endless { return []Endless{{Board: "b"}} }),
		Boards(func(ctx context.Context) (int, error) { return 0, client.Ping(ctx).Err() }))
	must(t, server.Pause())
	cantLook(t, "paused", rest)
	must(t, server.Kill())
	cantLook(t, "killed", rest)
}

// A Redis that loads its data answers, but not what it is asked for.
func TestRepliesThatTellNothing(t *testing.T) {
	for text, want := range map[string]error{"LOADING Redis is loading the dataset in memory": nil, "MASTERDOWN Link with MASTER is down": nil,
		"ERR unknown command 'X'": errLacking, "NOPERM no permission": errRefused} {
		got := judgeReply(redisError(text))
		if want != nil && got != want || want == nil && (got == nil || got == errLacking || got == errRefused) {
			t.Errorf("%s: %v", text, got)
		}
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (e redisError) RedisError()   {}

func TestKafkaThatGoesAway(t *testing.T) {
	t.Parallel()
	broker := testkit.Kfake(t)
	boards := func() []rankcache.BoardID { return []rankcache.BoardID{"b"} }
	k, err := OpenKafka(broker.Addr(), nil, wire.DefaultNames(), "seq", boards, func(rankcache.BoardID) string { return "update_cache_b" })
	must(t, err)
	defer k.Close()
	all := k.Checks()
	check(t, "at first", all[0].Look(t.Context()), "ok")
	broker.Close()
	rest := append(all[1:], k.CommandTimes(func() bool { return true }), k.Durable(func() time.Duration { return time.Hour }), k.Deletion())
	cantLook(t, "closed", append(rest, k.Ledger(nil)...))
}

// What depends on a check that could not look is not said to depend on one that failed.
func TestSkippedForWantOfALook(t *testing.T) {
	away := Check{"a", nil, func(context.Context) Verdict { return Unasked(context.DeadlineExceeded) }}
	next := Check{"b", []string{"a"}, func(context.Context) Verdict { return okf("seen") }}
	last := Check{"c", []string{"b"}, next.Look}
	var got []Finding
	Run(t.Context(), []Check{away, next, last}, time.Second, func(f Finding) { got = append(got, f) })
	for _, f := range got[1:] {
		check(t, f.Check, f.Verdict, "skip: not checked: a could not be looked at")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
