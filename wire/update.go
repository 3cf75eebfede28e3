package wire

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rankcache"
)

// Sentinel errors. They come wrapped with what to check.
var (
	// ErrOrderID reports an order id that is missing, too long or not plain text.
	ErrOrderID = errors.New("bad order id")
	// ErrOp reports an operation that is unknown, or not of commands.
	ErrOp = errors.New("unknown op")
)

// MaxOrderIDLen is the longest order id, in bytes.
const MaxOrderIDLen = 128

// CheckOrderID returns an error that wraps [ErrOrderID] unless id is 1 to
// [MaxOrderIDLen] bytes of UTF-8 text without control characters.
func CheckOrderID(id string) error {
	if !rankcache.PlainText(id, MaxOrderIDLen) {
		return fmt.Errorf("%w %.40q: want 1 to %d bytes of UTF-8 without control characters", ErrOrderID, id, MaxOrderIDLen)
	}
	return nil
}

// Op is a command's operation on a member's score.
type Op uint8

// The operations of commands and updates. OpTrim is of updates alone: the writer has removed the last member of a board
// that keeps only its best. OpBest gives the member a number as its score, unless it has a better one. OpHide and
// OpRestore are of commands alone: they change whether a member is on the board ([Hiding]). OpForget is a delete that
// every class takes, with all that the board's keys have of the member.
const (
	OpIncr Op = iota + 1
	OpSet
	OpDelete
	OpTrim
	OpBest
	OpHide
	OpRestore
	OpForget
)

var opNames = [...]string{OpIncr: "incr", OpSet: "set", OpDelete: "delete", OpTrim: "trim", OpBest: "best", OpHide: "hide", OpRestore: "restore", OpForget: "forget"}

// Removes reports whether the operation takes the member from the board.
func (op Op) Removes() bool { return op == OpDelete || op == OpTrim || op == OpForget }

// HasDelta reports whether an update tells the command's number beside the score that came of it.
func (op Op) HasDelta() bool { return op == OpIncr || op == OpBest }

// Commutes reports whether changes of one member by op and by another command leave the same score in either sequence.
func (op Op) Commutes(other Op) bool { return op == other && op.HasDelta() }

// Moves reports whether the operation takes a member out of sight, or brings it back.
func (op Op) Moves() bool { return op == OpHide || op == OpRestore }

// Own reports whether the operation is of its board alone: what that feeds does not get it, and limits don't count it.
func (op Op) Own() bool { return op.Moves() || op == OpForget }

// ForgottenPrefix begins what books have in the place of a member that is forgotten, before 16 random letters and digits.
const ForgottenPrefix = "forgotten:"

// Forgotten reports whether a member is of that form, which commands can't have.
func Forgotten(member string) bool {
	return len(member) == len(ForgottenPrefix)+16 && strings.HasPrefix(member, ForgottenPrefix)
}

// ParseOp returns the operation of a command named s, or an error that wraps [ErrOp].
func ParseOp(s string) (Op, error) {
	for op, name := range opNames {
		if name == s && s != "" && Op(op) != OpTrim && !Op(op).Own() {
			return Op(op), nil
		}
	}
	return 0, fmt.Errorf("%w %.20q: want incr, set, best or delete", ErrOp, s)
}

// ParseUpdateOp returns the operation of an update named s, as [ParseOp] does of a command: a trim, a hide,
// restore or forget, too.
func ParseUpdateOp(s string) (Op, error) {
	if op := slices.Index(opNames[1:], s); op >= 0 {
		return Op(op + 1), nil
	}
	return ParseOp(s)
}

// String returns the operation as it is written on the wire.
func (op Op) String() string {
	if op >= OpIncr && op <= OpForget {
		return opNames[op]
	}
	return "op(" + strconv.Itoa(int(op)) + ")"
}

// Update is one applied change of one board, as it travels on the board's topic. A member takes the state of its
// highest Seq, so duplicates, reordering and re-reads are harmless; with Seq 0 (the producer keeps none) the change
// counts once per OrderID.
type Update struct {
	Board   rankcache.BoardID
	Member  string
	Op      Op
	Form    rankcache.ScoreForm // how Score is shown, where it is known
	HasSum  bool                // whether Sum is set; beside what is as small, as many updates are held
	Delta   float64             // the amount that an incr added to the score that is shown, the number of a best
	Score   float64             // the member's raw score after the change; unused by delete and trim
	Seq     uint64              // the board's count of applied changes, this one included
	Run     uint64              // the life of the board in which Seq counts; 0 with Seq 0
	Sum     uint64              // the board's checksum after the change, if HasSum is set
	Members int                 // on the board after the change
	OrderID string              // the caller's idempotency key
	By      string              // the member's groups at that time, as [AppendDims] writes them; on the ledger's topic alone
	Given   string              // the command's data behind a 0, "" if it had none; on the ledger's topic alone
	At      int64               // when the command was given, Unix milliseconds
	Hiding  Hiding              // of a member that is, or was, hidden; on the ledger's topic alone
	Data    string              // the member's after the change; "" if it has none
}

