package writer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// MaxCommandLen is the longest command that is read, in bytes.
const MaxCommandLen = wire.MaxUpdateLen

// Command is one requested score change. It is immutable once its board is found, and its
// order id is its own in the batch that it came in.
type Command struct {
	Board   rankcache.BoardID // of a command that names a class: empty until it is found
	Class   string            // empty if the command names the board
	Dims    map[string]string // dimensions of a board of the class
	By      map[string]string // groups of the member, of which feeds make members or dimensions of other boards
	Room    string            // may be empty; its mode applies as well as the board's
	Member  string
	Op      wire.Op
	Number  float64             // the delta of an incr, the score of a set or best
	Form    rankcache.ScoreForm // of the board, in which the number is given
	OrderID string              // the caller's idempotency key
	At      int64               // Unix milliseconds
	Reason  string              // why a member is hidden, restored or forgotten
	Prime   bool                // what ended periods give a member of a rolling board
	Data    *string             // what the member has from now on beside its score, "": nothing; nil: what it had
	HasData bool                // members of the board may have data
}

// text is the member as apply.lua takes it: with the command's data, if it has any, behind it.
func (c *Command) text() string {
	if !c.HasData {
		return c.Member
	}
	return c.Member + c.given()
}

// given is the command's data behind a 0, "" if it has none.
func (c *Command) given() string {
	if c.Data == nil {
		return ""
	}
	return "\x00" + *c.Data
}

// groups are the command's groups as one text, the same for equal ones; "" without any.
func (c *Command) groups() string {
	if len(c.By) == 0 {
		return ""
	}
	return string(wire.AppendDims(nil, c.By))
}

// raw is the command's number as Redis takes it.
func (c *Command) raw() float64 {
	if c.Op.Moves() { // a serial
		return c.Number
	}
	return c.Form.Raw(c.Number)
}

// foreignCommand is what may come as a command.
type foreignCommand struct {
	wire.Command
	legacy
	rest
}

// legacy is the older form, which [legacyCommand] reads.
type legacy struct {
	RankID  jsontext.Value `json:"rank_id"`
	Inviter jsontext.Value `json:"inviter_uid"`
	Invitee jsontext.Value `json:"invitee_uid"`
}

// rest is what an update has that a command has not: the ledger's commands are updates.
type rest struct {
	V       jsontext.Value `json:"v"`
	Raw     jsontext.Value `json:"raw"`
	Run     jsontext.Value `json:"run"`
	Seq     jsontext.Value `json:"seq"`
	Sum     jsontext.Value `json:"sum"`
	Members jsontext.Value `json:"members"`
	Tag     jsontext.Value `json:"tag"`
	Data64  jsontext.Value `json:"data64"`
	Given64 jsontext.Value `json:"given64"`
}

// DecodeCommand decodes one command: JSON of the current form, or the legacy {"rank_id","inviter_uid","invitee_uid"}.
// now (Unix milliseconds) is the time of a command without one. The command may share the memory of data. The error is
// a [*Refusal].
func DecodeCommand(data []byte, now int64) (*Command, error) {
	if len(data) > MaxCommandLen {
		return nil, &Refusal{"size", fmt.Errorf("%d bytes, want at most %d", len(data), MaxCommandLen)}
	}
	var w foreignCommand
	if err := wire.DecodeStrict(data, &w); err != nil {
		return nil, badJSON(err)
	}
	c, err := w.command(data)
	if err != nil {
		return nil, err
	}
	if c.At == 0 {
		c.At = now
	}
	return c, nil
}

// badJSON names the field if only one is invalid, such as a score of 1e999.
func badJSON(err error) error {
	bad, ok := errors.AsType[*wire.BadJSON](err)
	switch {
	case !ok || bad.Field == "":
		return &Refusal{"json", err}
	case bad.Unknown || bad.Twice:
		return &Refusal{"field", err}
	}
	reason, _, _ := strings.Cut(bad.Field, ".") // one of dims or by is the caller's word
	return &Refusal{reason, err}
}

