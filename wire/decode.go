package wire

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"rankcache"
)

// MaxUpdateLen is the longest record, in bytes, that is read as an update.
const MaxUpdateLen = 16 << 10

// BadUpdate is the error of [DecodeUpdate] and [DecodeLog]. Reason is one of a few fixed words, usable as a metric label.
type BadUpdate struct {
	Reason string // size, json, version, record, board, member, op, run, score, data, veil, order
	Err    error
}

func (e *BadUpdate) Error() string { return "bad update (" + e.Reason + "): " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BadUpdate) Unwrap() error { return e.Err }

// DecodeUpdate decodes one record of an update topic into u: the form that [AppendUpdate] writes, or the legacy
// {"rank_id","inviter_uid","invitee_uid"}. The strings of u share the memory of data, which must not be changed
// afterwards. The error is a [*BadUpdate] and leaves u undefined.
func DecodeUpdate(data []byte, u *Update) error {
	var w rawUpdate
	err := w.decode(data, u)
	if err == nil && u.Hiding.Serial != 0 {
		err = &BadUpdate{"version", errors.New("a record of the ledger's topic, which tells of hidden members")}
	}
	return err
}

func (w *rawUpdate) decode(data []byte, u *Update) error {
	if len(data) > MaxUpdateLen {
		return &BadUpdate{"size", fmt.Errorf("%d bytes, want at most %d", len(data), MaxUpdateLen)}
	}
	if s := unsafe.String(unsafe.SliceData(data), len(data)); !w.scan(s) { // data stays unchanged: see DecodeUpdate
		if err := w.unmarshal(data); err != nil {
			return &BadUpdate{"json", err}
		}
	}
	if w.rank != "" {
		return w.legacy(u)
	}
	return w.update(u)
}

// rawUpdate is a decoded record before it is checked. hasDelta, hasScore and hasRaw tell a missing field from a zero.
type rawUpdate struct {
	version                    uint64
	board, member, op, orderID string
	delta, score, raw          float64
	seq, run, sum, members     uint64
	at                         int64
	rank, inviter, invitee     string
	data, veil                 string // as they are written
	hasDelta, hasScore, hasSum bool
	hasRaw                     bool
}

// update checks a record of the current form and fills u.
func (w *rawUpdate) update(u *Update) error {
	forgets := w.op == opNames[OpForget]
	if w.version != 2 && (w.version < 3 || w.version > 4 || !w.hasRaw) && (w.version != 5 || w.veil == "") && (w.version != 6 || !forgets) {
		return &BadUpdate{"version", fmt.Errorf("v is %d, want 2, 3 or 4 with raw, 5 with veil, or 6 of a forget", w.version)}
	}
	op, err := ParseUpdateOp(w.op)
	if op == OpTrim && w.seq == 0 || op.Moves() && w.version != 5 || forgets && (w.version != 6 || w.seq == 0) {
		op, err = ParseOp(w.op)
	}
	if err != nil {
		return &BadUpdate{"op", err}
	}
	if (w.seq == 0) != (w.run == 0) {
		return &BadUpdate{"run", fmt.Errorf("seq %d of run %d: want both, or none from a producer that doesn't count", w.seq, w.run)}
	}
	*u = Update{Board: rankcache.BoardID(w.board), Member: w.member, Op: op, Delta: w.delta,
		Score: w.score, OrderID: w.orderID, At: w.at}
	if w.seq != 0 {
		u.Seq, u.Run, u.Sum, u.HasSum, u.Members = w.seq, w.run, w.sum, w.hasSum, int(min(w.members, math.MaxInt64))
	}
	err = w.checkScore(op)
	if err == nil && w.hasRaw && !op.Removes() {
		err = w.readRaw(u)
	}
	if err != nil {
		return &BadUpdate{"score", err}
	}
	if w.data != "" {
		if err := w.readData(u); err != nil {
			return &BadUpdate{"data", err}
		}
	}
	if w.version == 5 {
		if err := w.readHiding(u); err != nil {
			return &BadUpdate{"veil", err}
		}
	}
	if w.seq == 0 || w.orderID != "" { // with a seq the order id is only informative
		if err := CheckOrderID(w.orderID); err != nil {
			return &BadUpdate{"order", err}
		}
	}
	return u.checkNames()
}

// checkScore requires the number from which the update will be applied.
func (w *rawUpdate) checkScore(op Op) error {
	switch {
	case op.Removes(), op.Moves() && !w.hasScore:
		return nil
	case w.seq == 0 && op == OpIncr && !w.hasDelta:
		return errors.New("incr without seq has no delta")
	case op == OpBest && (w.seq == 0 || !w.hasDelta):
		return errors.New("best without seq or delta")
	case (w.seq != 0 || op == OpSet) && !w.hasScore:
		return fmt.Errorf("%s has no score", op)
	}
	return errors.Join(rankcache.CheckScore(w.delta), rankcache.CheckScore(w.score))
}

