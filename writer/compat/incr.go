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
	Name  string             `json:"rank_name"`
	Type  wire.CompatText    `json:"rank_type"`
	Item  wire.CompatText    `json:"rank_item"`
	Score *wire.CompatNumber `json:"score"`
	MsgID wire.CompatText    `json:"msg_id"`
}

// envelope is what the answer is in. Both names of a field have the same value: callers look
// at either.
type envelope struct {
	Code    int    `json:"code"` // 0, or the status of the answer
	ErrCode int    `json:"errcode"`
	Message string `json:"message"` // "", or what is wrong
	ErrMsg  string `json:"errmsg"`
	Data    any    `json:"data"`
}

// increments answers /compat/incrScore.
type increments struct{ *Handler }

// incrScore adds to a score of the class that rank_name names, else of the board with that id.
func (h increments) incrScore(w http.ResponseWriter, r *http.Request, body []byte) error {
	c, err := h.decodeIncr(body)
	if err != nil {
		p := problemOf(err)
		writeEnvelope(w, &p, nil)
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
		return problem{httpserve.Problem{Status: http.StatusInternalServerError, Code: "internal", Title: "Internal error"}}
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
	code, text := errorCode(p)
	httpserve.WriteJSON(w, status, envelope{code, code, text, text, data})
}

func (h increments) decodeIncr(body []byte) (*command, error) {
	var r incrRequest
	if err := wire.DecodeCompat(body, &r); err != nil {
		return nil, err
	}
	if r.Score == nil {
		return nil, wire.BadField("score", "is missing")
	}
	if err := rankcache.CheckMember(string(r.Item)); err != nil {
		return nil, wire.BadField("rank_item", "%w", err)
	}
	c := &command{Member: string(r.Item), Op: wire.OpIncr.String(), Delta: (*float64)(r.Score), Order: orderOf(string(r.MsgID), string(r.Item))}
	if err := checkOrder(c.Order); err != nil {
		return nil, err
	}
	kind := h.classes().Class(r.Name)
	if kind != nil {
		dims, err := kind.OneDim(string(r.Type))
		if err != nil {
			return nil, wire.BadField("rank_type", "%w", err)
		}
		c.Class, c.Dims = r.Name, dims
		return c, nil
	}
	if err := rankcache.BoardID(r.Name).Check(); err != nil {
		return nil, wire.BadField("rank_name", "is no class, and %w", err)
	}
	if r.Type != "" {
		return nil, wire.Unsupported("rank_type", "rank_name %s is no class but a board, which has no types", r.Name)
	}
	c.Board = r.Name
	return c, nil
}
