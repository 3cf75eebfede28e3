package compat

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"rankcache"
	"rankcache/wire"
)

// pointsRequest is what POST /v1/scores takes of callers that know of users.
type pointsRequest struct {
	User   text     `json:"user_id"`
	Points *decimal `json:"points"`
	MsgID  text     `json:"msg_id"`
}

// points adds the points of a user on the board of ?board=, or on the configured one. Commands,
// which have no user_id, are for the next handler; it answers both.
type points struct{ *Changes }

// boardOf returns the board that a request may add points on, "" if it is not known of any: then
// the request is for the next handler without a look at its body.
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

// command returns the command that adds the points.
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
	c := command{Board: string(board), Member: user, Op: wire.OpIncr.String(), Delta: (*float64)(r.Points), Order: orderOf(string(r.MsgID), user)}
	if err := wire.CheckOrderID(c.Order); err != nil {
		return nil, badField("msg_id", "with the user behind it: %w", err)
	}
	return json.Marshal(c)
}
