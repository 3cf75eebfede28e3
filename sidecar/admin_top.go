package sidecar

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"rankcache"
)

// defaultAdminTop is the rows of GET /boards/{board}/top on the admin listener.
const defaultAdminTop = 10

// quiet returns a reader of the same boards whose reads do not make a board hot:
// an operator who watches one is not its traffic.
func (r *Reader) quiet() *Reader {
	q := *r
	if r.hot != nil {
		q.hot = uncounted{r.hot}
	}
	return &q
}

type uncounted struct{ Hot }

func (uncounted) Count(rankcache.BoardID) {}

// top answers GET /boards/{board}/top?limit=10 as the data port does, with
// profiles if there is a source of them.
func (st *Status) top(w http.ResponseWriter, r *http.Request) {
	q, limit, p := topQuery(r)
	if p != nil {
		writeProblem(w, p)
		return
	}
	reader := st.Reader.quiet()
	a, err := reader.Top(r.Context(), q, limit)
	if err != nil {
		writeProblem(w, problemOf(err))
		return
	}
	j := joined{}
	if reader.profiles != nil {
		j = join(r.Context(), reader.profiles, a.Entries)
	}
	h := w.Header()
	h.Set("Content-Type", contentJSON)
	h.Set("Cache-Control", "no-store")
	h.Set("Rankcache-Source", a.Source.String())
	h.Set("Rankcache-Age-Ms", strconv.FormatInt(max(time.Since(a.CurrentAt).Milliseconds(), 0), 10))
	_, _ = w.Write(appendPage(nil, q, limit, &a, &j)) // a caller that left is none of our business
}

// topQuery takes the request apart.
func topQuery(r *http.Request) (q Query, limit int, p *problem) {
	id, err := rankcache.ParseBoardID(r.PathValue("board"))
	if err != nil {
		return q, 0, badArgument("board", err.Error())
	}
	limit = defaultAdminTop
	if text := r.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > rankcache.MaxTop {
			return q, 0, badArgument("limit", fmt.Sprintf("want 1 to %d", rankcache.MaxTop))
		}
	}
	return Query{Board: id}, limit, nil
}
