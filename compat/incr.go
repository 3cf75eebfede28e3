package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/wire"
)

type incrRequest struct {
	Name  string   `json:"rank_name"`
	Type  text     `json:"rank_type"`
	Item  text     `json:"rank_item"`
	Score *decimal `json:"score"`
	MsgID text     `json:"msg_id"`
}

type incremented struct {
	Item   item    `json:"rank_item"`
	Score  float64 `json:"score"`
	Status bool    `json:"status"` // true
}

type increments struct{ *Changes }

// incrScore adds to a score of the class that rank_name names, else of the board with that id.
func (h increments) incrScore(w http.ResponseWriter, r *http.Request, body []byte) error {
	c, err := h.decodeIncr(r.Context(), body)
	if err != nil {
		writeEnvelope(w, changeProblem(err), nil)
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil { // strings and finite numbers
		return err
	}
	answer := h.post(r, "/v1/scores", "", text)
	if answer.status != http.StatusOK {
		p := httpserve.Problem{Status: answer.status}
		_ = json.Unmarshal(answer.body.Bytes(), &p) // what it lacks stays empty
		writeEnvelope(w, &p, nil)
		return nil
	}
	var update struct {
		Score float64 `json:"score"`
	}
	if err := json.Unmarshal(answer.body.Bytes(), &update); err != nil {
		return internal
	}
	writeEnvelope(w, nil, incremented{item(c.Member), update.Score, true})
	return nil
}

func writeEnvelope(w http.ResponseWriter, p *httpserve.Problem, data any) {
	status := http.StatusOK
	if p != nil {
		switch status = p.Status; status {
		case http.StatusServiceUnavailable:
			w.Header().Set("Retry-After", "1")
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "60") // at the latest
		}
	}
	httpserve.WriteJSON(w, status, inEnvelope(data, p))
}

func (h increments) decodeIncr(ctx context.Context, body []byte) (*wire.Command, error) {
	var r incrRequest
	if err := decode(body, &r); err != nil {
		return nil, err
	}
	if r.Score == nil {
		return nil, badField("score", "is missing")
	}
	if err := rankcache.CheckMember(string(r.Item)); err != nil {
		return nil, badField("rank_item", "%w", err)
	}
	c := &wire.Command{Member: string(r.Item), Op: wire.OpIncr.String(), Delta: (*float64)(r.Score), Order: orderOf(string(r.MsgID), string(r.Item))}
	if err := checkOrder(c.Order); err != nil {
		return nil, err
	}
	n, err := nameOf(h.classes(), r.Name, r.Type)
	if err != nil {
		return nil, err
	}
	if n.kind != nil && n.at == "" {
		c.Class, c.Dims = r.Name, n.dims
		return c, nil
	}
	board, _, err := n.boardOf(time.Now())
	if c.Board = string(board); err != nil || h.classes().Names(board) {
		return c, err
	}
	a := rankcache.One(ctx, h.boards, rankcache.Query{Board: board, Limit: 1})
	switch {
	case a.Err != nil:
		return nil, problem{httpserve.Problem{Status: http.StatusServiceUnavailable, Code: "origin_unavailable", Title: "Redis did not answer", Detail: a.Err.Error()}}
	case !exists(&a):
		return nil, noName(r.Name)
	}
	return c, nil
}

// pointsRequest is what POST /v1/scores takes of callers that know of users.
type pointsRequest struct {
	User   text     `json:"user_id"`
	Points *decimal `json:"points"`
	MsgID  text     `json:"msg_id"`
}

// points adds the points of a user on the board of ?board= or the configured one. Commands are for the next handler.
type points struct{ *Changes }

// boardOf returns the board that a request may add points on, "" if none is known: then the next handler answers it.
func (h points) boardOf(r *http.Request) rankcache.BoardID {
	if r.URL.Path != "/v1/scores" || r.Method != http.MethodPost {
		return ""
	}
	if named := r.URL.Query().Get("board"); named != "" {
		return rankcache.BoardID(named)
	}
	return h.board
}

func (h points) serve(w http.ResponseWriter, r *http.Request, board rankcache.BoardID) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxLen+1))
	var fields map[string]json.RawMessage
	if err == nil && json.Unmarshal(body, &fields) == nil && fields["user_id"] != nil {
		if body, err = h.command(body, board); err != nil {
			changeProblem(err).Write(w)
			return
		}
		r.ContentLength = int64(len(body))
	}
	r.Body = readCloser{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	h.next.ServeHTTP(w, r)
}

// readCloser reads what was read of a body before the rest of it.
type readCloser struct {
	io.Reader
	io.Closer
}

func (h points) command(body []byte, board rankcache.BoardID) ([]byte, error) {
	var r pointsRequest
	if err := decode(body, &r); err != nil {
		return nil, err
	}
	if r.Points == nil {
		return nil, badField("points", "is missing")
	}
	if err := board.Check(); err != nil {
		return nil, badField("board", "%w", err)
	}
	user := string(r.User)
	if err := rankcache.CheckMember(user); err != nil {
		return nil, badField("user_id", "%w", err)
	}
	c := wire.Command{Board: string(board), Member: user, Op: wire.OpIncr.String(), Delta: (*float64)(r.Points), Order: orderOf(string(r.MsgID), user)}
	if err := wire.CheckOrderID(c.Order); err != nil {
		return nil, badField("msg_id", "with the user behind it: %w", err)
	}
	return json.Marshal(c)
}
