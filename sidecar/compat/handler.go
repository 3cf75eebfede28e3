package compat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
	"rankcache/wire"
)

// Config is what a [Handler] reads from.
type Config struct {
	Reader  *sidecar.Reader
	Classes func() *rooms.File // the rooms file in force, never nil
	Board   rankcache.BoardID  // that GET /v1/scores reads unless it names another; "": none
	Now     func() time.Time   // nil: time.Now
}

// Handler answers reads in older forms. It may be used concurrently.
type Handler struct{ cfg Config }

// New returns a handler, or an error if the configured board can't be one.
func New(cfg Config) (*Handler, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Board != "" {
		if err := cfg.Board.Check(); err != nil {
			return nil, err
		}
	}
	return &Handler{cfg}, nil
}

// Answer returns the JSON that answers a request, or the problem with it; of a form whose
// errors are JSON of its own, both. It returns false for a path that it has nothing at.
func (h *Handler) Answer(ctx context.Context, method, path, query string, body []byte) (answer []byte, p *apijson.Problem, ours bool) {
	if posted := h.posted(path); posted != nil {
		if method != "POST" {
			return nil, &apijson.Problem{Code: apijson.CodeBadMethod, Allow: "POST"}, true
		}
		answer, p = posted(ctx, body)
		return answer, p, true
	}
	member, one := strings.CutPrefix(path, "/v1/scores/")
	if !one && path != "/v1/scores" {
		return nil, nil, false
	}
	if method != "GET" && method != "HEAD" {
		return nil, &apijson.Problem{Code: apijson.CodeBadMethod, Allow: "GET, HEAD"}, true
	}
	v, err := h.scores(ctx, query, member, one)
	answer, p = result(v, err)
	return answer, p, true
}

// posted returns what answers a POST, nil if the path is of none.
func (h *Handler) posted(path string) func(context.Context, []byte) ([]byte, *apijson.Problem) {
	switch path {
	case "/compat/rank/list":
		return func(ctx context.Context, body []byte) ([]byte, *apijson.Problem) {
			v, err := lists{h}.list(ctx, body)
			return result(v, err)
		}
	case "/compat/getScore":
		return h.inEnvelope(h.getScore)
	case "/compat/topScore":
		return h.inEnvelope(h.topScore)
	}
	return nil
}

// envelope is what answers of the forms by rank_name are in. Both names of a field have the
// same value: callers look at either.
type envelope struct {
	Code    int    `json:"code"` // 0, or the status of the answer
	ErrCode int    `json:"errcode"`
	Message string `json:"message"` // "", or what is wrong
	ErrMsg  string `json:"errmsg"`
	Data    any    `json:"data"`
}

func (h *Handler) inEnvelope(read func(context.Context, []byte) (any, error)) func(context.Context, []byte) ([]byte, *apijson.Problem) {
	return func(ctx context.Context, body []byte) ([]byte, *apijson.Problem) {
		v, err := read(ctx, body)
		p := problemOf(err)
		e := envelope{Data: v}
		if p != nil {
			info := p.Info()
			e = envelope{Code: info.Status, ErrCode: info.Status}
			e.Message = strings.TrimSuffix(strings.Join([]string{string(p.Code), p.Argument, p.Detail}, ": "), ": ")
			e.ErrMsg = e.Message
		}
		answer, failed := result(e, nil)
		if failed != nil {
			return nil, failed
		}
		return answer, p
	}
}

func result(v any, err error) ([]byte, *apijson.Problem) {
	if err != nil {
		return nil, problemOf(err)
	}
	answer, err := json.Marshal(v)
	if err != nil { // scores are finite, and profiles are JSON
		return nil, &apijson.Problem{Code: apijson.CodeInternal}
	}
	return answer, nil
}

// failure is a problem on its way up.
type failure struct{ *apijson.Problem }

func (f failure) Error() string { return string(f.Code) + ": " + f.Detail }

func fail(code apijson.Code, detail string) error {
	return failure{&apijson.Problem{Code: code, Detail: detail}}
}

// problemOf returns the problem of an error, nil for nil.
func problemOf(err error) *apijson.Problem {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[failure](err); ok {
		return f.Problem
	}
	if e, ok := errors.AsType[*wire.CompatError](err); ok {
		p := apijson.BadArgument(e.Field, e.Err.Error())
		if e.Unsupported {
			p.Code = apijson.CodeUnsupported
		}
		return p
	}
	return apijson.ProblemOf(err)
}