func (w *foreignCommand) command(data []byte) (*Command, error) {
	if err := w.checkTarget(); err != nil {
		return nil, err
	}
	if w.RankID != nil && !w.Prime {
		return legacyCommand(data)
	}
	if w.Reason != "" || isOwn(w.Op) {
		return w.own()
	}
	op, err := wire.ParseOp(w.Op)
	if err != nil {
		return nil, &Refusal{"op", err}
	}
	c := &Command{Board: rankcache.BoardID(w.Board), Class: w.Class, Dims: w.Dims, By: w.By, Room: w.Room, Member: w.Member, Op: op, OrderID: w.Order, At: w.At, Prime: w.Prime, Data: w.Data}
	if op == wire.OpDelete {
		c.Data = nil // as its number is
	}
	if c.Number, err = w.number(op); err != nil {
		return nil, err
	}
	return c, c.check()
}

// checkTarget checks that the command names a board in one way only.
func (w *foreignCommand) checkTarget() error {
	switch {
	case w.Class != "" && (w.Board != "" || w.RankID != nil):
		return &Refusal{"board_and_class", errors.New("want board, or class and dims, not both")}
	case w.Class == "" && len(w.Dims) > 0:
		return &Refusal{"bad_dims", errors.New("dims without class: want board, or class and dims")}
	}
	return nil
}

// number returns the number that the operation uses; the other one is ignored.
func (w *foreignCommand) number(op wire.Op) (float64, error) {
	field, v := "delta", w.Delta
	switch op {
	case wire.OpDelete:
		return 0, nil
	case wire.OpSet, wire.OpBest:
		field, v = "score", w.Score
	}
	if v == nil {
		return 0, &Refusal{field, fmt.Errorf("%s without %s", op, field)}
	}
	return *v + 0, nil // -0 becomes 0
}

// maxReasonLen is the longest reason, in bytes.
const maxReasonLen = 200

func isOwn(name string) bool {
	op, err := wire.ParseUpdateOp(name)
	return err == nil && op.Own()
}

// own returns the command to hide, restore or forget a member.
func (w *foreignCommand) own() (*Command, error) {
	op, serial, ok := wire.ParseHide(w.Op, w.Order, w.Member)
	if w.Op == wire.OpForget.String() {
		op, ok = wire.OpForget, true
	}
	switch {
	case !isOwn(w.Op):
		return nil, &Refusal{"field", errors.New("reason is of hide, restore and forget alone: leave it out")}
	case w.Prime:
		return nil, &Refusal{"op", fmt.Errorf("%s of a prime", w.Op)}
	case !rankcache.PlainText(w.Reason, maxReasonLen):
		return nil, &Refusal{"reason", fmt.Errorf("reason: want why, in 1 to %d bytes of UTF-8 without control characters", maxReasonLen)}
	}
	c := &Command{Board: rankcache.BoardID(w.Board), Class: w.Class, Dims: w.Dims, Room: w.Room, Member: w.Member, Op: op, Number: float64(serial), OrderID: w.Order, At: w.At, Reason: w.Reason}
	if err := c.check(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, &Refusal{"order", errors.New("want hide/<serial>/<member>, as POST /v1/members:hide makes it")}
	}
	return c, nil
}

// check validates ids and time.
func (c *Command) check() error {
	var board error
	if c.Class == "" {
		board = c.Board.Check()
	}
	var room error
	if c.Room != "" {
		room = rooms.CheckUID(c.Room)
	}
	var data error
	if c.Data != nil {
		data = rankcache.CheckData(*c.Data)
	}
	var at error
	if c.At < 0 {
		at = fmt.Errorf("%d is before 1970: want Unix milliseconds", c.At)
	}
	member := rankcache.CheckMember(c.Member)
	if wire.Forgotten(c.Member) {
		member = fmt.Errorf("%s is what the ledger calls one that was forgotten: want another id", c.Member)
	}
	for _, f := range []struct {
		field string
		err   error
	}{
		{"board", board}, {"member", member},
		{"order", wire.CheckOrderID(c.OrderID)}, {"room", room}, {"at", at}, {"data", data},
	} {
		if f.err != nil {
			return &Refusal{f.field, f.err}
		}
	}
	return nil
}

// legacyCommand decodes an invitation, which [wire.DecodeUpdate] supports.
func legacyCommand(data []byte) (*Command, error) {
	var u wire.Update
	if err := wire.DecodeUpdate(data, &u); err != nil {
		bad, _ := errors.AsType[*wire.BadUpdate](err)
		return nil, &Refusal{bad.Reason, bad.Err}
	}
	c := &Command{Board: u.Board, Member: u.Member, Op: u.Op, Number: u.Delta, OrderID: strings.Clone(u.OrderID), At: u.At}
	return c, c.check()
}
