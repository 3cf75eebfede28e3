package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/proto"

	"rankcache"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
)

const (
	boardsService = "rankcache.v1.Boards"
	maxRequest    = 256 << 10 // bytes
	maxBoards     = 10        // of one request
)

// services are the methods of rankcache.v1.Boards, health and reflection.
type services struct{ *Server }

// handle adds the service, its health and its reflection to the mux.
func (s services) handle(mux *http.ServeMux) {
	options := connect.WithHandlerOptions(codecs(), connect.WithReadMaxBytes(maxRequest), connect.WithCompressMinBytes(never), connect.WithRecover(s.recovered),
		connect.WithInterceptors(measured(s.durations)))
	add := func(path string, h http.Handler) { mux.Handle(path, h) }
	procedure := func(name string) string { return "/" + boardsService + "/" + name }
	add(procedure("GetTop"), connect.NewUnaryHandlerSimple(procedure("GetTop"), s.getTop, options))
	add(procedure("GetStanding"), connect.NewUnaryHandlerSimple(procedure("GetStanding"), s.getStanding, options))
	add(procedure("BatchStandings"), connect.NewUnaryHandlerSimple(procedure("BatchStandings"), s.batchStandings, options))
	add(procedure("GetBoards"), connect.NewUnaryHandlerSimple(procedure("GetBoards"), s.getBoards, options))
	add(procedure("Watch"), withControl(connect.NewServerStreamHandlerSimple(procedure("Watch"), watchService{s}.watch, options)))
	add(grpchealth.NewHandler(s, options))
	reflector := grpcreflect.NewStaticReflector(boardsService)
	add(grpcreflect.NewHandlerV1(reflector, options))
	add(grpcreflect.NewHandlerV1Alpha(reflector, options))
}

// never is more bytes than any message has: compressing what goes over loopback costs more
// than sending it.
const never = 1 << 30

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
	return errorOf(&apijson.Problem{Code: apijson.CodeInternal})
}

func addressOf(a *v1.Address, order v1.Direction, limit int32, profiles bool) address {
	to := address{board: rankcache.BoardID(a.GetBoard()), class: a.GetClass(), dims: a.GetDimensions(), at: a.GetAt(), room: a.GetRoom(), limit: int(limit), profiles: profiles}
	if order == v1.Direction_DIRECTION_ASCENDING {
		to.order = rankcache.Ascending
	}
	return to
}

// locate returns the board of a request.
func (s services) locate(a *v1.Address, order v1.Direction, limit int32, profiles bool) (found, *apijson.Problem) {
	to := addressOf(a, order, limit, profiles)
	switch {
	case order < 0 || order > v1.Direction_DIRECTION_ASCENDING:
		return found{}, apijson.BadArgument("order", "want DIRECTION_DESCENDING or DIRECTION_ASCENDING")
	case to.board != "" && to.class != "":
		return found{}, apijson.BadArgument("address", "want board or class, not both")
	case to.class == "" && (len(to.dims) > 0 || to.at != ""):
		return found{}, apijson.BadArgument("address", "dimensions and at are of a class")
	}
	return boardFinder(s).find(&to)
}

// bound sets the bounds of a query.
func bound(q *sidecar.Query, b *v1.Bounds) *apijson.Problem {
	if b == nil {
		return nil
	}
	if b.MaxAgeMs < 0 || b.WaitMs < 0 || b.WaitMs > sidecar.MaxWait.Milliseconds() {
		return apijson.BadArgument("bounds", fmt.Sprintf("want max_age_ms of 0 or more, and wait_ms of 0 to %d", sidecar.MaxWait.Milliseconds()))
	}
	q.MaxAge, q.MinSeq, q.Wait = time.Duration(b.MaxAgeMs)*time.Millisecond, b.MinSeq, time.Duration(b.WaitMs)*time.Millisecond
	if b.MinState == "" {
		return nil
	}
	var err error
	if q.MinState, err = rankcache.ParseState(b.MinState); err != nil || q.MinState.Run == 0 {
		return apijson.BadArgument("min_state", "want a state, as Page.state has it")
	}
	return nil
}

func (s services) getTop(ctx context.Context, r *v1.GetTopRequest) (*topAnswer, error) {
	a, p := s.top(ctx, r)
	if p != nil {
		return nil, errorOf(p)
	}
	return a, nil
}

func (s services) top(ctx context.Context, r *v1.GetTopRequest) (*topAnswer, *apijson.Problem) {
	f, p := s.locate(r.Address, r.Order, r.Limit, r.Profiles)
	if p != nil {
		return nil, p
	}
	q := f.query()
	if p := bound(&q, r.Bounds); p != nil {
		return nil, p
	}
	a, err := s.reader.Page(ctx, &q, int(r.Start), f.Limit)
	if err != nil {
		return nil, apijson.ProblemOf(err)
	}
	return &topAnswer{pageMaker(s).pageOf(&f, int(r.Start), &a), ageMs(a.CurrentAt)}, nil
}

