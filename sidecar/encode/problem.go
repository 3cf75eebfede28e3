package encode

import (
	"errors"
	"strconv"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/httpserve"
	"rankcache/sidecar"
	"rankcache/wire"
)

// Code is the stable name of an error, by which callers decide: "code" of application/problem+json.
type Code string

// The codes, each with the status that it is answered with.
const (
	CodeBadRequest     Code = "bad_request"          // 400: not readable as HTTP/1.1
	CodeBadArgument    Code = "bad_argument"         // 400: "argument" names it, "detail" has what is allowed
	CodeToken          Code = "token_required"       // 401: a change without the right token
	CodeBlocked        Code = "blocked"              // 403: the operator gave this board or room no board
	CodeCrossOrigin    Code = "cross_origin"         // 403: sent by a page of another site
	CodeUnknownMember  Code = "unknown_member"       // 404: the member is not on the board
	CodeUnknownProfile Code = "unknown_profile"      // 404: the profile service does not know the member
	CodeUnknownRoom    Code = "unknown_room"         // 404: nothing is set at run time under this name
	CodeUnknownClass   Code = "unknown_class"        // 404: neither the rooms file nor what is set at run time has such a class
	CodeUnknownPeriod  Code = "unknown_period"       // 404: the period ended so long ago that its board is not kept
	CodeNoPeriod       Code = "no_period"            // 404: no season runs, or none has ended; "next_start" has when the next one begins
	CodeNotKept        Code = "not_kept"             // 404: the final of the board keeps its first places alone, and this is beyond
	CodeUnknownPath    Code = "unknown_path"         // 404: no such resource
	CodeBadMethod      Code = "method_not_allowed"   // 405: Allow lists the allowed ones
	CodeNotReached     Code = "seq_not_reached"      // 409: Redis has not counted up to min_seq; "seq" is where it is
	CodeUnreadable     Code = "unreadable"           // 409: what Redis has of the board can't be served; "detail" has the member
	CodeTimeout        Code = "request_timeout"      // 408: the request came in too slowly
	CodePrecondition   Code = "precondition_failed"  // 412: If-Match names another page
	CodeWriteLost      Code = "write_lost"           // 412: the board has not been through min_state; "detail" has both sides
	CodeUnknownState   Code = "unknown_state"        // 412: the run of min_state has ended; "detail" has both sides
	CodeBodyTooLarge   Code = "body_too_large"       // 413
	CodeWrongHost      Code = "wrong_host"           // 421: Host is none of this listener's names
	CodeRankMode       Code = "rank_mode_refused"    // 422: ranks of this mode can't be counted; "detail" has why
	CodeTrend          Code = "trend_refused"        // 422: the board has no period before; "detail" has why
	CodeUnsupported    Code = "not_supported"        // 422: boards have nothing like what "argument" names, in an older form
	CodeHeaderTooLarge Code = "header_too_large"     // 431: request line and header over 8 KiB
	CodeInternal       Code = "internal"             // 500: a fault of this process, logged
	CodeNotImplemented Code = "not_implemented"      // 501: CONNECT, or a transfer coding other than chunked
	CodeUnavailable    Code = "origin_unavailable"   // 503: Redis did not answer; Retry-After
	CodeOverloaded     Code = "overloaded"           // 503: too many reads wait for Redis; Retry-After
	CodeNoProfiles     Code = "profiles_unavailable" // 503: the profile did not come in time; Retry-After
)

// CodeInfo is the status and title of a code.
type CodeInfo struct {
	Code   Code
	Status int
	Title  string
}

// Codes lists all codes; a code's Index in it also counts its answers.
var Codes = [...]CodeInfo{
	{CodeBadRequest, 400, "Request cannot be read"},
	{CodeBadArgument, 400, "Bad argument"},
	{CodeToken, 401, "Token required"},
	{CodeBlocked, 403, "Board is blocked"},
	{CodeCrossOrigin, 403, "Request of another site"},
	{CodeUnknownMember, 404, "Member is not on the board"},
	{CodeUnknownProfile, 404, "Member has no profile"},
	{CodeUnknownRoom, 404, "Room is not set at run time"},
	{CodeUnknownClass, 404, "No such class"},
	{CodeUnknownPeriod, 404, "Period is not kept any more"},
	{CodeNoPeriod, 404, "No season at that time"},
	{CodeNotKept, 404, "Place is not kept any more"},
	{CodeUnknownPath, 404, "No such resource"},
	{CodeBadMethod, 405, "Method not allowed"},
	{CodeNotReached, 409, "Board has not reached min_seq"},
	{CodeUnreadable, 409, "Board can't be read"},
	{CodeTimeout, 408, "Request came in too slowly"},
	{CodePrecondition, 412, "Precondition failed"},
	{CodeWriteLost, 412, "Write is lost"},
	{CodeUnknownState, 412, "State is not known any more"},
	{CodeBodyTooLarge, 413, "Body too large"},
	{CodeWrongHost, 421, "Host is not served here"},
	{CodeRankMode, 422, "Rank mode is not available"},
	{CodeTrend, 422, "Trend is not available"},
	{CodeUnsupported, 422, "Not supported"},
	{CodeHeaderTooLarge, 431, "Header too large"},
	{CodeInternal, 500, "Internal error"},
	{CodeNotImplemented, 501, "Not implemented"},
	{CodeUnavailable, 503, "Redis did not answer"},
	{CodeOverloaded, 503, "Too many reads wait for Redis"},
	{CodeNoProfiles, 503, "Profile did not come in time"},
}

