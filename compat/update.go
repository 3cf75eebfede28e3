package compat

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/wire"
)

const maxRows = 99 // the most rows of one request

// updateRequest is UpdateRankScoreReq, and, but for the scores, DeleteRankMemberReq.
type updateRequest struct {
	AppID   json.RawMessage `json:"appid"` // not looked at
	ActID   integer         `json:"actId"`
	Token   string          `json:"xcode"`
	RankObj rankObj         `json:"rankObj"`
	Data    []updateRow     `json:"data"`
	Time    *integer        `json:"t_time,case:ignore"`
	Type    integer         `json:"update_type,case:ignore"`
	MsgID   text            `json:"msgId"`
	Minus   integer         `json:"plusOrminus"`
}

// updateRow is MemberAndScore. What answers alone have is not looked at, as callers send rows on as they got them.
type updateRow struct {
	Member text            `json:"member_id,case:ignore"`
	Score  json.RawMessage `json:"score"` // a [wholeScore] of an update; a delete's is not looked at
	Data   json.RawMessage `json:"data"`  // of an update of a class with data
	Code   json.RawMessage `json:"errCode"`
	Text   json.RawMessage `json:"errMsg"`
	Result json.RawMessage `json:"result_score,case:ignore"`
}

type updateAnswer struct {
	ActID   integer   `json:"actId"`
	RankObj rankObj   `json:"rankObj"`
	Data    []updated `json:"data"`
}

// updated is what became of one row. Its code is 0, or the status of the problem that errMsg names.
type updated struct {
	Member  string `json:"member_id"`
	Score   uint64 `json:"score"` // that of the request
	ErrCode int    `json:"errCode"`
	ErrMsg  string `json:"errMsg,omitempty"`
	Data    string `json:"data,omitempty"` // that of the request, if the class has data
	Result  uint64 `json:"result_score"`

	problem *httpserve.Problem // nil: it is applied
}

func (h *Changes) update(w http.ResponseWriter, r *http.Request, body []byte) error {
	return h.change(w, r, body, (*updateRequest).changeOf, func(req *updateRequest, rows []updated) (any, error) {
		return updateAnswer{req.ActID, req.RankObj, rows}, nil
	})
}

// remove answers nothing where all rows are deleted; a row that is not is the problem of the request.
func (h *Changes) remove(w http.ResponseWriter, r *http.Request, body []byte) error {
	return h.change(w, r, body, (*updateRequest).removalOf, func(_ *updateRequest, rows []updated) (any, error) {
		for i := range rows {
			if p := rows[i].problem; p != nil {
				failed := *p
				failed.Detail = fmt.Sprintf("member %s: %s; other members may be deleted, and a repeat with the same msgId is safe", rows[i].Member, p.Detail)
				return nil, problem{failed}
			}
		}
		return struct{}{}, nil
	})
}

// change has each row applied as a command that fill completes, and answers what answer makes of the rows.
func (h *Changes) change(w http.ResponseWriter, r *http.Request, body []byte, fill func(*updateRequest, *updateRow, *wire.Command) error, answer func(*updateRequest, []updated) (any, error)) error {
	req, commands, err := h.decode(body, fill)
	if err != nil {
		return err
	}
	batch, err := json.Marshal(map[string][]wire.Command{"commands": commands})
	if err != nil { // strings and finite numbers
		return fmt.Errorf("commands can't be encoded: %w", err)
	}
	got := h.post(r, "/v1/scores:batch", req.Token, batch)
	if got.status != http.StatusOK {
		got.pass(w)
		return nil
	}
	rows, err := readResults(got.body.Bytes(), commands)
	if err != nil {
		return internal
	}
	v, err := answer(req, rows)
	if err == nil {
		httpserve.WriteJSON(w, http.StatusOK, v)
	}
	return err
}

func (h *Changes) decode(body []byte, fill func(*updateRequest, *updateRow, *wire.Command) error) (*updateRequest, []wire.Command, error) {
	req := new(updateRequest)
	if err := decode(body, req); err != nil {
		return nil, nil, err
	}
	kind, err := classByIDs(h.classes(), req.ActID, req.RankObj.RankID)
	if err != nil {
		return nil, nil, err
	}
	dims, err := kind.OneDim(string(req.RankObj.ObjID))
	if err != nil {
		return nil, nil, badField("objId", "%w", err)
	}
	if err := req.check(); err != nil {
		return nil, nil, err
	}
	commands := make([]wire.Command, len(req.Data))
	for i := range req.Data {
		row := &req.Data[i]
		member := string(row.Member)
		c := wire.Command{Class: kind.Name(), Dims: dims, Member: member, Order: orderOf(string(req.MsgID), member), At: atOf(req.Time)}
		if err := checkOrder(c.Order); err != nil {
			return nil, nil, err
		}
		if err := fill(req, row, &c); err != nil {
			return nil, nil, err
		}
		if kind.Data && c.Op != wire.OpDelete.String() {
			if err := row.readData(&c); err != nil {
				return nil, nil, err
			}
		}
		if c.Op == wire.OpSet.String() && !slices.Contains(kind.Ops, wire.OpSet) && slices.Contains(kind.Ops, wire.OpBest) {
			c.Op = wire.OpBest.String()
		}
		commands[i] = c
	}
	return req, commands, nil
}

