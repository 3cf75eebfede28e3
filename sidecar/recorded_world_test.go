package sidecar_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/compat"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/httpapi"
	"rankcache/sidecar/resp"
	"rankcache/sidecar/rpc"
	"rankcache/wire"
)

const recordedRooms = `
rooms:
  - {uid: "88", mode: super-hot, boards: [whole, tiny, none, old, unproved, "tie:1", "hourly:1:20261123-H10", "hourly:1:20261123-H09", "act:7", "shown"]}
  - {uid: "99", mode: blocked, boards: [shut]}
  - {uid: "77", mode: hot, boards: [hot, hotwhole, "hourly:2:20261123-H10"]}
boards:
  - {match: "9_*", mode: blocked}
classes:
  - {name: act, title: Act, board: "act:{x}", period: none, ids: {act: 1, rank: 1}, group: shown, top: 100}
  - {name: shown, title: Groups, board: shown, period: none, ids: {act: 1, rank: 2}}
  - {name: far, board: "far:{zone}", period: none, ids: {act: 1, rank: 3}}
  - {name: tie, board: "tie:{x}", period: none, ties: first, top: 60, ids: {act: 1, rank: 4}}
  - {name: hourly, board: "hourly:{zone}:{period}", period: 1h, keep: 24h, grace: 10s, ids: {act: 2, rank: 1}}
  - {name: trimmed, board: "trimmed:{zone}", period: none, ops: [incr], trim: 40, ids: {act: 1, rank: 5}}
  - {name: two, board: "two:{x}:{y}", period: none}
`

// recordedNow is what periods run by: a second before 10:30.
var recordedNow = time.Date(2026, 11, 23, 10, 29, 59, 0, time.UTC)

const recordedRun = 1 << 40

// recordedWorld is three sidecars: one with all tiers and a Redis, one whose Redis is away,
// and one where a ledger answers instead.
type recordedWorld struct {
	t                  testing.TB
	redis              *redis.Client
	boards             *localboard.Boards
	hot                recordedHot
	file               *rooms.File
	http, away, ledger string // addresses of data ports
	rpc, rpcAway, resp string
	states             map[string]string // of boards in Redis
}

// recordedBoards are the boards: how many members, and the score of each.
var recordedBoards = []struct {
	id      rankcache.BoardID
	members int
	score   func(i int) float64
	seq     uint64 // 0: no meta
	life    wire.Life
}{
	{"whole", 700, func(i int) float64 { return float64(1000 - i) }, 900, 0},
	{"tiny", 3, func(i int) float64 { return float64(10*i) + 0.25 }, 7, 0},
	{"none", 0, nil, 3, 0},
	{"old", 60, func(i int) float64 { return float64(60 - i) }, 61, 0},
	{"unproved", 20, func(i int) float64 { return float64(i % 5) }, 21, 0},
	{"shown", 12, func(i int) float64 { return float64(i / 3) }, 12, 0},
	{"tie:1", 64, func(i int) float64 { return float64(i/4) + 0.5 + float64(i%4)/8 }, 70, 0},
	{"tie:2", 64, func(i int) float64 { return float64(i/4) + 0.5 + float64(i%4)/8 }, 70, 0},
	{"hourly:1:20261123-H10", 30, func(i int) float64 { return float64(i * i) }, 30, 0},
	{"hourly:1:20261123-H09", 30, func(i int) float64 { return float64(1000 - i*i) }, 31, 0},
	{"hourly:1:20261123-H08", 30, func(i int) float64 { return float64(500 - i) }, 32, wire.LifeClosed},
	{"hourly:2:20261123-H10", 120, func(i int) float64 { return float64(i % 40) }, 130, 0},
	{"hourly:2:20261123-H09", 120, func(i int) float64 { return float64(i % 30) }, 131, wire.LifeClosing},
	{"act:7", 520, func(i int) float64 { return float64(i) }, 520, 0},
	{"hot", 150, func(i int) float64 { return float64(1 + i/2) }, 160, 0},
	{"hotwhole", 8, func(i int) float64 { return float64(8 - i) }, 9, 0},
	{"far:9", 260, func(i int) float64 { return float64(i) * 1.5 }, 261, 0},
	{"small", 80, func(i int) float64 { return float64(i % 20) }, 81, 0},
	{"foreign", 12, func(i int) float64 { return -float64(i) }, 0, 0},
	{"trimmed:1", 40, func(i int) float64 { return float64(100 + i) }, 90, 0},
	{"final", 15, func(i int) float64 { return float64(i) }, 16, wire.LifeFinal},
	{"9_9", 2, func(i int) float64 { return float64(i) }, 2, 0},
}

