package app

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

func fromFinal(a answer) bool { return a.status == http.StatusOK && a.source == "final" }

func fromLedger(a answer) bool { return a.status == http.StatusOK && a.source == "ledger" }

// TestLedgerAnswersWhileRedisIsAway is the table of docs/how/AGE.md with a ledger: open and
// kept copies as without, then the ledger, then nothing, and with Redis back as if nothing had
// been.
func TestLedgerAnswersWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	topic := testkit.Name(t)
	d := newDegraded(t, "--topic-ledger", topic, "--ledger-partitions", "2")
	for _, b := range []rankcache.BoardID{d.star, d.hot, d.small} {
		d.give(t, b, 3)
	}
	url := testkit.Database(t, "postgres")
	paid := closedBoard(t, url)
	l := startListening(t, append([]string{"ledger", "--http", "127.0.0.1:0", "--serve-reads", "--database", url, "--topic-ledger", topic, "--ledger-group", topic}, d.common...)...)
	s := d.serve(t, "--redis-timeout", "200ms", "--hot-stale", "3s", "--ledger-url", l.URL("http", ""))
	s.WaitReady(time.Minute)
	d.until(s, d.star, "the local copy", fromLocal)
	d.until(s, d.hot, "the hot page", fromHot)
	d.until(s, d.small, "Redis", fromRedis)
	testkit.Eventually(t, time.Minute, func() error {
		_, body := l.Get("http", "/status")
		return errors.Join(contains(body, `"behind":0,"rows":9,`), contains(body, `"current_at":"`))
	})

	must(t, d.redis.Kill())
	if a := d.ask(s, d.star); !fromLocal(a) {
		t.Errorf("the super-hot board answers %+v", a)
	}
	if a := d.ask(s, d.hot); !fromHot(a) {
		t.Errorf("the hot board answers %+v", a)
	}
	a := d.until(s, d.small, "the ledger", fromLedger)
	if a.seq != 3 || a.age < time.Millisecond || a.age > time.Minute {
		t.Errorf("the small board answers %+v, want seq 3 with an age", a)
	}
	if a := d.until(s, d.hot, "the ledger after its limit", fromLedger); a.seq != 3 {
		t.Errorf("the hot board answers %+v", a)
	}
	if a := d.until(s, paid, "its final", fromFinal); a.seq != 9 {
		t.Errorf("the closed board answers %+v", a)
	}
	if a := d.ask(s, "never-seen"); !refused(a) {
		t.Errorf("a board that the ledger does not have answers %+v", a)
	}
	if code, body := s.Get("data", "/v1/boards/"+string(d.small)+"/top?max_age_ms=0"); code != http.StatusServiceUnavailable {
		t.Errorf("a read that wants Redis alone: %d %s", code, body)
	}
	_, metrics := s.Get("health", "/metrics")
	if !strings.Contains(metrics, `rankcache_requests_total{result="ok",route="top",source="ledger"}`) || !strings.Contains(metrics, `rankcache_ledger_calls_total{op="page",result="ok"}`) {
		t.Error("the metrics don't count answers of the ledger")
	}

	l.Signal(syscall.SIGTERM)
	if code := l.Wait(time.Minute); code != cli.ExitOK {
		t.Errorf("the ledger ended with %d", code)
	}
	d.until(s, d.small, "a refusal without the ledger", refused)
	must(t, d.redis.Restart(t.Context()))
	d.until(s, d.small, "Redis, which is back", fromRedis)
}

// closedBoard keeps the final of a board whose scores are not kept any more.
func closedBoard(t *testing.T, url string) rankcache.BoardID {
	t.Helper()
	store, err := ledger.Open(url, nil)
	must(t, err)
	defer store.Close()
	must(t, store.Migrate(t.Context()))
	f := &ledger.Final{Final: wire.Final{Board: "paid:7:20261122", Class: "paid", Dims: map[string]string{"zone": "7"}, Tag: "20261122",
		State: rankcache.State{Run: 1, Seq: 9, Sum: 3, HasSum: true}, Members: 1, Top: []rankcache.Entry{{Member: "m", Score: 1}}}}
	must(t, store.SaveFinal(t.Context(), f))
	return f.Board
}
