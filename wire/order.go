package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// orderFieldLen is the length of an order id's field in its hash. With it a field and its
// header take 16 bytes of Redis's memory, however long the id is.
const orderFieldLen = 10

// OrderField returns the field of an order id in its hash: the beginning of its SHA-256.
func OrderField(orderID string) string {
	sum := sha256.Sum256([]byte(orderID))
	return string(sum[:orderFieldLen])
}

// OrderMark returns the fields of a command that a repeat of its order id must have in
// common with it: op, and a hash of member, number and, if it has any, groups, and data behind a 0.
func OrderMark(op Op, member string, number float64, groups string) string {
	if groups != "" {
		member += "\x00" + groups // no member has that byte
	}
	m := binary.BigEndian.AppendUint64(nil, uint64(op)<<48|Hash(member, number))
	return string(m[1:])
}

// AppendOrder appends the record of the order id of a change, as apply.lua packs it; number is what the command added
// or set, or its serial, and data tells whether members of the board may have data. What the change trimmed follows by
// [AppendTrim].
func AppendOrder(dst []byte, u *Update, number float64, data bool) []byte {
	dst = append(dst, OrderMark(u.Op, u.Member, number, u.By+u.Given)...)
	score := u.Score
	if !u.Scored() {
		score = 0
	}
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(score))
	dst = appendInt(dst, u.Run, 7)
	dst = appendInt(dst, u.Seq, 6)
	dst = appendInt(dst, u.Sum, 6)
	dst = appendInt(dst, uint64(u.Members), 4)
	dst = appendInt(dst, uint64(u.At), 6)
	if data {
		dst = append(appendInt(dst, uint64(len(u.Data)), 2), u.Data...)
	}
	if u.Hiding.Serial != 0 {
		dst = AppendHiding(dst, u.Hiding)
	}
	return dst
}

// AppendTrim appends to a record that its change drove a member out; u is the trim's update.
func AppendTrim(dst []byte, u *Update) []byte {
	dst = append(appendInt(dst, u.Sum, 6), byte(len(u.Member)))
	return append(dst, u.Member...)
}

// appendInt appends the last n bytes of v, the highest first.
func appendInt(dst []byte, v uint64, n int) []byte {
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}
