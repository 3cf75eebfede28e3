package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// What people would write instead. Both answer GET /top?limit=n with rows of the
// same fields as rankcache, so that the pages are as long.

type plainPage struct {
	Board   string     `json:"board"`
	Source  string     `json:"source"`
	Entries []plainRow `json:"entries"`
}

type plainRow struct {
	Rank   int     `json:"rank"`
	Member string  `json:"member"`
	Score  float64 `json:"score"`
}

// keptTarget is that service with the page kept for a second, encoded: what an app does that is told by Redis when
// the board changes, or asks again (go-redis has no client-side caching).
type keptTarget struct {
	*plainTarget
	page atomic.Pointer[keptPage]
}

type keptPage struct {
	body  []byte
	until time.Time
}

func newKeptTarget(ctx context.Context, o *targetOptions) (target, error) {
	plain, err := newPlainTarget(ctx, o)
	if err != nil {
		return nil, err
	}
	return &keptTarget{plainTarget: plain.(*plainTarget)}, nil
}

func (t *keptTarget) serve(ctx context.Context, ln net.Listener) error {
	return serveStandard(ctx, ln, t.top)
}

func (t *keptTarget) top(w http.ResponseWriter, r *http.Request) {
	kept := t.page.Load()
	if kept == nil || time.Now().After(kept.until) {
		to := httptest.NewRecorder()
		if t.plainTarget.top(to, r); to.Code != http.StatusOK {
			http.Error(w, to.Body.String(), to.Code)
			return
		}
		kept = &keptPage{to.Body.Bytes(), time.Now().Add(time.Second)}
		t.page.Store(kept)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(kept.body) // fails only if the caller has gone
}

// plainTarget is a service over Redis: net/http, go-redis and encoding/json.
type plainTarget struct{ client *redis.Client }

func newPlainTarget(_ context.Context, o *targetOptions) (target, error) {
	return &plainTarget{redis.NewClient(&redis.Options{Addr: o.redis, Protocol: 2, PoolSize: 64})}, nil
}

func (t *plainTarget) serve(ctx context.Context, ln net.Listener) error {
	return serveStandard(ctx, ln, t.top)
}

// serveStandard answers GET /top on ln with net/http until ctx is done.
func serveStandard(ctx context.Context, ln net.Listener, top http.HandlerFunc) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /top", top)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // no time for requests in hand
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (t *plainTarget) top(w http.ResponseWriter, r *http.Request) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		http.Error(w, "limit", http.StatusBadRequest)
		return
	}
	rows, err := t.client.ZRevRangeWithScores(r.Context(), string(benchBoardID), 0, int64(limit-1)).Result()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	page := plainPage{Board: string(benchBoardID), Source: "redis", Entries: make([]plainRow, len(rows))}
	for i, z := range rows {
		page.Entries[i] = plainRow{i + 1, fmt.Sprint(z.Member), z.Score}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page) // fails only if the caller has gone
}
