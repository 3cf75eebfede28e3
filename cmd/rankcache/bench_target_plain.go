package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"
	"github.com/wangjia184/sortedset"
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

// plainTarget is a service over Redis: net/http, go-redis and encoding/json.
type plainTarget struct{ client *redis.Client }

func newPlainTarget(_ context.Context, o *targetOptions) (target, error) {
	return &plainTarget{redis.NewClient(&redis.Options{Addr: o.redis, Protocol: 2, PoolSize: 64})}, nil
}

func (t *plainTarget) serve(ctx context.Context, ln net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /top", t.top)
	srv := &http.Server{Handler: mux}
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
	_ = json.NewEncoder(w).Encode(page) // the caller has gone; nobody to tell
}

// sortedsetTarget is a board in memory as a first version is written:
// wangjia184/sortedset under an RWMutex and encoding/json for every request, on
// the HTTP library that rankcache uses.
type sortedsetTarget struct {
	mu  sync.RWMutex
	set *sortedset.SortedSet
}

func newSortedsetTarget(_ context.Context, o *targetOptions) (target, error) {
	t := &sortedsetTarget{set: sortedset.New()}
	for member, score := range benchScores(o.members) {
		// SCORE is an integer; the bits of a double that is not negative order
		// as the double does.
		t.set.AddOrUpdate(member, sortedset.SCORE(math.Float64bits(score)), nil)
	}
	return t, nil
}

func (t *sortedsetTarget) serve(ctx context.Context, ln net.Listener) error {
	return serveFast(ctx, ln, t.top)
}

func (t *sortedsetTarget) top(ctx *fasthttp.RequestCtx) {
	limit, err := ctx.QueryArgs().GetUint("limit")
	if err != nil {
		ctx.Error("limit", fasthttp.StatusBadRequest)
		return
	}
	page := plainPage{Board: string(benchBoardID), Source: "local", Entries: make([]plainRow, 0, limit)}
	t.mu.RLock()
	for i, node := range t.set.GetByRankRange(-1, -limit, false) {
		page.Entries = append(page.Entries, plainRow{i + 1, node.Key(), math.Float64frombits(uint64(node.Score()))})
	}
	t.mu.RUnlock()
	data, err := json.Marshal(page)
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(data)
}