func (r *updateRequest) check() error {
	switch {
	case len(r.Data) == 0 || len(r.Data) > maxRows:
		return badField("data", "%d rows, want 1 to %d", len(r.Data), maxRows)
	case r.Type != 0 && r.Type != 1:
		return badField("update_type", "is %d, want 0 (set) or 1 (incr)", r.Type)
	case r.Minus != 0 && r.Minus != 1:
		return badField("plusOrminus", "is %d, want 0 (plus) or 1 (minus)", r.Minus)
	case r.Minus == 1 && r.Type == 0:
		return unsupported("plusOrminus", "minus needs update_type 1: a score can't be set to less than 0")
	}
	seen := make(map[text]bool, len(r.Data))
	for _, row := range r.Data {
		if err := rankcache.CheckMember(string(row.Member)); err != nil {
			return badField("member_id", "%w", err)
		}
		if seen[row.Member] {
			return badField("member_id", "%.60q is listed twice: one request changes a member once", row.Member)
		}
		seen[row.Member] = true
	}
	return nil
}

// readData sets the command's data. An empty text, which callers send that know of none, leaves what the member has.
func (r *updateRow) readData(c *wire.Command) error {
	if !hasText(r.Data) {
		return nil
	}
	if err := wire.DecodeStrict(r.Data, &c.Data); err != nil {
		return badField("data", "%w", err)
	}
	if err := rankcache.CheckData(*c.Data); err != nil {
		return badField("data", "%w", err)
	}
	return nil
}

func hasText(raw json.RawMessage) bool {
	text := string(raw)
	return text != "" && text != "null" && text != `""`
}

func (r *updateRequest) changeOf(row *updateRow, c *wire.Command) error {
	if row.Score == nil || string(row.Score) == "null" {
		return badField("score", "is missing")
	}
	var score wholeScore
	if err := score.UnmarshalJSON(row.Score); err != nil {
		return err
	}
	number := float64(score)
	if c.Op = wire.OpSet.String(); r.Type == 0 {
		c.Score = &number
		return nil
	}
	if r.Minus == 1 {
		number = -number
	}
	c.Op, c.Delta = wire.OpIncr.String(), &number
	return nil
}

func (r *updateRequest) removalOf(row *updateRow, c *wire.Command) error {
	if r.Type != 0 {
		return unsupported("update_type", "a member is deleted whole")
	}
	c.Op = wire.OpDelete.String()
	return nil
}

// scoreGiven returns the score that the row of a command had.
func scoreGiven(c *wire.Command) uint64 {
	switch {
	case c.Score != nil:
		return uint64(*c.Score)
	case c.Delta != nil:
		return uint64(math.Abs(*c.Delta))
	}
	return 0
}

type result struct {
	Result *struct {
		Score float64 `json:"score"`
	} `json:"result"`
	Problem *httpserve.Problem `json:"problem"`
}

func readResults(body []byte, commands []wire.Command) ([]updated, error) {
	var all struct {
		Results []result `json:"results"`
	}
	if err := json.Unmarshal(body, &all); err != nil || len(all.Results) != len(commands) {
		return nil, fmt.Errorf("%d results for %d commands: %.100s", len(all.Results), len(commands), body)
	}
	rows := make([]updated, len(commands))
	for i, one := range all.Results {
		rows[i].Member, rows[i].Score = commands[i].Member, scoreGiven(&commands[i])
		if one.Result == nil && one.Problem == nil {
			return nil, fmt.Errorf("result %d is neither a score nor a problem", i)
		}
		if one.Problem != nil {
			rows[i].ErrCode, rows[i].ErrMsg, rows[i].problem = one.Problem.Status, messageOf(one.Problem), one.Problem
			continue
		}
		if commands[i].Data != nil {
			rows[i].Data = *commands[i].Data
		}
		rows[i].Result, _ = shownScore(one.Result.Score) // a code would have callers repeat or refund what is counted
	}
	return rows, nil
}