// AppendUpdate appends u in the wire form of the boards' topics (JSON, version 2), which has the
// raw score and delta, and a set for a best, and returns the longer slice. [DecodeUpdate] reads them
// back as those of a board whose scores are shown as they are, and all else of a valid u unchanged.
func AppendUpdate(dst []byte, u *Update) []byte {
	told := *u
	told.plain()
	return told.append(dst, 2, told.Score, told.Form.Raw(told.Delta), false)
}

// plain makes a set, or delete, of what older sidecars don't know, and for which the score is all that counts.
func (u *Update) plain() {
	seen, hidden := u.Seen(), u.Hiding.Hidden
	u.Hiding = Hiding{}
	switch {
	case u.Op != OpBest && !u.Op.Own() && !hidden:
	case seen:
		u.Op, u.Delta = OpSet, 0
	default:
		u.Op, u.Delta, u.Score = OpDelete, 0, 0
	}
}

// AppendShownUpdate is [AppendUpdate] for those who have posted the change: score is the one that is shown, and raw
// stands beside it where it is another. Data is there as it is. A hidden member's score is the one that it would come
// back with.
func AppendShownUpdate(dst []byte, u *Update) []byte {
	shown := u.Form.Shown(u.Score)
	without := *u
	without.Data = ""
	dst = without.append(dst, 2, shown, u.Delta, shown != u.Score)
	if u.Hiding.Hidden {
		dst = append(dst[:len(dst)-1], `,"hidden":true}`...)
	}
	if u.Data != "" {
		dst = append(AppendString(append(dst[:len(dst)-1], `,"data":`...), u.Data), '}')
	}
	return dst
}

// append appends u with a score and a delta, and the raw score if it is wanted.
func (u *Update) append(dst []byte, version byte, score, delta float64, raw bool) []byte {
	dst = append(append(append(dst, `{"v":`...), '0'+version), `,"board":`...)
	dst = AppendString(dst, string(u.Board))
	dst = append(dst, `,"member":`...)
	dst = AppendString(dst, u.Member)
	dst = append(dst, `,"op":"`...)
	dst = append(dst, u.Op.String()...)
	dst = append(dst, '"')
	if u.Op.HasDelta() {
		dst = AppendScore(append(dst, `,"delta":`...), delta)
	}
	if u.Scored() {
		dst = AppendScore(append(dst, `,"score":`...), score)
		if raw {
			dst = AppendScore(append(dst, `,"raw":`...), u.Score)
		}
	}
	if u.Seq != 0 {
		dst = u.appendState(dst)
	}
	if u.Data != "" { // in an alphabet without escapes, which is decoded fast
		dst = base64.RawURLEncoding.AppendEncode(append(dst, `,"data64":"`...), []byte(u.Data))
		dst = append(dst, '"')
	}
	dst = AppendString(append(dst, `,"order":`...), u.OrderID)
	dst = strconv.AppendInt(append(dst, `,"at":`...), u.At, 10)
	return append(dst, '}')
}

// appendState appends the board's state after u.
func (u *Update) appendState(dst []byte) []byte {
	dst = strconv.AppendUint(append(dst, `,"run":`...), u.Run, 10)
	dst = strconv.AppendUint(append(dst, `,"seq":`...), u.Seq, 10)
	if u.HasSum {
		dst = append(AppendSum(append(dst, `,"sum":"`...), u.Sum), '"')
	}
	return strconv.AppendInt(append(dst, `,"members":`...), int64(u.Members), 10)
}

// Scored reports whether the member has a score after u, seen or not.
func (u *Update) Scored() bool { return !u.Op.Removes() && !u.Hiding.Bare }

// Seen reports whether the member is on the board after u.
func (u *Update) Seen() bool { return u.Scored() && !u.Hiding.Hidden }

// State returns the board's state after u.
func (u *Update) State() rankcache.State {
	return rankcache.State{Run: u.Run, Seq: u.Seq, Sum: u.Sum, HasSum: u.HasSum}
}

// AppendSum appends a checksum as 12 hex digits.
func AppendSum(dst []byte, sum uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 44; shift >= 0; shift -= 4 {
		dst = append(dst, digits[sum>>shift&0xf])
	}
	return dst
}

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as in encoding/json.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// AppendScore appends a finite f as the shortest JSON number that reads back as the same double; -0 is written 0.
func AppendScore(dst []byte, f float64) []byte {
	if i := int64(f); float64(i) == f && i > -1e15 && i < 1e15 {
		return strconv.AppendInt(dst, i, 10)
	}
	format := byte('f')
	if abs := math.Abs(f); abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}
