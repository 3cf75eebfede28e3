package reads

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/metric"
	"rankcache/ledger"
	"rankcache/wire"
)

const (
	atOnce  = 6 // how many boards are read at once, waiting how many requests may wait
	waiting = 256
	timeout = 3 * time.Second // bounds one request
)

// Config has what a [Server] needs.
type Config struct {
	// Store is used for reads alone, so that they leave the ledger its connections. The caller closes it.
	Store      *ledger.Store
	Current    func() time.Time // returns when the database was last known to have every change, zero before
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Server answers reads. Make it with [New].
type Server struct {
	reader
	places  *semaphore.Weighted
	held    atomic.Int64
	log     *slog.Logger
	errLog  rate.Sometimes
	seconds prometheus.Histogram
	results *prometheus.CounterVec
}

// New returns a server, whose metrics it registers. It starts nothing.
func New(cfg Config) *Server {
	s := &Server{reader: reader{cfg.Store, &proofs{store: cfg.Store, boards: make(map[rankcache.BoardID]proof)}, cfg.Current},
		places: semaphore.NewWeighted(atOnce), log: cfg.Log, errLog: rate.Sometimes{Interval: 10 * time.Second}}
	set := metric.New(cfg.Registerer, "ledger_")
	s.results = set.Counters("reads_total", "Boards that sidecars read from the ledger, by result (ok, unknown_board, not_proved, not_covered, unavailable).", "result")
	s.seconds = set.Histogram("read_duration_seconds", "Time that the ledger took to read a board from its database.", prometheus.ExponentialBuckets(0.001, 2.5, 10))
	set.Must()
	return s
}

// Register adds the routes of reads to mux.
func (s *Server) Register(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/reads", s.serve)
	mux.HandleFunc("GET /v1/reads", s.ready)
}

// ready tells whether reads would be answered, and how old answers would be.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	current := s.current()
	if current.IsZero() {
		notReady.Write(w)
		return
	}
	httpserve.WriteJSON(w, http.StatusOK, map[string]int64{"age_ms": age(current)})
}

var notReady = httpserve.Problem{Status: http.StatusServiceUnavailable, Code: "not_ready", Title: "Not ready for reads",
	Detail: "the index for reads is being made, or this ledger has not read its topic to the end since its start: look at its log"}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	var q Request
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		httpserve.BodyProblem(err).Write(w)
		return
	}
	if err = wire.DecodeStrict(body, &q); err == nil {
		err = q.check()
	}
	if err != nil {
		httpserve.Problem{Status: http.StatusBadRequest, Code: "bad_request", Title: "Bad request", Detail: err.Error()}.Write(w)
		return
	}
	if s.current().IsZero() {
		notReady.Write(w)
		return
	}
	defer s.held.Add(-1)
	if s.held.Add(1) > waiting {
		httpserve.Problem{Status: http.StatusServiceUnavailable, Code: "overloaded", Title: "Too many requests at once"}.Write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	answers := make([]Answer, len(q.Reads))
	for i := range q.Reads {
		answers[i] = s.one(ctx, &q.Reads[i])
	}
	httpserve.WriteJSON(w, http.StatusOK, Response{answers})
}

// one answers a read when there is a place.
func (s *Server) one(ctx context.Context, q *Read) (a Answer) {
	if err := s.places.Acquire(ctx, 1); err != nil {
		a = Answer{Code: "unavailable", Detail: "too many reads wait for the ledger's database"}
	} else {
		begun := time.Now()
		a = s.read(ctx, q)
		s.places.Release(1)
		s.seconds.Observe(time.Since(begun).Seconds())
	}
	result := a.Code
	switch result {
	case "":
		result = "ok"
	case "unavailable":
		s.errLog.Do(func() { s.log.Warn("a board can't be read from the ledger", "board", q.Board, "err", a.Detail) })
		a.Detail = "the ledger's database does not answer: look at the ledger's log"
	}
	s.results.WithLabelValues(result).Inc()
	return a
}
