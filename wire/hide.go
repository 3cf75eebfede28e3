package wire

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"rankcache"
)

// Hiding is whether a member is hidden: on no page and in nobody's rank, its points counting. Zero: it never was. Old
// writers' records have it after a restore whose command was neither.
type Hiding struct {
	Serial uint64 // of the hide or restore that stands: the highest one
	Hidden bool
	Bare   bool // it has no score: none was there to be hidden or restored, or it was deleted
}

// Text returns what [Hidden] has of a member with a raw score, which [ParseHidden] reads; "": never hidden.
func (v Hiding) Text(raw float64) string {
	text := strconv.FormatUint(v.Serial, 10)
	switch {
	case v.Serial == 0:
		return ""
	case v.Hidden && v.Bare:
		return text + " -"
	case v.Hidden:
		return text + " " + strconv.FormatFloat(raw, 'g', -1, 64)
	}
	return text
}

// MaxHidden is the most hidden members of a board, and MaxHidings how many members of it may be, or have been, hidden.
const (
	MaxHidden  = 1000
	MaxHidings = 10_000
)

const maxSerial = 1<<53 - 1 // the highest number below which a script has all whole ones

// NewSerial proposes a serial: later ones are higher, as those of runs.
func NewSerial(now time.Time) uint64 { return uint64(now.UnixMilli())<<10 | rand.Uint64N(1<<10) }

// HideOrder returns the order id hide/<serial>/<member>, with the member's SHA-256 if that would be too long.
func HideOrder(serial uint64, member string) string {
	id := fmt.Sprintf("hide/%d/%s", serial, member)
	if len(id) > MaxOrderIDLen {
		id = fmt.Sprintf("hide/%d/#%x", serial, sha256.Sum256([]byte(member)))
	}
	return id
}

// ParseHide returns operation and serial of a hide or restore; false for any other operation or order id.
func ParseHide(op, orderID, member string) (moves Op, serial uint64, ok bool) {
	switch op {
	case opNames[OpHide]:
		moves = OpHide
	case opNames[OpRestore]:
		moves = OpRestore
	default:
		return 0, 0, false
	}
	text, _, _ := strings.Cut(strings.TrimPrefix(orderID, "hide/"), "/")
	serial, err := strconv.ParseUint(text, 10, 64)
	return moves, serial, err == nil && serial > 0 && serial <= maxSerial && orderID == HideOrder(serial, member)
}

// ParseHidden reads the value of a member's field in the companion [Hidden]: "<serial> <raw score>", "<serial> -" of a
// hidden one without a score, or "<serial>" of one that was restored. It reports false for anything else.
func ParseHidden(value string) (v Hiding, raw float64, ok bool) {
	serial, rest, hidden := strings.Cut(value, " ")
	n, err := strconv.ParseUint(serial, 10, 64)
	if v = (Hiding{Serial: n, Hidden: hidden, Bare: rest == "-"}); err == nil && hidden && !v.Bare {
		raw, err = strconv.ParseFloat(rest, 64)
		err = cmp.Or(err, rankcache.CheckScore(raw))
	}
	return v, raw, err == nil
}

// A hiding in an order's record: six zeros, a byte beyond any member's length, unlike a trim, and the serial.
const (
	hidingLen  = 6 + 1 + 7
	hidingByte = 200
	hidingBare = 1 << 0
	hidingHide = 1 << 1
)

// CutHiding returns the hiding behind the fixed part of an order's record, and what follows. Without one: zero.
func CutHiding(rest string) (v Hiding, after string) {
	if len(rest) < hidingLen || rest[6] < hidingByte {
		return Hiding{}, rest
	}
	is := rest[6] - hidingByte
	for i := 7; i < hidingLen; i++ {
		v.Serial = v.Serial<<8 | uint64(rest[i])
	}
	v.Bare, v.Hidden = is&hidingBare != 0, is&hidingHide != 0
	return v, rest[hidingLen:]
}

// AppendHiding appends what [CutHiding] reads.
func AppendHiding(dst []byte, v Hiding) []byte {
	is := byte(hidingByte)
	if v.Bare {
		is |= hidingBare
	}
	if v.Hidden {
		is |= hidingHide
	}
	return appendInt(append(append(dst, 0, 0, 0, 0, 0, 0), is), v.Serial, 7)
}