func recordedMember(i int) string { return fmt.Sprintf("m%03d", i) }

func newRecordedWorld(t testing.TB) *recordedWorld {
	t.Helper()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	w := &recordedWorld{t: t, boards: localboard.NewBoards(), hot: recordedHot{}, redis: redis.NewClient(&redis.Options{Addr: server.Addr()})}
	t.Cleanup(func() { _ = w.redis.Close() })
	var err error
	if w.file, err = rooms.Parse([]byte(recordedRooms)); err != nil {
		t.Fatal(err)
	}
	w.fillRedis()
	for _, id := range []rankcache.BoardID{"whole", "tiny", "none", "old", "tie:1", "hourly:1:20261123-H10", "hourly:1:20261123-H09", "act:7", "shown"} {
		w.open(id, true)
	}
	w.open("unproved", false)
	w.keepHot("hot", 100)
	w.keepHot("hotwhole", 100)
	w.keepHot("hourly:2:20261123-H10", 100)
	w.states = make(map[string]string)
	for _, b := range recordedBoards {
		w.states[string(b.id)] = testkit.BoardState(t, w.redis, wire.DefaultNames(), b.id).String()
	}
	w.serve(server.Addr())
	return w
}

// fillRedis writes all boards.
func (w *recordedWorld) fillRedis() {
	for _, b := range recordedBoards {
		rows := make([]redis.Z, b.members)
		for i := range rows {
			rows[i] = redis.Z{Member: recordedMember(i), Score: b.score(i)}
		}
		if len(rows) > 0 {
			if err := w.redis.ZAdd(w.t.Context(), string(b.id), rows...).Err(); err != nil {
				w.t.Fatal(err)
			}
		}
		if b.seq == 0 {
			continue
		}
		meta := wire.Meta{State: rankcache.State{Run: recordedRun, Seq: b.seq, HasSum: true}, Members: uint64(len(rows)), Life: b.life, OrderLife: 3600, Buckets: 1}
		for _, m := range rows {
			meta.Sum = (meta.Sum + wire.Hash(m.Member.(string), m.Score)) & wire.SumMask
		}
		if err := w.redis.Set(w.t.Context(), wire.DefaultNames().MetaKey(b.id), wire.AppendMeta(nil, &meta), 0).Err(); err != nil {
			w.t.Fatal(err)
		}
	}
	scores := wire.DefaultNames().CompanionKey("trimmed:1", wire.Scores) // of members that were driven out
	if err := w.redis.HSet(w.t.Context(), scores, recordedMember(55), 12.5, recordedMember(70), 0, recordedMember(41), 7).Err(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.redis.Set(w.t.Context(), "wrong", "no board", 0).Err(); err != nil {
		w.t.Fatal(err)
	}
}

// open fills a local board as Redis has it, one update behind each other, and opens it. An
// unproved board has no run.
func (w *recordedWorld) open(id rankcache.BoardID, proved bool) {
	w.t.Helper()
	for _, known := range recordedBoards {
		if known.id != id {
			continue
		}
		b := w.boards.Create(id)
		es := make([]rankcache.Entry, known.members)
		state := rankcache.State{Run: recordedRun, Seq: known.seq, HasSum: true}
		for i := range es {
			es[i] = rankcache.Entry{Member: recordedMember(i), Score: known.score(i)}
			state.Sum = (state.Sum + wire.Hash(es[i].Member, es[i].Score)) & wire.SumMask
		}
		if err := b.Load(known.seq, es); err != nil {
			w.t.Fatal(err)
		}
		if proved {
			b.SetRun(state.Run)
			b.Sum()
			if !b.Prove(state) {
				w.t.Fatalf("%s is not proved", id)
			}
		}
		b.Publish()
		at := time.Now().Add(24 * time.Hour) // never too old
		if id == "old" {
			at = time.Now().Add(-time.Hour)
		}
		b.MarkCurrent(at)
		w.boards.Open(id)
		return
	}
	w.t.Fatal("no such board: ", id)
}

// keepHot makes the head of a board the page of a hot board.
func (w *recordedWorld) keepHot(id rankcache.BoardID, rows int64) {
	w.t.Helper()
	all, err := w.redis.ZRevRangeWithScores(w.t.Context(), string(id), 0, rows-1).Result()
	if err != nil {
		w.t.Fatal(err)
	}
	top := &rankcache.Top{Board: id, State: testkit.BoardState(w.t, w.redis, wire.DefaultNames(), id), PublishedAt: time.Now()}
	top.Members = int(w.redis.ZCard(w.t.Context(), string(id)).Val())
	for _, z := range all {
		top.Entries = append(top.Entries, rankcache.Entry{Member: z.Member.(string), Score: z.Score})
	}
	w.hot[id] = top
}

// recordedProfiles knows members whose number is not a multiple of 7; those of 11 come late.
type recordedProfiles struct{}

func (recordedProfiles) Join(_ context.Context, members []string, dst [][]byte) (missing int, fresh func() bool) {
	for i, m := range members {
		n := 0
		_, err := fmt.Sscanf(m, "m%d", &n)
		switch {
		case err != nil || n%7 == 0:
		case n%11 == 0:
			missing++
		default:
			dst[i] = fmt.Appendf(nil, `{"nick":"N%d","avatar":"a/%s"}`, n, m)
		}
	}
	return missing, func() bool { return true }
}

// serve starts the listeners.
func (w *recordedWorld) serve(redisAddr string) {
	w.t.Helper()
	there := w.origin(redisAddr)
	away := recordedAway{}
	readers := make([]*sidecar.Reader, 3)
	tiers := w.file.Resolve(nil)
	for i, cfg := range []sidecar.Config{{Origin: there}, {Origin: away}, {Origin: away, Ledger: there}} {
		cfg.Tiers, cfg.Boards, cfg.Hot, cfg.Profiles = func() *rooms.Tiers { return tiers }, recordedBoardsOpen{w.boards}, w.hot, recordedProfiles{}
		reader, err := sidecar.NewReader(cfg, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		readers[i] = reader
	}
	w.http, w.away, w.ledger = w.serveHTTP(readers[0]), w.serveHTTP(readers[1]), w.serveHTTP(readers[2])
	w.rpc, w.rpcAway = w.serveRPC(readers[0]), w.serveRPC(readers[1])
	w.resp = w.serveRESP(readers[0], redisAddr)
}

func (w *recordedWorld) origin(addr string) *origin.Origin {
	w.t.Helper()
	client, err := origin.Dial(origin.Options{URL: "redis://" + addr})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = client.Close() })
	return origin.New(client, wire.DefaultNames())
}

