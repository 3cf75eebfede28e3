package rpc

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/proto"

	"rankcache"
	"rankcache/internal/httpserve"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

const (
	boardsService = "rankcache.v1.Boards"
	maxRequest    = 256 << 10 // bytes
	maxBoards     = 10        // of one request
)

type services struct{ *Server } // the methods of rankcache.v1.Boards, health and reflection

// handle adds the service, its health and its reflection to the mux.
func (s services) handle(mux *http.ServeMux) {
	options := connect.WithHandlerOptions(connect.WithReadMaxBytes(maxRequest), connect.WithCompressMinBytes(never), connect.WithRecover(s.recovered),
		connect.WithInterceptors(measured(s.durations)))
	add := func(path string, h http.Handler) {
		mux.Handle(path, httpserve.SlowBodies(connect.NewError(connect.CodeInvalidArgument, httpserve.ErrSlow), h))
	}
	procedure := func(name string) string { return "/" + boardsService + "/" + name }
	add(procedure("GetTop"), connect.NewUnaryHandlerSimple(procedure("GetTop"), s.getTop, options))
	add(procedure("GetStanding"), connect.NewUnaryHandlerSimple(procedure("GetStanding"), s.getStanding, options))
	add(procedure("BatchStandings"), connect.NewUnaryHandlerSimple(procedure("BatchStandings"), s.batchStandings, options))
	add(procedure("GetScoreRank"), connect.NewUnaryHandlerSimple(procedure("GetScoreRank"), s.getScoreRank, options))
	add(procedure("GetBoards"), connect.NewUnaryHandlerSimple(procedure("GetBoards"), s.getBoards, options))
	add(procedure("Watch"), withControl(connect.NewServerStreamHandlerSimple(procedure("Watch"), watchService{s}.watch, options)))
	add(grpchealth.NewHandler(s, options))
	reflector := grpcreflect.NewStaticReflector(boardsService)
	add(grpcreflect.NewHandlerV1(reflector, options))
	add(grpcreflect.NewHandlerV1Alpha(reflector, options))
}

const never = 1 << 30 // more bytes than any message has: compressing what goes over loopback costs more than sending it

// Check implements [grpchealth.Checker].
func (s services) Check(_ context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if req.Service != "" && req.Service != boardsService {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("no service %.80q: want %s", req.Service, boardsService))
	}
	if s.hub.Draining() {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}

func (s services) recovered(_ context.Context, spec connect.Spec, _ http.Header, fault any) error {
	s.log.Error("method panicked", "procedure", spec.Procedure, "fault", fault)
	return errorOf(&encode.Problem{Code: encode.CodeInternal})
}

func addressOf(a *v1.Address, order v1.Direction, limit int32, profiles bool, shown *v1.Show) address {
	to := address{board: rankcache.BoardID(a.GetBoard()), class: a.GetClass(), dims: a.GetDimensions(), at: a.GetAt(), room: a.GetRoom(), limit: int(limit), profiles: profiles,
		show: show{mode: modeOf[shown.GetRankMode()], percentile: shown.GetPercentile(), trend: shown.GetTrend()}}
	switch order {
	case v1.Direction_DIRECTION_ASCENDING:
		to.order = rankcache.LowestFirst
	case v1.Direction_DIRECTION_DESCENDING:
		to.order = rankcache.HighestFirst
	}
	return to
}

// modeOf are the modes that there are.
var modeOf = map[v1.RankMode]rankcache.RankMode{v1.RankMode_RANK_MODE_UNSPECIFIED: rankcache.Ordinal, v1.RankMode_RANK_MODE_ORDINAL: rankcache.Ordinal,
	v1.RankMode_RANK_MODE_COMPETITION: rankcache.Competition, v1.RankMode_RANK_MODE_DENSE: rankcache.Dense, v1.RankMode_RANK_MODE_APPROX: rankcache.Approx}

func (s services) locate(a *v1.Address, order v1.Direction, limit int32, profiles bool, shown *v1.Show) (found, *encode.Problem) {
	to := addressOf(a, order, limit, profiles, shown)
	_, known := modeOf[shown.GetRankMode()]
	switch {
	case !known:
		return found{}, encode.BadArgument("rank_mode", "want RANK_MODE_ORDINAL, RANK_MODE_COMPETITION, RANK_MODE_DENSE or RANK_MODE_APPROX")
	case order < 0 || order > v1.Direction_DIRECTION_ASCENDING:
		return found{}, encode.BadArgument("order", "want DIRECTION_DESCENDING or DIRECTION_ASCENDING")
	case to.board != "" && to.class != "":
		return found{}, encode.BadArgument("address", "want board or class, not both")
	case to.class == "" && (len(to.dims) > 0 || to.at != ""):
		return found{}, encode.BadArgument("address", "dimensions and at are of a class")
	}
	return boardFinder(s).find(&to)
}

