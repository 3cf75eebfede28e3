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

// Layout of the record of an order, as apply.lua packs it. The mark tells a command with the same order id and another
// op, member or number; a repeat has the same ones, so the record holds only the rest of the update. The trims that a
// change has caused follow, each with the next seq and one member less.
//
//	mark                            7 bytes: op, and [Hash] of member, number, groups and data
//	struct.pack('>d', score)        8, 0 after a delete
//	struct.pack('>I7I6I6I4I6')     29: run, seq, sum, members, at
//	struct.pack('>I2c0')           2 and the data's length, where members may have data: the member's after the change
//	struct.pack('>I6BI7')          14, of a hidden member and of a hide or restore: [CutHiding]
//	struct.pack('>I6Bc0')          7 and the member's length, of each trim: sum, member
//	origin                          4, of durable boards: the record of the command topic that was applied, or the post
const (
	markLen   = 7
	recordLen = markLen + 8 + 7 + 6 + 6 + 4 + 6
	originLen = 4
)

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

// ReadOrder sets op and state of u from the record of its order id, and returns the updates of the members that it had
// trimmed. data tells whether members of the board might have data when the record was made. It reports false for what
// is no such record, and leaves u undefined then.
func (u *Update) ReadOrder(record string, data bool) (trims []Update, ok bool) {
	if len(record) < recordLen {
		return nil, false
	}
	f, rest := record[markLen:], record[recordLen:]
	u.Op, u.Score, u.HasSum = Op(record[0]), math.Float64frombits(readInt(f[:8])), true
	u.Run, u.Seq, u.Sum = readInt(f[8:15]), readInt(f[15:21]), readInt(f[21:27])
	u.Members, u.At = int(readInt(f[27:31])), int64(readInt(f[31:37]))
	if data {
		if u.Data, rest, ok = cutText(rest); !ok {
			return nil, false
		}
	}
	u.Hiding, rest = CutHiding(rest)
	return u.readTrims(rest)
}

// readTrims returns the updates of the members that were trimmed after u.
func (u *Update) readTrims(rest string) (trims []Update, ok bool) {
	t := *u
	t.Op, t.Delta, t.Score, t.By, t.Data, t.Given, t.Hiding = OpTrim, 0, 0, "", "", "", Hiding{}
	for len(rest) > 0 && len(rest) != originLen {
		const head = 6 + 1 // sum, length of the member
		if len(rest) < head || len(rest) < head+int(rest[6]) || t.Members == 0 {
			return nil, false
		}
		end := head + int(rest[6])
		t.Sum, t.Member, rest = readInt(rest[:6]), rest[head:end], rest[end:]
		t.Seq++
		t.Members--
		trims = append(trims, t)
	}
	return trims, true
}

// cutText returns a text behind its length of two bytes, and what is behind it.
func cutText(from string) (text, rest string, ok bool) {
	const head = 2
	if len(from) < head || len(from) < head+int(readInt(from[:head])) {
		return "", "", false
	}
	end := head + int(readInt(from[:head]))
	return from[head:end], from[end:], true
}

// appendInt appends the last n bytes of v, the highest first.
func appendInt(dst []byte, v uint64, n int) []byte {
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

// readInt reads what [appendInt] appends.
func readInt(data string) (n uint64) {
	for i := range len(data) {
		n = n<<8 | uint64(data[i])
	}
	return n
}
