package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"rankcache"
	"rankcache/internal/testkit/fixture"
	v1 "rankcache/proto/rankcache/v1"
)

// caller calls a method by one of the clients that people use.
type caller func(ctx context.Context, method string, req, res proto.Message) error

// callers returns the clients of gRPC and Connect.
func (e *env) callers() map[string]caller {
	e.t.Helper()
	conn := e.grpc()
	all := map[string]caller{"grpc-go": func(ctx context.Context, method string, req, res proto.Message) error {
		return conn.Invoke(ctx, "/rankcache.v1.Boards/"+method, req, res)
	}}
	for name, options := range map[string][]connect.ClientOption{"connect": nil, "connect, JSON": {connect.WithProtoJSON()}, "connect as gRPC-web": {connect.WithGRPCWeb()}} {
		all[name] = func(ctx context.Context, method string, req, res proto.Message) error {
			return callConnect(ctx, e.url("/rankcache.v1.Boards/"+method), req, res, options)
		}
	}
	return all
}

func callConnect(ctx context.Context, url string, req, res proto.Message, options []connect.ClientOption) error {
	switch req := req.(type) {
	case *v1.GetTopRequest:
		return call(ctx, url, req, res.(*v1.GetTopResponse), options)
	case *v1.GetStandingRequest:
		return call(ctx, url, req, res.(*v1.GetStandingResponse), options)
	case *v1.BatchStandingsRequest:
		return call(ctx, url, req, res.(*v1.BatchStandingsResponse), options)
	case *v1.GetScoreRankRequest:
		return call(ctx, url, req, res.(*v1.GetScoreRankResponse), options)
	case *v1.GetBoardsRequest:
		return call(ctx, url, req, res.(*v1.GetBoardsResponse), options)
	}
	return errors.New("no such method")
}

func call[Req, Res any](ctx context.Context, url string, req *Req, res *Res, options []connect.ClientOption) error {
	answer, err := connect.NewClient[Req, Res](http.DefaultClient, url, options...).CallUnary(ctx, connect.NewRequest(req))
	if err == nil {
		proto.Merge(any(res).(proto.Message), any(answer.Msg).(proto.Message))
	}
	return err
}

