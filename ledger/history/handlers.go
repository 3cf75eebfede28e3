package history

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/ledger"
)

const (
	// atOnce is how many requests may ask the database at once, so that the ledger itself always gets a connection.
	atOnce  = 4
	timeout = 5 * time.Second // bounds one request to the database
)

type server struct {
	store  *ledger.Store
	log    *slog.Logger
	places chan struct{}
}

// Register adds the routes of finals to mux. The store is closed by the caller.
func Register(mux *http.ServeMux, store *ledger.Store, log *slog.Logger) {
	s := &server{store: store, log: log, places: make(chan struct{}, atOnce)}
	mux.HandleFunc("GET /v1/classes/{class}/finals", s.finals)
	mux.HandleFunc("GET /v1/classes/{class}/finals/{tag}", s.final)
	mux.HandleFunc("GET /v1/members/{member}/history", s.history)
}

type headRow struct {
	Board   rankcache.BoardID `json:"board"`
	Class   string            `json:"class"`
	Dims    map[string]string `json:"dims"`
	Tag     string            `json:"tag"`
	Start   time.Time         `json:"start"`
	End     time.Time         `json:"end"`
	State   string            `json:"state"`
	Members int               `json:"members"`
	File    string            `json:"file"`
	MadeAt  time.Time         `json:"made_at"`
}

func headOf(f *ledger.Final) headRow {
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	return headRow{f.Board, f.Class, f.Dims, f.Tag, at(f.Start), at(f.End), f.State.String(), f.Members, f.File, at(f.MadeAt)}
}

type entryRow struct {
	Rank   rank    `json:"rank"`
	Member string  `json:"member"`
	Score  float64 `json:"score"`
	Data   string  `json:"data,omitempty"`
}

type rank int // a place; 0, beyond those that are kept, is null

func (r rank) MarshalJSON() ([]byte, error) {
	if r == 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(r), 10), nil
}

func entryOf(f *ledger.Final, place int, e rankcache.Entry) entryRow {
	member, data := rankcache.SplitData(e.Member)
	return entryRow{rank(place), member, f.Form.Shown(e.Score), data}
}

func (s *server) finals(w http.ResponseWriter, r *http.Request) {
	q := queryOf(r)
	class, limit := q.class(r), q.limit()
	tag, board := q.cursor(tagSigns)
	q.end()
	s.answer(w, r, q, func(ctx context.Context) (any, error) {
		found, err := s.store.Finals(ctx, class, tag, board, limit)
		rows := make([]headRow, len(found))
		for i, f := range found {
			rows[i] = headOf(f)
		}
		next := ""
		if n := len(found); n == limit && err == nil {
			next = cursorOf(found[n-1].Tag, found[n-1].Board)
		}
		return struct {
			Finals []headRow `json:"finals"`
			Next   string    `json:"next,omitempty"`
		}{rows, next}, err
	})
}

func (s *server) final(w http.ResponseWriter, r *http.Request) {
	q := queryOf(r)
	class, tag := q.class(r), q.checked("tag", r.PathValue("tag"), tagSigns, maxTag)
	start, limit := q.number("start", 0, 0, maxStart), q.limit()
	dims := q.dims()
	s.answer(w, r, q, func(ctx context.Context) (any, error) {
		f, err := s.store.FinalAt(ctx, class, dims, tag, start, limit)
		if f == nil || err != nil {
			return nil, err
		}
		rows := make([]entryRow, len(f.Top))
		for i, e := range f.Top {
			rows[i] = entryOf(f, start+i+1, e)
		}
		return struct {
			headRow
			From    int        `json:"from"`
			Limit   int        `json:"limit"`
			Entries []entryRow `json:"entries"`
		}{headOf(f), start, limit, rows}, nil
	})
}

func (s *server) history(w http.ResponseWriter, r *http.Request) {
	q, member := queryOf(r), r.PathValue("member")
	limit := q.limit()
	key, board := q.cursor(digits)
	end, _ := strconv.ParseInt(key, 10, 64) // 0 without a cursor; digits alone
	q.end()
	if err := rankcache.CheckMember(member); err != nil {
		q.bad("member", err.Error())
	}
	s.answer(w, r, q, func(ctx context.Context) (any, error) {
		places, complete, err := s.store.Places(ctx, member, end, board, limit)
		type placeRow struct {
			headRow
			entryRow
		}
		rows := make([]placeRow, len(places))
		for i, p := range places {
			rows[i] = placeRow{headOf(p.Final), entryOf(p.Final, p.Rank, p.Top[0])}
		}
		next := ""
		if n := len(places); n == limit && err == nil {
			next = cursorOf(strconv.FormatInt(places[n-1].End, 10), places[n-1].Board)
		}
		return struct {
			History []placeRow `json:"history"`
			// Complete is false if the member may be in further finals, beyond the places that are kept.
			Complete bool   `json:"complete"`
			Next     string `json:"next,omitempty"`
		}{rows, complete, next}, err
	})
}

// answer sends what read returns, unless the query is wrong or too many are under way. Nil is no final.
func (s *server) answer(w http.ResponseWriter, r *http.Request, q *query, read func(context.Context) (any, error)) {
	if q.problem != nil {
		q.problem.Write(w)
		return
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		httpserve.Problem{Status: http.StatusServiceUnavailable, Code: "overloaded", Title: "Too many requests at once"}.Write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	found, err := read(ctx)
	switch {
	case err != nil:
		s.log.Warn("finals can't be read", "err", err)
		httpserve.Problem{Status: http.StatusServiceUnavailable, Code: "ledger_unavailable", Title: "The ledger's database does not answer"}.Write(w)
	case found == nil:
		httpserve.Problem{Status: http.StatusNotFound, Code: "unknown_final", Title: "No such final",
			Detail: "the board is not final yet, or the class has other dimensions or no such tag"}.Write(w)
	default:
		httpserve.WriteJSON(w, http.StatusOK, found)
	}
}