func bound(q *rankcache.Query, b *v1.Bounds) *encode.Problem {
	if b == nil {
		return nil
	}
	if b.MaxAgeMs < 0 || b.WaitMs < 0 || b.WaitMs > sidecar.MaxWait.Milliseconds() {
		return encode.BadArgument("bounds", fmt.Sprintf("want max_age_ms of 0 or more, and wait_ms of 0 to %d", sidecar.MaxWait.Milliseconds()))
	}
	q.MaxAge, q.MinSeq, q.Wait = time.Duration(b.MaxAgeMs)*time.Millisecond, b.MinSeq, time.Duration(b.WaitMs)*time.Millisecond
	if b.MinState == "" {
		return nil
	}
	var err error
	if q.MinState, err = rankcache.ParseState(b.MinState); err != nil || q.MinState.Run == 0 {
		return encode.BadArgument("min_state", "want a state, as Page.state has it")
	}
	return nil
}

func (s services) getTop(ctx context.Context, r *v1.GetTopRequest) (*v1.GetTopResponse, error) {
	f, p := s.locate(r.Address, r.Order, r.Limit, r.Profiles, r.Show)
	if p != nil {
		return nil, errorOf(p)
	}
	q := f.query()
	if p := bound(&q, r.Bounds); p != nil {
		return nil, errorOf(p)
	}
	q.Start, q.Limit = int(r.Start), f.Limit
	if p := between(&q, r.MinScore, r.MaxScore); p != nil {
		return nil, errorOf(p)
	}
	a := rankcache.One(ctx, counted(s), q)
	if a.Err != nil {
		return nil, errorOf(encode.ProblemOf(a.Err))
	}
	return s.topOf(ctx, &f, &q, &a), nil
}

// between limits a query to scores; nil: an open end.
func between(q *rankcache.Query, least, most *float64) *encode.Problem {
	if least == nil && most == nil {
		return nil
	}
	r := rankcache.ScoreRange{Least: math.Inf(-1), Most: math.Inf(1), Shown: true}
	if least != nil {
		r.Least = *least
	}
	if most != nil {
		r.Most = *most
	}
	if !(r.Least <= r.Most) { // NaN is neither
		return encode.BadArgument("min_score", "want numbers, of which the least is not above the greatest")
	}
	q.Range = &r
	return nil
}

func (s services) getScoreRank(ctx context.Context, r *v1.GetScoreRankRequest) (*v1.GetScoreRankResponse, error) {
	if math.IsInf(r.Score, 0) || math.IsNaN(r.Score) {
		return nil, errorOf(encode.BadArgument("score", "want a number"))
	}
	f, a, err := s.members(ctx, rankcache.Query{Range: &rankcache.ScoreRange{Least: r.Score, Most: r.Score, Shown: true}}, r.Address, r.Order, false, nil, r.Bounds)
	if err != nil {
		return nil, err
	}
	res := &v1.GetScoreRankResponse{Page: head(&f.Key, a.Source, a.Stamp, a.Shards), AgeMs: ageMs(a.CurrentAt), Members: int64(a.Matches)}
	res.Page.Beyond = a.Beyond
	if rank := a.ScoreRank(); rank > 0 {
		res.Rank = proto.Int64(int64(rank))
	}
	return res, nil
}

func (s services) topOf(ctx context.Context, f *found, q *rankcache.Query, a *rankcache.Answer) *v1.GetTopResponse {
	page := pageMaker(s).pageOf(ctx, f, a.Start, a)
	if q.Range != nil {
		page.Matches, page.Beyond = proto.Int64(int64(a.Matches)), a.Beyond
	}
	return &v1.GetTopResponse{Page: page, AgeMs: ageMs(a.CurrentAt)}
}

func (s services) getStanding(ctx context.Context, r *v1.GetStandingRequest) (*v1.GetStandingResponse, error) {
	q := rankcache.Query{Members: []string{r.Member}}
	if r.Around != 0 {
		q.Around = 2*int(r.Around) + 1
	}
	f, a, err := s.members(ctx, q, r.Address, r.Order, r.Profiles, r.Show, r.Bounds)
	if err != nil {
		return nil, err
	}
	own := &a.Own[0]
	if !own.Found() {
		return nil, errorOf(&encode.Problem{Code: encode.CodeUnknownMember})
	}
	if len(own.Neighbours) > 0 {
		a.Start, a.Entries, a.Data, a.Ahead, f.Limit = own.First, own.Neighbours, own.Data, own.Ahead, len(own.Neighbours)
		m := pageMaker(s).pageOf(ctx, &f, a.Start, &a)
		return &v1.GetStandingResponse{Page: m, AgeMs: ageMs(a.CurrentAt), Standing: m.Rows[own.Rank-1-own.First]}, nil
	}
	res := s.standings(ctx, &f, &a)
	return &v1.GetStandingResponse{Page: res.Page, AgeMs: res.AgeMs, Standing: res.Standings[0]}, nil
}