const RetryAfter = "1" // the value of the Retry-After header, in seconds

// Problem is an error on its way to the caller.
type Problem struct {
	Code     Code
	Detail   string
	Argument string    // for CodeBadArgument
	Allow    string    // for CodeBadMethod
	Seq      uint64    // for CodeNotReached: where Redis is, 0 if it knows none
	Next     time.Time // for CodeNoPeriod: when the next season begins; zero: none is planned
}

func BadArgument(name, detail string) *Problem {
	return &Problem{Code: CodeBadArgument, Argument: name, Detail: detail}
}

// PeriodProblem returns the problem with the period that the argument at names.
func PeriodProblem(err error) *Problem {
	if gap, ok := errors.AsType[*class.Gap](err); ok {
		return &Problem{Code: CodeNoPeriod, Detail: err.Error(), Next: gap.Next.Start}
	}
	return BadArgument("at", err.Error())
}

// ProblemOf returns the problem that answers an error of a [sidecar.Reader]: no details of Redis.
func ProblemOf(err error) *Problem {
	switch {
	case errors.Is(err, sidecar.ErrBlocked):
		return &Problem{Code: CodeBlocked, Detail: "the operator has blocked this board or its room"}
	case errors.Is(err, sidecar.ErrNotReached):
		return notReachedProblem(err)
	case errors.Is(err, sidecar.ErrUnknownState):
		return &Problem{Code: CodeUnknownState, Detail: err.Error() + "; post the change again with the same order, which applies it once: a duplicate is there"}
	case errors.Is(err, sidecar.ErrWriteLost):
		return &Problem{Code: CodeWriteLost, Detail: err.Error() + "; post the change again with the same order, which applies it once"}
	case errors.Is(err, sidecar.ErrGone):
		return &Problem{Code: CodeUnknownPeriod, Detail: err.Error()}
	case errors.Is(err, rankcache.ErrFinalCut):
		return &Problem{Code: CodeNotKept, Detail: "the result of the board is kept as far as its first places go, and members beyond while the ledger keeps their scores"}
	case errors.Is(err, rankcache.ErrUnreadable):
		return &Problem{Code: CodeUnreadable, Detail: err.Error()}
	case errors.Is(err, sidecar.ErrFault):
		return &Problem{Code: CodeInternal}
	case errors.Is(err, sidecar.ErrOverloaded):
		return &Problem{Code: CodeOverloaded}
	case errors.Is(err, rankcache.ErrBoard):
		return BadArgument("board", err.Error())
	case errors.Is(err, rankcache.ErrMember):
		return BadArgument("member", err.Error())
	case errors.Is(err, rankcache.ErrRankMode):
		return &Problem{Code: CodeRankMode, Detail: err.Error()}
	case errors.Is(err, sidecar.ErrSplit):
		return &Problem{Code: CodeUnsupported, Detail: err.Error()}
	case errors.Is(err, sidecar.ErrRange):
		return BadArgument("limit", err.Error())
	}
	if errors.Is(err, rankcache.ErrRegion) {
		return &Problem{Code: CodeUnavailable, Detail: err.Error()}
	}
	return &Problem{Code: CodeUnavailable, Detail: "the board is not held here and Redis could not be asked in time"}
}

func notReachedProblem(err error) *Problem {
	p := &Problem{Code: CodeNotReached, Detail: "Redis was asked and is not there yet: it lost writes, or the seq is not of this board"}
	if e, ok := errors.AsType[*sidecar.NotReachedError](err); ok {
		p.Seq = e.Have
	}
	return p
}

// Index returns the code's place in Codes.
func (c Code) Index() int {
	for i := range Codes {
		if Codes[i].Code == c {
			return i
		}
	}
	panic("code without a row: " + string(c))
}

// Info returns the status and the title of the problem.
func (p *Problem) Info() *CodeInfo { return &Codes[p.Code.Index()] }

// HTTP returns the problem for [httpserve.Problem.Write], without seq and next start.
func (p *Problem) HTTP() httpserve.Problem {
	info := p.Info()
	return httpserve.Problem{Title: info.Title, Status: info.Status, Code: string(p.Code), Argument: p.Argument, Detail: p.Detail, Allow: p.Allow}
}

// Append appends the problem as JSON.
func (p *Problem) Append(dst []byte) []byte {
	info := p.Info()
	dst = wire.AppendString(append(dst, `{"title":`...), info.Title)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(info.Status), 10)
	dst = wire.AppendString(append(dst, `,"code":`...), string(p.Code))
	if p.Code == CodeNotReached {
		dst = appendSeq(append(dst, `,"seq":`...), p.Seq)
	}
	if !p.Next.IsZero() {
		dst = append(p.Next.AppendFormat(append(dst, `,"next_start":"`...), time.RFC3339), '"')
	}
	if p.Argument != "" {
		dst = wire.AppendString(append(dst, `,"argument":`...), p.Argument)
	}
	if p.Detail != "" {
		dst = wire.AppendString(append(dst, `,"detail":`...), p.Detail)
	}
	return append(dst, '}')
}
