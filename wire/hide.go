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

// Veil is whether a member of a board is hidden: on no page and in nobody's rank, while its points go on counting. The
// zero value is that of one that never was. Records of writers of before hiding with a ledger have it, too, after a
// restore, where the command was neither a hide nor a restore.
type Veil struct {
	Serial uint64 // of the hide or restore that stands: the highest one
	Hidden bool
	Bare   bool // it has no score: none was there to be hidden or restored, or it was deleted
}

// Text returns what the companion [Hidden] has of a member with a raw score, which [ParseHidden] reads; "" of one that
// never was hidden.
func (v Veil) Text(raw float64) string {
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

// MaxHidden is the most hidden members of a board, and MaxVeils how many members of it may be, or have been, hidden.
const (
	MaxHidden = 1000
	MaxVeils  = 10_000
)

// maxSerial is the highest number below which a script has all whole ones.
const maxSerial = 1<<53 - 1

// NewSerial proposes a serial: later ones are higher, as those of runs.
func NewSerial(now time.Time) uint64 { return uint64(now.UnixMilli())<<10 | rand.Uint64N(1<<10) }

// HideOrder returns the order id of the hide or restore of a member: hide/<serial>/<member>, with the member's SHA-256
// in its place if that would be too long.
func HideOrder(serial uint64, member string) string {
	id := fmt.Sprintf("hide/%d/%s", serial, member)
	if len(id) > MaxOrderIDLen {
		id = fmt.Sprintf("hide/%d/#%x", serial, sha256.Sum256([]byte(member)))
	}
	return id
}

// ParseHide returns the operation and the serial of a command to hide or restore a member. It reports false for any
// other operation, or another order id.
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
func ParseHidden(value string) (v Veil, raw float64, ok bool) {
	serial, rest, hidden := strings.Cut(value, " ")
	n, err := strconv.ParseUint(serial, 10, 64)
	if v = (Veil{Serial: n, Hidden: hidden, Bare: rest == "-"}); err == nil && hidden && !v.Bare {
		raw, err = strconv.ParseFloat(rest, 64)
		err = cmp.Or(err, rankcache.CheckScore(raw))
	}
	return v, raw, err == nil
}

// A veil in the record of an order: six zeros, a byte beyond the length of any member, which tells it from a trim, and
// the serial.
const (
	veilLen  = 6 + 1 + 7
	veilByte = 200
	veilBare = 1 << 0
	veilHide = 1 << 1
)

// CutVeil returns the veil that stands in an order's record behind its fixed part, and what follows. Without one it is zero.
func CutVeil(rest string) (v Veil, after string) {
	if len(rest) < veilLen || rest[6] < veilByte {
		return Veil{}, rest
	}
	is := rest[6] - veilByte
	for i := 7; i < veilLen; i++ {
		v.Serial = v.Serial<<8 | uint64(rest[i])
	}
	v.Bare, v.Hidden = is&veilBare != 0, is&veilHide != 0
	return v, rest[veilLen:]
}

// AppendVeil appends what [CutVeil] reads.
func AppendVeil(dst []byte, v Veil) []byte {
	is := byte(veilByte)
	if v.Bare {
		is |= veilBare
	}
	if v.Hidden {
		is |= veilHide
	}
	return appendInt(append(append(dst, 0, 0, 0, 0, 0, 0), is), v.Serial, 7)
}
