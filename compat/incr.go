package compat

import (
	"encoding/json"
	"net/http"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/wire"
)

// incrRequest is what incrScore takes.
type incrRequest struct {
	Name  string   `json:"rank_name"`
	Type  text     `json:"rank_type"`
	Item  text     `json:"rank_item"`
	Score *decimal `json:"score"`
	MsgID text     `json:"msg_id"`
}

// incremented is the data of a good answer.
type incremented struct {
	Item   string  `json:"rank_item"`
	Score  float64 `json:"score"`
	Status int     `json:"status"`
}

// applied is the status of each good answer.
const applied = 1

// increments answers /compat/incrScore.
type increments struct{ *Changes }

// incrScore adds to a score of the class that rank_name names, else of the board with that id.
func (h increments) incrScore(w http.ResponseWriter, r *http.Request, body []byte) error {
	c, err := h.decodeIncr(body)
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
	writeEnvelope(w, nil, incremented{c.Member, update.Score, applied})
	return nil
}

func writeEnvelope(w http.ResponseWriter, p *httpserve.Problem, data any) {
	status := http.StatusOK
	if p != nil {
		if status = p.Status; status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
	}
	httpserve.WriteJSON(w, status, inEnvelope(data, p))
}

func (h increments) decodeIncr(body []byte) (*command, error) {
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
	c := &command{Member: string(r.Item), Op: wire.OpIncr.String(), Delta: (*float64)(r.Score), Order: orderOf(string(r.MsgID), string(r.Item))}
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
	c.Board = string(board)
	return c, err
}
