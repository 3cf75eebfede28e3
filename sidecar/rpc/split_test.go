package rpc

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar"
)

const splitRooms = `
classes: [{name: gift, board: "gift:{zone}", period: none, shards: 4}]
boards: [{match: "gift:7", mode: super-hot}]
`

// startSplit starts a listener for the board gift:7, whose shards are in memory.
func startSplit(t *testing.T) (*env, *fixture.Split, fixture.Boards[sidecar.Board]) {
	t.Helper()
	e := &env{t: t, ended: make(chan error, 1)}
	e.tiers.Store(fixture.Tiers(splitRooms)())
	s, open := fixture.NewSplit("gift:7", 4), make(fixture.Boards[sidecar.Board])
	for id, b := range s.Shards {
		open[id] = b
	}
	rows := make(map[string]float64)
	for i := range 90 {
		rows[fixture.Member(i)] = float64(i % 5)
	}
	s.Set(t, rows)
	var err error
	if e.reader, err = sidecar.NewReader(sidecar.Config{Tiers: e.tiers.Load, Boards: open, Origin: s}, nil); err != nil {
		t.Fatal(err)
	}
	e.listen(fixture.FailOnWarn(t), nil)
	return e, s, open
}

// TestSplitBoard: each method answers of a board of four shards, with equal scores everywhere, as of one that has all members; from
// memory and, where a shard is not open, from Redis. While that is away the board is not answered, and never without a part.
func TestSplitBoard(t *testing.T) {
	e, s, open := startSplit(t)
	ranked := s.Ranked()
	rows := func(from, to int) (want []*v1.Row) {
		for i, r := range ranked[from:to] {
			want = append(want, &v1.Row{Rank: proto.Int64(int64(from + i + 1)), Member: r.Member, Score: proto.Float64(r.Score)})
		}
		return want
	}
	me := ranked[40].Member
	compare := func(source string) {
		t.Helper()
		for name, call := range e.callers() {
			do := func(method string, req, res proto.Message) {
				t.Helper()
				if err := call(t.Context(), method, req, res); err != nil {
					t.Fatalf("%s %s: %v", name, method, err)
				}
			}
			page := func(p *v1.Page) {
				t.Helper()
				if p.Board != "gift:7" || p.Source != source || p.Total != 90 || !slices.Equal(p.Shards, s.Seqs()) || p.Seq != 4 || p.Run != 0 || p.State != "" {
					t.Errorf("%s: page %v, want shards %v", name, p, s.Seqs())
				}
			}
			var top v1.GetTopResponse
			do("GetTop", &v1.GetTopRequest{Address: at("gift:7"), Start: 7, Limit: 30}, &top)
			page(top.Page)
			wantRows(t, top.Page.Rows, rows(7, 37)...)
			var one v1.GetStandingResponse
			do("GetStanding", &v1.GetStandingRequest{Address: at("gift:7"), Member: me, Around: 3}, &one)
			page(one.Page)
			wantRows(t, one.Page.Rows, rows(37, 44)...)
			var several v1.BatchStandingsResponse
			do("BatchStandings", &v1.BatchStandingsRequest{Address: at("gift:7"), Members: []string{ranked[80].Member, me}, Sort: v1.Sort_SORT_RANK, Bounds: &v1.Bounds{MaxAgeMs: time.Hour.Milliseconds()}}, &several)
			page(several.Page)
			if len(several.Standings) != 2 || several.Standings[0].GetRank() != 41 || several.Standings[1].GetRank() != 81 {
				t.Errorf("%s: standings %v", name, &several)
			}
			var score v1.GetScoreRankResponse
			do("GetScoreRank", &v1.GetScoreRankRequest{Address: at("gift:7"), Score: 3}, &score)
			page(score.Page)
			if score.GetRank() != 19 || score.Members != 18 {
				t.Errorf("%s: score 3 has %v", name, &score)
			}
			var boards v1.GetBoardsResponse
			do("GetBoards", &v1.GetBoardsRequest{Boards: []*v1.GetTopRequest{{Address: at("gift:7"), Limit: 3}, {Address: at("gift:7"), Limit: 1, Order: v1.Direction_DIRECTION_ASCENDING}}}, &boards)
			page(boards.Boards[0].GetTop().GetPage())
			wantRows(t, boards.Boards[0].GetTop().GetPage().GetRows(), rows(0, 3)...)
			if last := boards.Boards[1].GetTop().GetPage().GetRows(); len(last) != 1 || last[0].Member != ranked[89].Member {
				t.Errorf("%s: the last row is %v", name, last)
			}
		}
	}
	compare("local")
	delete(open, "gift:7.s2")
	testkit.Eventually(t, 10*time.Second, func() error { // a page may be answered as it was some ms ago
		if a := rankcache.One(t.Context(), e.reader, rankcache.Query{Board: s.ID, Limit: 1}); a.Source != rankcache.SourceRedis {
			return fmt.Errorf("a page of %v", a.Source)
		}
		return nil
	})
	compare("redis")
	s.Away.Store(true)
	call := e.callers()["connect"]
	for method, req := range map[string]proto.Message{"GetTop": &v1.GetTopRequest{Address: at("gift:7")}, "GetStanding": &v1.GetStandingRequest{Address: at("gift:7"), Member: me}} {
		if got := codeOf(call(t.Context(), method, req, map[string]proto.Message{"GetTop": &v1.GetTopResponse{}, "GetStanding": &v1.GetStandingResponse{}}[method])); got != "origin_unavailable" {
			t.Errorf("%s without a shard: %s", method, got)
		}
	}
	if got := codeOf(call(t.Context(), "GetTop", &v1.GetTopRequest{Address: at("gift:7"), Bounds: &v1.Bounds{MinSeq: 1}}, &v1.GetTopResponse{})); got != "not_supported" {
		t.Errorf("a bound without a member: %s", got)
	}
	wantProblem(t, e, "/v1/boards/gift:7/live", 503, "origin_unavailable")
}

// TestWatchSplit: a change of one shard is sent, with the seqs of all.
func TestWatchSplit(t *testing.T) {
	e, s, _ := startSplit(t)
	stream := e.watchGRPC(e.grpc(), &v1.WatchRequest{Address: at("gift:7"), Limit: 3})
	next := func() *v1.WatchResponse {
		t.Helper()
		m := new(v1.WatchResponse)
		if err := stream.RecvMsg(m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	if p := next().GetPage(); !slices.Equal(p.GetShards(), s.Seqs()) || len(p.GetRows()) != 3 || p.GetState() != "" {
		t.Errorf("first %v", p)
	}
	e.Changed(s.Move(t, "new", 99))
	m := next()
	if p := m.GetDiff().GetPage(); m.GetPage() != nil {
		wantRows(t, m.GetPage().Rows[:1], &v1.Row{Rank: proto.Int64(1), Member: "new", Score: proto.Float64(99)})
	} else if !slices.Equal(p.GetShards(), s.Seqs()) {
		t.Errorf("then %v, want shards %v", m, s.Seqs())
	}
}