func (s services) batchStandings(ctx context.Context, r *v1.BatchStandingsRequest) (*v1.BatchStandingsResponse, error) {
	members, p := listOf(r)
	if p != nil {
		return nil, errorOf(p)
	}
	f, a, err := s.members(ctx, rankcache.Query{Members: members}, r.Address, r.Order, r.Profiles, shownOf(r), r.Bounds)
	if err != nil {
		return nil, err
	}
	if r.Sort == v1.Sort_SORT_RANK {
		return s.places(ctx, &f, &a, r), nil
	}
	return s.standings(ctx, &f, &a), nil
}

// members returns the answer about the members of q on the board of an address.
func (s services) members(ctx context.Context, q rankcache.Query, at *v1.Address, order v1.Direction, profiles bool, shown *v1.Show, bounds *v1.Bounds) (f found, a rankcache.Answer, err error) {
	f, p := s.locate(at, order, 0, profiles, shown)
	of := f.query()
	of.Members, of.Around, of.Range = q.Members, q.Around, q.Range
	if shown.GetRankMode() == v1.RankMode_RANK_MODE_UNSPECIFIED && s.reader.Tiers().Approximate(of.Board) {
		of.Mode, f.mode = rankcache.Approx, rankcache.Approx
	}
	if q = of; p == nil {
		p = bound(&q, bounds)
	}
	if p != nil {
		return f, a, errorOf(p)
	}
	if a = rankcache.One(ctx, counted(s), q); a.Err != nil {
		return f, a, errorOf(encode.ProblemOf(a.Err))
	}
	for i := range a.Own {
		if err := a.Own[i].Err; err != nil {
			return f, a, errorOf(encode.ProblemOf(err))
		}
	}
	return f, a, nil
}

// standings returns the answer about members alone.
func (s services) standings(ctx context.Context, f *found, a *rankcache.Answer) *v1.BatchStandingsResponse {
	m := head(&f.Key, a.Source, a.Stamp, a.Shards)
	m.Incomplete = a.Incomplete
	var j encode.Joined
	rows, members := make([]*v1.Row, len(a.Own)), make([]string, len(a.Own))
	for i := range a.Own {
		members[i] = a.Own[i].Member
	}
	if f.Profiles {
		j = encode.JoinMembers(ctx, s.reader.Profiles(), members)
	}
	m.ProfilesMissing = int32(j.Missing)
	made := s.rowsOf(ctx, f, a)
	made.tell(m)
	for i := range a.Own {
		rows[i] = made.own(&a.Own[i])
		if j.Profiles != nil {
			rows[i].Profile = profileText(j.Profiles[i])
		}
	}
	return &v1.BatchStandingsResponse{Page: m, AgeMs: ageMs(a.CurrentAt), Standings: rows}
}

// getBoards reads the boards together: what Redis has to answer is asked in one call.
func (s services) getBoards(ctx context.Context, r *v1.GetBoardsRequest) (*v1.GetBoardsResponse, error) {
	if n := len(r.Boards); n == 0 || n > maxBoards {
		return nil, errorOf(encode.BadArgument("boards", fmt.Sprintf("%d boards, want 1 to %d", n, maxBoards)))
	}
	results := make([]*v1.BoardResult, len(r.Boards))
	var reads []rankcache.Query
	var at []int
	all := make([]found, len(r.Boards))
	for i, b := range r.Boards {
		f, p := s.locate(b.GetAddress(), b.GetOrder(), b.GetLimit(), b.GetProfiles(), b.GetShow())
		if all[i] = f; p != nil {
			results[i] = problemResult(p)
			continue
		}
		q := f.query()
		q.Start, q.Limit = int(b.Start), f.Limit
		if p := between(&q, b.MinScore, b.MaxScore); p != nil {
			results[i] = problemResult(p)
			continue
		}
		reads, at = append(reads, q), append(at, i)
	}
	answers := make([]rankcache.Answer, len(reads))
	counted(s).Read(ctx, reads, answers)
	for n := range answers {
		i, a := at[n], &answers[n]
		if a.Err != nil {
			results[i] = problemResult(encode.ProblemOf(a.Err))
			continue
		}
		results[i] = &v1.BoardResult{Result: &v1.BoardResult_Top{Top: s.topOf(ctx, &all[i], &reads[n], a)}}
	}
	return &v1.GetBoardsResponse{Boards: results}, nil
}

func problemResult(p *encode.Problem) *v1.BoardResult {
	return &v1.BoardResult{Result: &v1.BoardResult_Problem{Problem: problemMessage(p)}}
}
