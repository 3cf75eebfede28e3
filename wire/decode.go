package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"rankcache"
)

// MaxUpdateLen is the longest record, in bytes, that is read as an update.
const MaxUpdateLen = 16 << 10

// BadUpdate is the error of [DecodeUpdate]. Reason is one of a few fixed words,
// fit for a metric label.
type BadUpdate struct {
	Reason string // size, json, version, board, member, op, score, order
	Err    error
}

func (e *BadUpdate) Error() string { return "bad update (" + e.Reason + "): " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BadUpdate) Unwrap() error { return e.Err }

// DecodeUpdate reads one record of an update topic into u: the form that
// [AppendUpdate] writes, or the older {"rank_id","inviter_uid","invitee_uid"}.
// The strings of u share the memory of data, which must not be changed
// afterwards. The error is a [*BadUpdate] and leaves u undefined.
func DecodeUpdate(data []byte, u *Update) error {
	if len(data) > MaxUpdateLen {
		return &BadUpdate{"size", fmt.Errorf("%d bytes, want at most %d", len(data), MaxUpdateLen)}
	}
	var w wireUpdate
	if !w.scan(data) {
		w = wireUpdate{}
		if err := w.unmarshal(data); err != nil {
			return &BadUpdate{"json", err}
		}
	}
	if w.rank != "" {
		return w.older(u)
	}
	return w.update(u)
}

// wireUpdate is a record before it is checked. has tells a field that is
// missing from one that is zero.
type wireUpdate struct {
	version                  uint64
	board, member, op, order string
	delta, score             float64
	seq                      uint64
	at                       int64
	rank, inviter, invitee   string
	hasDelta, hasScore       bool
}

// update checks the current form and fills u.
func (w *wireUpdate) update(u *Update) error {
	if w.version != 1 {
		return &BadUpdate{"version", fmt.Errorf("v is %d, want 1", w.version)}
	}
	op, err := ParseOp(w.op)
	if err != nil {
		return &BadUpdate{"op", err}
	}
	*u = Update{Board: rankcache.BoardID(w.board), Member: w.member, Op: op, Delta: w.delta,
		Score: w.score, Seq: w.seq, Order: w.order, At: w.at}
	if err := w.checkScore(op); err != nil {
		return &BadUpdate{"score", err}
	}
	if w.seq == 0 || w.order != "" { // with a seq the order number only explains
		if err := CheckOrderID(w.order); err != nil {
			return &BadUpdate{"order", err}
		}
	}
	return u.checkNames()
}

// checkScore wants the field that the apply rule will use.
func (w *wireUpdate) checkScore(op Op) error {
	switch {
	case op == OpDelete:
		return nil
	case w.seq == 0 && op == OpIncr && !w.hasDelta:
		return errors.New("incr without seq has no delta")
	case (w.seq != 0 || op == OpSet) && !w.hasScore:
		return fmt.Errorf("%s has no score", op)
	}
	return errors.Join(rankcache.CheckScore(w.delta), rankcache.CheckScore(w.score))
}

// older turns an invitation into the update that it stands for: +1 for the
// inviter, once per pair.
func (w *wireUpdate) older(u *Update) error {
	if w.inviter == "" || w.invitee == "" {
		return &BadUpdate{"member", errors.New("inviter_uid or invitee_uid is missing")}
	}
	*u = Update{Board: rankcache.BoardID(w.rank), Member: w.inviter, Op: OpIncr, Delta: 1,
		Order: w.rank + "_" + w.inviter + "_" + w.invitee, At: w.at}
	if err := rankcache.CheckMember(w.invitee); err != nil {
		return &BadUpdate{"order", err}
	}
	return u.checkNames()
}

func (u *Update) checkNames() error {
	if err := u.Board.Check(); err != nil {
		return &BadUpdate{"board", err}
	}
	if err := rankcache.CheckMember(u.Member); err != nil {
		return &BadUpdate{"member", err}
	}
	return nil
}

// unmarshal reads what scan gives up on: escapes, nested values, odd numbers.
func (w *wireUpdate) unmarshal(data []byte) error {
	var j struct {
		V                 uint64
		Board, Member, Op string
		Delta, Score      *float64
		Seq               uint64
		Order             string
		At                int64
		RankID            idText `json:"rank_id"`
		InviterUID        idText `json:"inviter_uid"`
		InviteeUID        idText `json:"invitee_uid"`
	}
	if !utf8.Valid(data) { // encoding/json would replace the bad bytes and name another member
		return errors.New("not UTF-8")
	}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*w = wireUpdate{version: j.V, board: j.Board, member: j.Member, op: j.Op, seq: j.Seq, order: j.Order, at: j.At,
		rank: string(j.RankID), inviter: string(j.InviterUID), invitee: string(j.InviteeUID)}
	if w.hasDelta = j.Delta != nil; w.hasDelta {
		w.delta = *j.Delta
	}
	if w.hasScore = j.Score != nil; w.hasScore {
		w.score = *j.Score
	}
	return nil
}

// idText is an id that older producers write as a string or as a number.
type idText string

func (t *idText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(t))
	}
	var n json.Number
	err := json.Unmarshal(data, &n)
	*t = idText(n)
	return err
}
