package hotkey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// reporter is a sidecar of a fleet that reports to a source.
type reporter struct {
	*Tracker
	reader *VerdictReader
}

func newReporter(t *testing.T, rdb redis.Cmdable, instance, id string) *reporter {
	r, reg := &reporter{}, prometheus.NewRegistry()
	deps := Deps{Tiers: func() *rooms.Tiers { return nil }, Log: quiet(), Registry: reg,
		Exchange: func(ctx context.Context, report []byte) { r.reader.Exchange(ctx, report) }}
	var err error
	if r.Tracker, err = New(Config{}, deps); err != nil {
		t.Fatal(err)
	}
	r.reader = NewVerdictReader(rdb, wire.DefaultNames(), instance, id, r.Tracker, quiet(), reg)
	return r
}

// second lets a second pass with so many reads of a board.
func (r *reporter) second(ctx context.Context, now time.Time, board rankcache.BoardID, reads int) {
	for range reads {
		r.Count(board)
	}
	r.tick(ctx, now)
}

// TestFleetPromotes: twenty sidecars, of which none promotes the board by its own 45 reads/s, promote it together, within three
// looks of each; reports and lists of a fleet whose source has gone end.
func TestFleetPromotes(t *testing.T) {
	t.Parallel()
	rdb, instance, now := newClient(t, testkit.Redis(t)), testkit.Name(t), time.Now()
	poller, err := NewPoller(PollerConfig{ID: "keeper", Every: FleetEvery}, NewFleet(rdb, wire.DefaultNames(), instance, quiet(), nil), rdb, wire.DefaultNames(), instance, quiet(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	poller.elected = true
	var fleet []*reporter
	for i := range 20 {
		fleet = append(fleet, newReporter(t, rdb, instance, fmt.Sprint("pod-", i)))
	}
	pass := func(reads int) {
		now = now.Add(time.Second)
		for _, r := range fleet {
			r.second(t.Context(), now, "b", reads)
		}
	}
	promoted := func() (n int) {
		for _, r := range fleet {
			n += len(*r.pages.Load())
		}
		return n
	}
	for range 10 {
		pass(45)
	}
	if n := promoted(); n != 0 || rdb.Exists(t.Context(), fleet[0].reader.reports).Val() != 0 {
		t.Fatalf("%d boards are promoted without a source, or reports are made that nobody has asked for", n)
	}
	seconds := 0
	for ; promoted() < len(fleet) && seconds < 10; seconds++ {
		poller.poll(t.Context())
		pass(45)
	}
	if seconds > 3 {
		t.Errorf("%d of %d sidecars have promoted the board after %d seconds", promoted(), len(fleet), seconds)
	}
	rows := fleet[0].Hot()
	if len(rows) != 1 || rows[0].Cause != CauseVerdict || rows[0].APICount != 900 {
		t.Errorf("rows %+v, want one of 900 reads", rows)
	}

	for _, r := range fleet { // the poller has gone
		r.verdict.Store(&seenVerdict{Verdict: Verdict{Source: SourceFleet}, seen: now.Add(-VerdictAge)})
	}
	rdb.Del(t.Context(), fleet[0].reader.reports, fleet[0].reader.verdict)
	pass(45)
	if rdb.Exists(t.Context(), fleet[0].reader.reports).Val() != 0 {
		t.Error("sidecars report to a source that has gone")
	}
	for _, r := range fleet {
		r.second(t.Context(), now, "own", 60)
		r.second(t.Context(), now.Add(time.Second), "own", 60)
	}
	if n := promoted(); n != 2*len(fleet) {
		t.Errorf("%d of %d boards are promoted by own reads after the source has gone", n, 2*len(fleet))
	}
}

// TestFleetTakesTurns: while the source of the elected poller works, no other poller calls its own.
func TestFleetTakesTurns(t *testing.T) {
	t.Parallel()
	rdb, instance := newClient(t, testkit.Redis(t)), testkit.Name(t)
	other := newSidecar(t, testkit.Redis(t), instance, &sharedAPI{}, PollerConfig{Every: time.Hour}, 1)
	elected, err := NewPoller(PollerConfig{ID: "keeper", Every: time.Hour}, NewFleet(rdb, wire.DefaultNames(), instance, quiet(), nil), rdb, wire.DefaultNames(), instance, quiet(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	elected.elected = true
	for range 2 {
		elected.poll(t.Context())
		other.poller.poll(t.Context())
	}
	v, err := DecodeVerdict([]byte(rdb.Get(t.Context(), elected.verdict).Val()))
	if err != nil || v.Source != SourceFleet || v.Poller != "keeper" {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestPollersAreIdle: where a keeper works, sidecars' pollers don't ask Redis for a lease; else each would, about once a second.
func TestPollersAreIdle(t *testing.T) {
	t.Parallel()
	rdb, instance := newClient(t, testkit.Redis(t)), testkit.Name(t)
	var idle, asked atomic.Bool
	idle.Store(true)
	cfg := PollerConfig{ID: "sidecar", Every: 20 * time.Millisecond, Idle: func() bool { asked.Store(true); return idle.Load() }}
	poller, err := NewPoller(cfg, (&sharedAPI{}).of("sidecar"), rdb, wire.DefaultNames(), instance, quiet(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	lead := func(ctx context.Context) (leads bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan error, 1)
		asked.Store(false)
		go func() { done <- poller.Run(ctx) }()
		testkit.Eventually(t, time.Minute, func() error {
			if leads = rdb.Exists(ctx, poller.lease.Key).Val() == 1; !leads && !(asked.Load() && idle.Load()) {
				return errors.New("it has done nothing yet")
			}
			return nil
		})
		cancel()
		<-done
		return leads
	}
	if lead(t.Context()) {
		t.Error("an idle poller has a lease")
	}
	idle.Store(false)
	if !lead(t.Context()) {
		t.Error("a poller that is not idle any more has no lease")
	}
	idle.Store(true)
	if pause := poller.lead(t.Context()); pause > time.Second {
		t.Errorf("pause of %v after the lead of a poller that is idle now", pause)
	}
}

func report(at uint64, boards ...wire.BoardReads) string {
	return string(wire.AppendReads(nil, at, boards))
}

// TestFleetBelievesNoLies: what one sidecar can't have answered is counted as what it can, and the sidecar is named; ids that are no
// boards' are ignored, as are values that are no reports.
func TestFleetBelievesNoLies(t *testing.T) {
	var log bytes.Buffer
	reg := prometheus.NewRegistry()
	names := wire.DefaultNames()
	names.Rooms = "my:rooms"
	f := NewFleet(nil, names, "i", slog.New(slog.NewTextHandler(&log, nil)), reg)
	hot, _ := f.add(time.Now(), map[string]string{
		"liar":        report(1, wire.BoardReads{Board: "b", Rate: 1e12}, wire.BoardReads{Board: "my:rooms", Rate: 5000}),
		"honest":      report(1, wire.BoardReads{Board: "b", Rate: 45}, wire.BoardReads{Board: "rare", Rate: 45}),
		"no report\n": strings.Repeat("\x01", 1<<20),
	})
	if want := []BoardCount{{"b", maxReadRate + 45}}; !slices.Equal(hot.Boards, want) || hot.Ignored != 2 {
		t.Errorf("%+v, want %v and 2 ignored", hot, want)
	}
	if n := testutil.ToFloat64(f.capped); n != 1 {
		t.Errorf("%v rates are capped, want 1", n)
	}
	for _, want := range []string{"sidecar=liar", "board=b", "reads_per_s=1000000000000", `sidecar="no report\n"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
}

// TestFleetForgets: a report that no other one follows counts for three seconds, whatever its sidecar's clock shows.
func TestFleetForgets(t *testing.T) {
	f, now := NewFleet(nil, wire.DefaultNames(), "i", quiet(), nil), time.Now()
	dead := report(1<<60, wire.BoardReads{Board: "dead", Rate: 500})
	for i := range uint64(5) {
		hot, ended := f.add(now, map[string]string{"dead": dead, "alive": report(5-i, wire.BoardReads{Board: "b", Rate: 500})})
		want, wantEnded := []BoardCount{{"b", 500}, {"dead", 500}}, []string(nil)
		if i > 3 {
			want, wantEnded = want[:1], []string{"dead"}
		}
		slices.SortFunc(hot.Boards, func(a, b BoardCount) int { return strings.Compare(string(a.Board), string(b.Board)) })
		if !slices.Equal(hot.Boards, want) || !reflect.DeepEqual(ended, wantEnded) {
			t.Errorf("after %d s: %v, ended %v, want %v, %v", i, hot.Boards, ended, want, wantEnded)
		}
		now = now.Add(time.Second)
	}
}

// TestFleetOfRedis: reports of sidecars that are gone are deleted, and a hash of something else is not read.
func TestFleetOfRedis(t *testing.T) {
	t.Parallel()
	rdb, instance := newClient(t, testkit.Redis(t)), testkit.Name(t)
	f := NewFleet(rdb, wire.DefaultNames(), instance, quiet(), nil)
	rdb.HSet(t.Context(), f.key, "dead", report(1, wire.BoardReads{Board: "b", Rate: 500}))
	f.known["dead"] = known{1, time.Now().Add(-time.Hour)}
	if hot, err := f.Hot(t.Context()); err != nil || len(hot.Boards) != 0 || rdb.HLen(t.Context(), f.key).Val() != 0 {
		t.Errorf("%+v, %v; %d reports are left", hot, err, rdb.HLen(t.Context(), f.key).Val())
	}
	many := make(map[string]any, maxReports+1)
	for i := range maxReports + 1 {
		many[fmt.Sprint(i)] = "x"
	}
	rdb.HSet(t.Context(), f.key, many)
	if _, err := f.Hot(t.Context()); err == nil || !strings.Contains(err.Error(), "10001 sidecars") {
		t.Errorf("error %v", err)
	}
	rdb.Set(t.Context(), f.key, "x", 0)
	_, err := f.Hot(t.Context())
	if call, ok := errors.AsType[*CallError](err); !ok || call.After != AfterPause || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("error %v", err)
	}
}

// TestReportsAreAskedFor: a report has what is read more than once a second and has no other copy here, while a verdict of the
// fleet is heard of.
func TestReportsAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last []byte
		tr, err := New(Config{}, Deps{Tiers: func() *rooms.Tiers { return nil }, Open: func(b rankcache.BoardID) bool { return b == "open" },
			Exchange: func(_ context.Context, report []byte) { last = report }, Log: quiet(), Registry: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		tick := func() {
			for _, b := range []rankcache.BoardID{"often", "often", "often", "open", "open", "open", "once"} {
				tr.Count(b)
			}
			time.Sleep(second)
			tr.tick(t.Context(), time.Now())
		}
		if tick(); last != nil {
			t.Errorf("%q is reported though nobody asks", last)
		}
		tr.Observe(Verdict{At: 1, Source: "tencent"})
		if tick(); last != nil {
			t.Errorf("%q is reported to a cloud", last)
		}
		tr.Observe(Verdict{At: 2, Source: SourceFleet})
		tick()
		if r, err := wire.ParseReads(string(last)); err != nil || len(r.Boards) != 1 || r.Boards[0] != (wire.BoardReads{Board: "often", Rate: 3}) {
			t.Errorf("%+v, %v", r, err)
		}
		time.Sleep(VerdictAge)
		if tick(); last != nil {
			t.Errorf("%q is reported to a source that has gone", last)
		}
	})
}

// TestFleetLoadsNoForeignBytes: what is too long for a report, or for the name of a sidecar, is deleted and does not come here; nor
// does more than a fleet can report.
func TestFleetLoadsNoForeignBytes(t *testing.T) {
	t.Parallel()
	var came countedBytes
	rdb, instance := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Dialer: came.dial}), testkit.Name(t)
	t.Cleanup(func() { _ = rdb.Close() })
	f := NewFleet(rdb, wire.DefaultNames(), instance, quiet(), nil)
	long := strings.Repeat("x", 8<<20)
	rdb.HSet(t.Context(), f.key, "foreign", long, long, "x", "pod", report(1, wire.BoardReads{Board: "b", Rate: 500}))
	came.Store(0)
	hot, err := f.Hot(t.Context())
	if err != nil || len(hot.Boards) != 1 || hot.Ignored != 2 {
		t.Errorf("%+v, %v, want one board and two reports that are ignored", hot, err)
	}
	if n := came.Load(); n > 1<<20 {
		t.Errorf("%d bytes came from Redis", n)
	}
	if left := rdb.HLen(t.Context(), f.key).Val(); left != 1 {
		t.Errorf("%d reports are left, want 1", left)
	}
	many := make(map[string]any)
	for i := range maxReportBytes/wire.MaxReadsLen + 1 {
		many[fmt.Sprint(i)] = long[:wire.MaxReadsLen]
	}
	rdb.HSet(t.Context(), f.key, many)
	if _, err := f.Hot(t.Context()); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("error %v", err)
	}
	rdb.Del(t.Context(), f.key)
}

// countedBytes counts what connections read.
type countedBytes struct{ atomic.Int64 }

func (n *countedBytes) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	return countedConn{c, n}, err
}

type countedConn struct {
	net.Conn
	n *countedBytes
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}