func (s services) getStanding(ctx context.Context, r *v1.GetStandingRequest) (*v1.GetStandingResponse, error) {
	f, p := s.locate(r.Address, r.Order, 0, r.Profiles)
	q := f.query()
	if p == nil {
		p = bound(&q, r.Bounds)
	}
	if p != nil {
		return nil, errorOf(p)
	}
	if r.Around != 0 {
		res, err := s.around(ctx, &f, q, r)
		switch {
		case err == nil:
			return res, nil
		case !errors.Is(err, rankcache.ErrUnknownMember): // else it may have a score
			return nil, errorOf(apijson.ProblemOf(err))
		}
	}
	res, err := s.standings(ctx, &f, q, []string{r.Member})
	if err != nil {
		return nil, err
	}
	if res.Standings[0].Score == nil {
		return nil, errorOf(&apijson.Problem{Code: apijson.CodeUnknownMember})
	}
	return &v1.GetStandingResponse{Page: res.Page, AgeMs: res.AgeMs, Standing: res.Standings[0]}, nil
}

func (s services) around(ctx context.Context, f *found, q sidecar.Query, r *v1.GetStandingRequest) (*v1.GetStandingResponse, error) {
	a, rank, err := s.reader.Around(ctx, q, r.Member, int(r.Around))
	if err != nil {
		return nil, err
	}
	f.Limit = len(a.Entries)
	m := pageMaker(s).newPage(f, a.Start, &a).message
	return &v1.GetStandingResponse{Page: m, AgeMs: ageMs(a.CurrentAt), Standing: m.Rows[rank-1-a.Start]}, nil
}

func (s services) batchStandings(ctx context.Context, r *v1.BatchStandingsRequest) (*v1.BatchStandingsResponse, error) {
	f, p := s.locate(r.Address, r.Order, 0, r.Profiles)
	q := f.query()
	if p == nil {
		p = bound(&q, r.Bounds)
	}
	if p != nil {
		return nil, errorOf(p)
	}
	return s.standings(ctx, &f, q, r.Members)
}

func (s services) standings(ctx context.Context, f *found, q sidecar.Query, members []string) (*v1.BatchStandingsResponse, error) {
	got, err := s.reader.Standings(ctx, q, nil, members)
	if err != nil {
		return nil, errorOf(apijson.ProblemOf(err))
	}
	m := head(&f.Key, got.Source, got.Stamp)
	var j apijson.Joined
	if f.Profiles {
		j = apijson.JoinMembers(ctx, s.reader.Profiles(), members)
	}
	m.ProfilesMissing = int32(j.Missing)
	rows := make([]*v1.Row, len(got.Rows))
	for i, row := range got.Rows {
		rows[i] = rowOf(&row, got.Form)
		if j.Profiles != nil {
			rows[i].Profile = profileText(j.Profiles[i])
		}
	}
	return &v1.BatchStandingsResponse{Page: m, AgeMs: ageMs(got.CurrentAt), Standings: rows}, nil
}

// rowOf returns a standing without a profile.
func rowOf(s *rankcache.Standing, form rankcache.ScoreForm) *v1.Row {
	row := &v1.Row{Member: s.Member}
	if s.Rank > 0 {
		row.Rank = proto.Int64(int64(s.Rank))
	}
	if s.Found() {
		row.Score = proto.Float64(form.Shown(s.Score))
	}
	return row
}

// getBoards reads the boards together: what Redis has to answer is asked in one call.
func (s services) getBoards(ctx context.Context, r *v1.GetBoardsRequest) (*v1.GetBoardsResponse, error) {
	if n := len(r.Boards); n == 0 || n > maxBoards {
		return nil, errorOf(apijson.BadArgument("boards", fmt.Sprintf("%d boards, want 1 to %d", n, maxBoards)))
	}
	results := make([]*v1.BoardResult, len(r.Boards))
	var reads []sidecar.PageRead
	var at []int
	all := make([]found, len(r.Boards))
	for i, b := range r.Boards {
		f, p := s.locate(b.GetAddress(), b.GetOrder(), b.GetLimit(), b.GetProfiles())
		if all[i] = f; p != nil {
			results[i] = problemResult(p)
			continue
		}
		reads, at = append(reads, sidecar.PageRead{Query: f.query(), Page: rankcache.PageQuery{Start: int(b.Start), Limit: f.Limit, Around: -1}}), append(at, i)
	}
	for n, a := range s.reader.Batch(ctx, reads) {
		i := at[n]
		if a.Err != nil {
			results[i] = problemResult(apijson.ProblemOf(a.Err))
			continue
		}
		top := &v1.GetTopResponse{Page: pageMaker(s).pageOf(&all[i], int(r.Boards[i].Start), &a.Answer).message, AgeMs: ageMs(a.CurrentAt)}
		results[i] = &v1.BoardResult{Result: &v1.BoardResult_Top{Top: top}}
	}
	return &v1.GetBoardsResponse{Boards: results}, nil
}

func problemResult(p *apijson.Problem) *v1.BoardResult {
	return &v1.BoardResult{Result: &v1.BoardResult_Problem{Problem: problemMessage(p)}}
}
