package compat

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/rooms"
)

// Config is what [Reads] reads from.
type Config struct {
	Reader   Reader
	Profiles Profiles                          // nil: there are none
	Classes  func() *rooms.File                // the rooms file in force, never nil
	Problem  func(err error) httpserve.Problem // how the port answers an error of the Reader
	Board    rankcache.BoardID                 // that GET /v1/scores reads unless it names another; "": none
	Now      func() time.Time                  // nil: time.Now
}

// Reader reads boards.
type Reader interface {
	rankcache.Reader
	// FormerRanks returns the ranks of the query's members on its board, of a period before, and until when they hold.
	FormerRanks(ctx context.Context, q *rankcache.Query, now time.Time) (ranks map[string]int, until time.Time, err error)
}

// Profiles has the members' profiles.
type Profiles interface {
	// Join sets dst[i] to the profile of members[i], JSON that must not be changed, or nil. It keeps neither slice.
	Join(ctx context.Context, members []string, dst [][]byte) (missing int, fresh func() bool)
}

// Reads answers reads in older forms. It may be used concurrently.
type Reads struct{ cfg Config }

// NewReads returns a handler, or an error if the configured board can't be one.
func NewReads(cfg Config) (*Reads, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Board != "" {
		if err := cfg.Board.Check(); err != nil {
			return nil, err
		}
	}
	return &Reads{cfg}, nil
}

// Answer returns the JSON that answers a request, or the problem with it, or both; false: nothing is at the path.
func (h *Reads) Answer(ctx context.Context, method, path, query string, body []byte) (answer []byte, p *httpserve.Problem, ours bool) {
	if posted := h.posted(path); posted != nil {
		if method != "POST" {
			return nil, badMethod("POST"), true
		}
		answer, p = posted(ctx, body)
		return answer, p, true
	}
	member, one := strings.CutPrefix(path, "/v1/scores/")
	if !one && path != "/v1/scores" || one && strings.Contains(member, "/") {
		return nil, nil, false
	}
	if method != "GET" && method != "HEAD" {
		return nil, badMethod("GET, HEAD"), true
	}
	v, err := h.scores(ctx, query, member, one)
	answer, p = h.result(v, err)
	return answer, p, true
}

// posted returns what answers a POST, nil if the path is of none.
func (h *Reads) posted(path string) func(context.Context, []byte) ([]byte, *httpserve.Problem) {
	switch path {
	case "/compat/rank/list":
		return func(ctx context.Context, body []byte) ([]byte, *httpserve.Problem) {
			v, err := lists{h}.list(ctx, body)
			return h.result(v, err)
		}
	case "/compat/getScore":
		return h.enveloped(h.getScore)
	case "/compat/topScore":
		return h.enveloped(h.topScore)
	}
	return nil
}

func (h *Reads) enveloped(read func(context.Context, []byte) (any, error)) func(context.Context, []byte) ([]byte, *httpserve.Problem) {
	return func(ctx context.Context, body []byte) ([]byte, *httpserve.Problem) {
		v, err := read(ctx, body)
		p := problemOf(err, h.cfg.Problem)
		answer, failed := h.result(inEnvelope(v, p), nil)
		if failed != nil {
			return nil, failed
		}
		return answer, p
	}
}

func (h *Reads) result(v any, err error) ([]byte, *httpserve.Problem) {
	if err != nil {
		return nil, problemOf(err, h.cfg.Problem)
	}
	answer, err := json.Marshal(v)
	if err != nil { // scores are finite, and profiles are JSON
		return nil, &internal.Problem
	}
	return answer, nil
}
