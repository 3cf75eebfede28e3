package compat

import (
	"encoding/json"
	"net/http"

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
	writeEnvelope(w, nil, map[string]any{"rank_item": c.Member, "score": update.Score})
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
	kind, dims, err := classByName(h.classes(), r.Name, r.Type)
	if err != nil {
		return nil, err
	}
	if kind == nil {
		c.Board = r.Name
	} else {
		c.Class, c.Dims = r.Name, dims
	}
	return c, nil
}