func (w *recordedWorld) serveHTTP(r *sidecar.Reader) string {
	w.t.Helper()
	classes, clock := func() *rooms.File { return w.file }, func() time.Time { return recordedNow }
	older, err := compat.NewReads(compat.Config{Reader: r, Profiles: r.Profiles(), Classes: classes, Problem: httpapi.ProblemOf, Board: "whole", Now: clock})
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := httpapi.New(r, httpapi.Config{Classes: classes, Now: clock, Compat: older}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.run(s.Serve)
}

func (w *recordedWorld) serveRPC(r *sidecar.Reader) string {
	w.t.Helper()
	s, err := rpc.New(r, rpc.Config{Classes: func() *rooms.File { return w.file }, Now: func() time.Time { return recordedNow }}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.run(s.Serve)
}

func (w *recordedWorld) serveRESP(r *sidecar.Reader, redisAddr string) string {
	w.t.Helper()
	s, err := resp.New(r, resp.Config{Names: wire.DefaultNames(), UpstreamTimeout: 10 * time.Second, Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", redisAddr)
	}}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.run(func(ctx context.Context, ln net.Listener) error { _ = ln.Close(); return s.Run(ctx) })
	testkit.Eventually(w.t, 10*time.Second, func() error {
		if !s.Status().Reached {
			return fmt.Errorf("nothing was learned from Redis")
		}
		return nil
	})
	return w.run(s.Serve)
}

// run serves until the end of the test and returns the address.
func (w *recordedWorld) run(serve func(context.Context, net.Listener) error) string {
	w.t.Helper()
	ln := testkit.Listen(w.t, "tcp")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, ln) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !strings.Contains(err.Error(), "closed") {
			w.t.Error(err)
		}
	})
	return ln.Addr().String()
}