func (e *env) grpc() *grpc.ClientConn {
	e.t.Helper()
	conn, err := grpc.NewClient(e.addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func at(board string) *v1.Address { return &v1.Address{Board: board} }

// TestBoards asks each method by each client.
func TestBoards(t *testing.T) {
	e := start(t)
	row := func(i, n int, seq uint64) *v1.Row {
		return &v1.Row{Rank: proto.Int64(int64(i + 1)), Member: fixture.Member(i), Score: proto.Float64(fixture.ScoreAt(seq, n, i))}
	}
	profiled := row(0, 57000, 917)
	profiled.Profile = proto.String(`{"nick":"N-m000000","v":0}`)
	for name, call := range e.callers() {
		t.Run(name, func(t *testing.T) {
			do := func(method string, req, res proto.Message) {
				t.Helper()
				if err := call(t.Context(), method, req, res); err != nil {
					t.Fatalf("%s: %v", method, err)
				}
			}
			var top v1.GetTopResponse
			do("GetTop", &v1.GetTopRequest{Address: at("local"), Limit: 2}, &top)
			state := fixture.Written.StateAt(917)
			wantRows(t, top.Page.Rows, row(0, 57000, 917), row(1, 57000, 917))
			if p := top.Page; p.Board != "local" || p.Source != "local" || p.Seq != 917 || p.Run != state.Run || p.State != state.String() || p.Total != 57000 ||
				!p.PublishedAt.AsTime().Equal(fixture.Published) || p.Limit != 2 || top.AgeMs <= 0 || p.Order != v1.Direction_DIRECTION_DESCENDING {
				t.Errorf("page %v", &top)
			}
			top.Reset()
			do("GetTop", &v1.GetTopRequest{Address: at("elsewhere"), Limit: 1, Start: 3, Order: v1.Direction_DIRECTION_ASCENDING}, &top)
			wantRows(t, top.Page.Rows, &v1.Row{Rank: proto.Int64(4), Member: fixture.Member(996), Score: proto.Float64(fixture.ScoreAt(12, 1000, 996))})
			top.Reset()
			score := func(member int) float64 { return fixture.ScoreAt(917, 57000, member) }
			do("GetTop", &v1.GetTopRequest{Address: at("local"), Limit: 1, Start: 2, MinScore: proto.Float64(score(9)), MaxScore: proto.Float64(score(4) + 0.5)}, &top)
			wantRows(t, top.Page.Rows, row(6, 57000, 917))
			if p := top.Page; p.Start != 6 || p.Matches == nil || *p.Matches != 6 || p.Beyond {
				t.Errorf("between two scores: %v", &top)
			}
			var ranges v1.GetBoardsResponse
			do("GetBoards", &v1.GetBoardsRequest{Boards: []*v1.GetTopRequest{{Address: at("local"), MaxScore: proto.Float64(score(56999))}, {Address: at("local"), MinScore: proto.Float64(2), MaxScore: proto.Float64(1)}}}, &ranges)
			if page := ranges.Boards[0].GetTop().GetPage(); page.GetMatches() != 1 || page.Rows[0].GetRank() != 57000 || ranges.Boards[1].GetProblem().GetArgument() != "min_score" {
				t.Errorf("boards between two scores: %v", &ranges)
			}
			var rank v1.GetScoreRankResponse
			do("GetScoreRank", &v1.GetScoreRankRequest{Address: at("local"), Score: score(70)}, &rank)
			if rank.GetRank() != 71 || rank.Members != 1 || rank.Page.Total != 57000 || rank.Page.Board != "local" || len(rank.Page.Rows) > 0 {
				t.Errorf("the rank of a score: %v", &rank)
			}
			rank.Reset()
			do("GetScoreRank", &v1.GetScoreRankRequest{Address: at("elsewhere"), Score: 1e9, Order: v1.Direction_DIRECTION_ASCENDING}, &rank)
			if rank.GetRank() != 1001 || rank.Members != 0 || rank.Page.Source != "redis" {
				t.Errorf("the rank of a score in Redis: %v", &rank)
			}
			top.Reset()
			do("GetTop", &v1.GetTopRequest{Address: at("local"), Limit: 1, Profiles: true}, &top)
			wantRows(t, top.Page.Rows, profiled)

			var one v1.GetStandingResponse
			do("GetStanding", &v1.GetStandingRequest{Address: at("local"), Member: fixture.Member(8)}, &one)
			wantRows(t, append(one.Page.Rows, one.Standing), row(8, 57000, 917))
			one.Reset()
			do("GetStanding", &v1.GetStandingRequest{Address: at("local"), Member: fixture.Member(8), Around: 1}, &one)
			wantRows(t, append(one.Page.Rows, one.Standing), row(7, 57000, 917), row(8, 57000, 917), row(9, 57000, 917), row(8, 57000, 917))

			var batch v1.BatchStandingsResponse
			do("BatchStandings", &v1.BatchStandingsRequest{Address: at("local"), Members: []string{"nobody", fixture.Member(5)}}, &batch)
			wantRows(t, batch.Standings, &v1.Row{Member: "nobody"}, row(5, 57000, 917))

			var several v1.GetBoardsResponse
			do("GetBoards", &v1.GetBoardsRequest{Boards: []*v1.GetTopRequest{{Address: at("shut")}, {Address: at("tiny")}, {Address: at("elsewhere"), Limit: 1}, {}}}, &several)
			boards := several.Boards
			if boards[0].GetProblem().GetCode() != "blocked" || boards[3].GetProblem().GetArgument() != "board" || len(boards[1].GetTop().GetPage().GetRows()) != 3 {
				t.Errorf("boards %v", boards)
			}
			wantRows(t, boards[2].GetTop().GetPage().GetRows(), row(0, 1000, 12))
		})
	}
}

func wantRows(t *testing.T, got []*v1.Row, want ...*v1.Row) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestMemberWithoutARank: a member that its board has trimmed has a score, and no rank.
func TestMemberWithoutARank(t *testing.T) {
	e := start(t)
	e.Origin.Trimmed.Store("out", 5.25)
	e.tiers.Store(fixture.Tiers(fixture.Rooms + "classes:\n- {name: local, board: local, period: none, ops: [incr], trim: 10, ties: first}\n")())
	for name, call := range e.callers() {
		out := &v1.Row{Member: "out", Score: proto.Float64(5)}
		for _, around := range []int32{0, 2} {
			var one v1.GetStandingResponse
			if err := call(t.Context(), "GetStanding", &v1.GetStandingRequest{Address: at("local"), Member: "out", Around: around}, &one); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			wantRows(t, append(one.Page.GetRows(), one.Standing), out)
		}
		var batch v1.BatchStandingsResponse
		if err := call(t.Context(), "BatchStandings", &v1.BatchStandingsRequest{Address: at("local"), Members: []string{"out", "nobody"}}, &batch); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantRows(t, batch.Standings, out, &v1.Row{Member: "nobody"})
	}
}

// TestOnlyRedisLocks: a page by class is open until the grace is over, closing from then on, and
// closed when Redis tells so, in unary answers and in streams.
func TestOnlyRedisLocks(t *testing.T) {
	end := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after  time.Duration // the end; the grace is 5 s
		life   rankcache.Life
		state  string
		locked string
	}{{-time.Second, rankcache.LifeOpen, "running", "open"}, {4 * time.Second, rankcache.LifeOpen, "ended", "open"}, {6 * time.Second, rankcache.LifeOpen, "ended", "closing"},
		{time.Hour, rankcache.LifeClosed, "ended", "closed"}, {time.Hour, rankcache.LifeFinal, "ended", "final"}} {
		clock, file := classClock()
		clock.nanos.Store(end.Add(c.after).UnixNano())
		e := start(t, func(cfg *Config) { cfg.Now, cfg.Classes = clock.now, file })
		e.Origin.Life = c.life
		var top v1.GetTopResponse
		err := e.callers()["connect"](t.Context(), "GetTop", &v1.GetTopRequest{Address: &v1.Address{Class: "gift", Dimensions: map[string]string{"zone": "eu"}, At: "20261123"}, Limit: 1}, &top)
		if err != nil || top.Page.Locked != c.locked || top.Page.Period.State != c.state {
			t.Errorf("%v after the end, life %v: %v, %v, want %s", c.after, c.life, &top, err, c.locked)
		}
		if page := e.watch("/v1/classes/gift/live?zone=eu&at=20261123", "", nil).want("page"); page.data["locked"] != c.locked {
			t.Errorf("%v after the end, life %v: a stream tells %v, want %s", c.after, c.life, page.data["locked"], c.locked)
		}
		if found, p := (boardFinder{e.Server}).find(&address{class: "gift", dims: map[string]string{"zone": "eu"}, at: "20261123"}); c.after == 4*time.Second && (p != nil || found.lasts != time.Second) {
			t.Errorf("a stream in the grace lasts %v, %v, want 1s", found.lasts, p)
		}
	}
}

// TestErrorsHaveTheCodesOfHTTP by each client.
func TestErrorsHaveTheCodesOfHTTP(t *testing.T) {
	clock, file := classClock()
	e := start(t, func(c *Config) { c.Now, c.Classes = clock.now, file })
	e.Origin.Seq.Store(5)
	for code, req := range map[string]proto.Message{
		"blocked":         &v1.GetTopRequest{Address: at("shut")},
		"bad_argument":    &v1.GetTopRequest{Address: at("local"), Limit: 501},
		"unknown_member":  &v1.GetStandingRequest{Address: at("local"), Member: "nobody"},
		"seq_not_reached": &v1.GetTopRequest{Address: at("elsewhere"), Bounds: &v1.Bounds{MinSeq: 99}},
		"unknown_class":   &v1.GetTopRequest{Address: &v1.Address{Class: "none"}},
		"no_period":       &v1.GetTopRequest{Address: &v1.Address{Class: "ladder"}},
		"unknown_period":  &v1.GetTopRequest{Address: &v1.Address{Class: "gift", Dimensions: map[string]string{"zone": "eu"}, At: "20200101"}},
	} {
		method, res := "GetTop", proto.Message(&v1.GetTopResponse{})
		if _, ok := req.(*v1.GetStandingRequest); ok {
			method, res = "GetStanding", &v1.GetStandingResponse{}
		}
		for name, call := range e.callers() {
			if got := codeOf(call(t.Context(), method, req, res)); got != code {
				t.Errorf("%s: %s, want %s", name, got, code)
			}
		}
	}
}

// codeOf returns the code of the problem in an error's detail.
func codeOf(err error) string {
	if ce, ok := errors.AsType[*connect.Error](err); ok {
		for _, d := range ce.Details() {
			if m, err := d.Value(); err == nil {
				return m.(*v1.Problem).GetCode()
			}
		}
	}
	if s, ok := status.FromError(err); ok {
		for _, d := range s.Details() {
			return d.(*v1.Problem).GetCode()
		}
	}
	return "none: " + err.Error()
}

func TestBadArguments(t *testing.T) {
	e := start(t)
	call := e.callers()["grpc-go"]
	for _, req := range []*v1.GetTopRequest{
		{}, {Address: at("a b")}, {Address: at("local"), Limit: -1}, {Address: at("local"), Start: -1}, {Address: at("local"), Order: 7},
		{Address: &v1.Address{Board: "local", Class: "gift"}}, {Address: &v1.Address{Board: "local", At: "now"}},
		{Address: at("local"), MinScore: proto.Float64(2), MaxScore: proto.Float64(1)}, {Address: at("local"), MinScore: proto.Float64(math.NaN())},
		{Address: at("local"), Bounds: &v1.Bounds{WaitMs: 5001}}, {Address: at("local"), Bounds: &v1.Bounds{MinState: "x"}}, {Address: &v1.Address{Board: "local", Room: "\x01"}},
	} {
		if err := call(t.Context(), "GetTop", req, &v1.GetTopResponse{}); status.Code(err) != codes.InvalidArgument || codeOf(err) != "bad_argument" {
			t.Errorf("%v: %v", req, err)
		}
	}
}

// TestPlainJSON: a POST by any HTTP client.
func TestPlainJSON(t *testing.T) {
	e := start(t)
	res, err := http.Post(e.url("/rankcache.v1.Boards/GetTop"), "application/json", bytes.NewReader([]byte(`{"address":{"board":"local"},"limit":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct {
		Page struct {
			Seq  string
			Rows []struct {
				Rank, Member string
				Score        float64
			}
		}
		AgeMs string
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || res.StatusCode != http.StatusOK || got.Page.Seq != "917" || len(got.Page.Rows) != 1 ||
		got.Page.Rows[0].Member != fixture.Member(0) || got.AgeMs == "" {
		t.Errorf("%s: %+v, %v", res.Status, got, err)
	}
}

// TestWatchByGRPC applies pages and diffs as messages.
func TestWatchByGRPC(t *testing.T) {
	e := start(t)
	conn := e.grpc()
	watch := func(lastID string) grpc.ClientStream {
		t.Helper()
		return e.watchGRPC(conn, &v1.WatchRequest{Address: at("local"), Limit: 3, Profiles: true, LastId: lastID})
	}
	next := func(s grpc.ClientStream) *v1.WatchResponse {
		t.Helper()
		m := &v1.WatchResponse{}
		if err := s.RecvMsg(m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	s := watch("")
	page := next(s)
	rows := page.GetPage().GetRows()
	if len(rows) != 3 || rows[2].GetProfile() == "" || page.GetPage().GetSeq() != 917 || page.GetPage().GetProfilesMissing() != 0 {
		t.Fatalf("first %v", page)
	}
	top := fixture.Copy(e.Local.Head.Load())
	top.Entries[1].Score += 0.5
	top.State = fixture.Written.StateAt(918)
	top.PublishedAt = time.Now()
	e.Local.Head.Store(top)
	e.Changed("local")
	diff := next(s).GetDiff()
	if diff.GetBase() != page.Id || diff.GetLen() != 3 || len(diff.GetChanges()) != 1 || diff.Changes[0].At != 1 || diff.Changes[0].Row.GetRank() != 2 ||
		diff.Changes[0].Row.GetScore() != rows[1].GetScore()+0.5 || diff.Page.Seq != 918 {
		t.Errorf("then %v", diff)
	}
	if d := next(watch(page.Id)).GetDiff(); !proto.Equal(d, diff) {
		t.Errorf("resumed with %v, want %v", d, diff)
	}
	e.Drain()
	if end := next(s).GetEnd(); end.GetCode() != "draining" || end.RetryMs < 100 || end.RetryMs > 1000 {
		t.Errorf("at last %v", end)
	}
}

func TestHealthAndReflection(t *testing.T) {
	e := start(t)
	conn := e.grpc()
	check := func() grpc_health_v1.HealthCheckResponse_ServingStatus {
		t.Helper()
		res, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "rankcache.v1.Boards"})
		if err != nil {
			t.Fatal(err)
		}
		return res.Status
	}
	if got := check(); got != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health %v", got)
	}
	e.Drain()
	if got := check(); got != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health %v while draining", got)
	}
	s, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "rankcache.v1.Boards"}}); err != nil {
		t.Fatal(err)
	}
	if res, err := s.Recv(); err != nil || len(res.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("reflection %v, %v", res, err)
	}
}

// TestManyStreamsOnOneConnection: a gateway has one connection, and net/http's limit would have the 251st stream wait.
func TestManyStreamsOnOneConnection(t *testing.T) {
	e := start(t)
	conn := e.grpc()
	for i := range 300 {
		s := e.watchGRPC(conn, &v1.WatchRequest{Address: at("local"), Limit: 2})
		m := new(v1.WatchResponse)
		if err := s.RecvMsg(m); err != nil || m.GetPage() == nil {
			t.Fatalf("stream %d: %v, %v", i+1, m, err)
		}
	}
}
