package sidecar

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/internal/httpserve"
)

// Code is the stable name of an error that a caller can decide by. It is the
// "code" of an application/problem+json body.
type Code string

// The codes, each with the status that it is answered with.
const (
	CodeBadRequest     Code = "bad_request"          // 400: not readable as HTTP/1.1
	CodeBadArgument    Code = "bad_argument"         // 400: "argument" names it, "detail" says what is allowed
	CodeToken          Code = "token_required"       // 401: a change without the right token
	CodeBlocked        Code = "blocked"              // 403: the operator gave this board or room no board
	CodeCrossOrigin    Code = "cross_origin"         // 403: a browser asked for another site's page
	CodeUnknownMember  Code = "unknown_member"       // 404: the member is not on the board
	CodeUnknownProfile Code = "unknown_profile"      // 404: the profile service does not know the member
	CodeUnknownRoom    Code = "unknown_room"         // 404: nothing is set at run time under this name
	CodeUnknownPath    Code = "unknown_path"         // 404: no such resource
	CodeBadMethod      Code = "method_not_allowed"   // 405: Allow says which are
	CodeNotReached     Code = "seq_not_reached"      // 409: Redis has not counted up to min_seq; "seq" is where it is
	CodeTimeout        Code = "request_timeout"      // 408: the request came in too slowly
	CodeBodyTooLarge   Code = "body_too_large"       // 413
	CodeWrongHost      Code = "wrong_host"           // 421: Host is none of this listener's names
	CodeHeaderTooLarge Code = "header_too_large"     // 431: request line and header over 8 KiB
	CodeInternal       Code = "internal"             // 500: a fault of this process, logged
	CodeUnavailable    Code = "origin_unavailable"   // 503: Redis did not answer; Retry-After
	CodeOverloaded     Code = "overloaded"           // 503: too many reads wait for Redis; Retry-After
	CodeNoProfiles     Code = "profiles_unavailable" // 503: the profile did not come in time; Retry-After
)

// codeInfo is what goes with a code.
type codeInfo struct {
	code   Code
	status int
	title  string
}

// codeTable lists all codes; a code's index in it also counts its answers.
var codeTable = [...]codeInfo{
	{CodeBadRequest, 400, "Request cannot be read"},
	{CodeBadArgument, 400, "Bad argument"},
	{CodeToken, 401, "Token required"},
	{CodeBlocked, 403, "Board is blocked"},
	{CodeCrossOrigin, 403, "Request of another site"},
	{CodeUnknownMember, 404, "Member is not on the board"},
	{CodeUnknownProfile, 404, "Member has no profile"},
	{CodeUnknownRoom, 404, "Room is not set at run time"},
	{CodeUnknownPath, 404, "No such resource"},
	{CodeBadMethod, 405, "Method not allowed"},
	{CodeNotReached, 409, "Board has not reached min_seq"},
	{CodeTimeout, 408, "Request came in too slowly"},
	{CodeBodyTooLarge, 413, "Body too large"},
	{CodeWrongHost, 421, "Host is not served here"},
	{CodeHeaderTooLarge, 431, "Header too large"},
	{CodeInternal, 500, "Internal error"},
	{CodeUnavailable, 503, "Redis did not answer"},
	{CodeOverloaded, 503, "Too many reads wait for Redis"},
	{CodeNoProfiles, 503, "Profile did not come in time"},
}

// retryAfter is what a caller is told to wait, in seconds.
const retryAfter = "1"

// problem is an error on its way to the caller.
type problem struct {
	code     Code
	detail   string
	argument string // for CodeBadArgument
	allow    string // for CodeBadMethod
	seq      uint64 // for CodeNotReached: where Redis is, 0 if it knows none
}

func badArgument(name, detail string) *problem {
	return &problem{code: CodeBadArgument, argument: name, detail: detail}
}

// problemOf says what the caller is told about an error of a [Reader]. Details
// of Redis stay inside.
func problemOf(err error) *problem {
	switch {
	case errors.Is(err, ErrBlocked):
		return &problem{code: CodeBlocked, detail: "the operator has switched this board or its room off"}
	case errors.Is(err, rankcache.ErrUnknownMember):
		return &problem{code: CodeUnknownMember}
	case errors.Is(err, ErrNotReached):
		return notReachedProblem(err)
	case errors.Is(err, ErrFault):
		return &problem{code: CodeInternal}
	case errors.Is(err, ErrOverloaded):
		return &problem{code: CodeOverloaded}
	case errors.Is(err, rankcache.ErrBoard):
		return badArgument("board", err.Error())
	case errors.Is(err, rankcache.ErrMember):
		return badArgument("member", err.Error())
	case errors.Is(err, ErrRange):
		return badArgument("limit", err.Error())
	}
	return &problem{code: CodeUnavailable, detail: "the board is not held here and Redis could not be asked in time"}
}

func notReachedProblem(err error) *problem {
	p := &problem{code: CodeNotReached, detail: "Redis was asked and is not there yet: it lost writes, or the seq is not of this board"}
	if e, ok := errors.AsType[*notReached](err); ok {
		p.seq = e.have
	}
	return p
}

// index returns the code's place in codeTable.
func (c Code) index() int {
	for i := range codeTable {
		if codeTable[i].code == c {
			return i
		}
	}
	panic("code without a row: " + string(c))
}

// append appends the problem as JSON.
func (p *problem) append(dst []byte) []byte {
	info := &codeTable[p.code.index()]
	dst = rankcache.AppendString(append(dst, `{"title":`...), info.title)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(info.status), 10)
	dst = rankcache.AppendString(append(dst, `,"code":`...), string(p.code))
	if p.code == CodeNotReached {
		dst = appendSeq(append(dst, `,"seq":`...), p.seq)
	}
	if p.argument != "" {
		dst = rankcache.AppendString(append(dst, `,"argument":`...), p.argument)
	}
	if p.detail != "" {
		dst = rankcache.AppendString(append(dst, `,"detail":`...), p.detail)
	}
	return append(dst, '}')
}

// WriteProblem answers an error as application/problem+json, for handlers that
// others add to the admin listener. code is one of the codes of this package;
// argument is for [CodeBadArgument] and may be empty.
func WriteProblem(w http.ResponseWriter, code Code, argument, detail string) {
	writeProblem(w, &problem{code: code, argument: argument, detail: detail})
}

// writeProblem answers p on net/http, where nothing is asked that has a seq.
func writeProblem(w http.ResponseWriter, p *problem) {
	if p.allow != "" {
		w.Header().Set("Allow", p.allow)
	}
	info := &codeTable[p.code.index()]
	httpserve.Problem{Title: info.title, Status: info.status, Code: string(p.code), Argument: p.argument, Detail: p.detail}.Write(w)
}

// write makes the problem the answer, whatever was set before.
func (p *problem) write(ctx *fasthttp.RequestCtx) {
	ctx.Response.Reset()
	info := &codeTable[p.code.index()]
	ctx.SetStatusCode(info.status)
	ctx.Response.Header.SetContentType("application/problem+json")
	if p.allow != "" {
		ctx.Response.Header.Set("Allow", p.allow)
	}
	if info.status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.Set("Retry-After", retryAfter)
	}
	ctx.Response.SetBodyRaw(p.append(nil))
}