// readRaw sets the raw score of u, and the form that shows it as the record's score.
func (w *rawUpdate) readRaw(u *Update) error {
	form, ok := rankcache.FormOf(w.raw, w.score)
	if !ok {
		return fmt.Errorf("raw %v is never shown as %v", w.raw, w.score)
	}
	u.Score, u.Form = w.raw, form
	return rankcache.CheckScore(w.raw)
}

// readData sets the member's data.
func (w *rawUpdate) readData(u *Update) error {
	data, err := base64.RawURLEncoding.Strict().DecodeString(w.data)
	if err != nil {
		return err
	}
	if u.Data = string(data); u.Op.Removes() || u.Seq == 0 {
		return fmt.Errorf("%s of seq %d has data", u.Op, u.Seq)
	}
	return rankcache.CheckData(u.Data)
}

// readHiding sets whether the member is hidden, with the score that it has.
func (w *rawUpdate) readHiding(u *Update) error {
	v, raw, ok := ParseHidden(w.veil)
	bare := u.Op.Removes() || !w.hasScore
	switch {
	case !ok || v.Serial == 0 || v.Serial > maxSerial || u.Seq == 0:
		return fmt.Errorf("veil %.60q of seq %d: want the serial of a hide or restore, and the score of a hidden member", w.veil, u.Seq)
	case v.Hidden && (v.Bare != bare || !bare && raw != u.Score):
		return fmt.Errorf("veil %.60q of a member with a score of %v", w.veil, u.Score)
	case u.Op == OpTrim || u.Data != "":
		return errors.New("a hidden member is on no board that is trimmed or has data")
	}
	if u.Hiding = v; bare {
		u.Hiding.Bare, u.Score = true, 0
	}
	return nil
}

// legacy turns an invitation into an update: +1 for the inviter, once per pair.
func (w *rawUpdate) legacy(u *Update) error {
	if w.inviter == "" || w.invitee == "" {
		return &BadUpdate{"member", errors.New("inviter_uid or invitee_uid is missing")}
	}
	*u = Update{Board: rankcache.BoardID(w.rank), Member: w.inviter, Op: OpIncr, Delta: 1,
		OrderID: w.rank + "_" + w.inviter + "_" + w.invitee, At: w.at}
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

// unmarshal decodes JSON that scan does not: escapes, nested values, unusual numbers.
func (w *rawUpdate) unmarshal(data []byte) error {
	var j struct {
		V                 uint64
		Board, Member, Op string
		Delta, Score, Raw *float64
		Seq, Run, Members uint64
		Sum               *string
		Order, Data64     string
		Veil              string
		At                int64
		RankID            idText `json:"rank_id"`
		InviterUID        idText `json:"inviter_uid"`
		InviteeUID        idText `json:"invitee_uid"`
	}
	if !jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true)) { // encoding/json would replace what is not Unicode, and so name another member
		return errors.New("not JSON of Unicode text")
	}
	if err := json.Unmarshal(data, &j); err != nil {
		return inWords(err)
	}
	*w = rawUpdate{version: j.V, board: j.Board, member: j.Member, op: j.Op, seq: j.Seq, run: j.Run, members: j.Members, orderID: j.Order, data: j.Data64, veil: j.Veil, at: j.At,
		rank: string(j.RankID), inviter: string(j.InviterUID), invitee: string(j.InviteeUID)}
	if w.hasDelta = j.Delta != nil; w.hasDelta {
		w.delta = *j.Delta
	}
	if j.Sum != nil {
		if w.sum, w.hasSum = parseSum(*j.Sum); !w.hasSum {
			return fmt.Errorf("sum %.20q: want 12 hex digits", *j.Sum)
		}
	}
	if w.hasScore = j.Score != nil; w.hasScore {
		w.score = *j.Score
	}
	if w.hasRaw = j.Raw != nil; w.hasRaw {
		w.raw = *j.Raw
	}
	return nil
}

// inWords returns an error of encoding/json without the names of Go's types.
func inWords(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s is a %s, which it can't be", cmp.Or(wrong.Field, "an id"), wrong.Value)
	}
	return err
}

// parseSum parses 12 lower-case hex digits.
func parseSum(text string) (sum uint64, ok bool) {
	if len(text) != 12 {
		return 0, false
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		sum = sum<<4 | uint64(c)
	}
	return sum, true
}

// idText is an id that legacy producers write as a string or as a number.
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
