package writer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"

	"rankcache/internal/kafka"
	"rankcache/wire"
)

// fieldLen is the length of an order id's field in its hash.
const fieldLen = 10

func orderField(orderID string) string { return wire.OrderField(orderID) }

// Layout of the record of an order, as apply.lua packs it. The mark tells a command with the same order id and another
// op, member or number; a repeat has the same ones, so the record holds only the rest of the update. The trims that a
// change has caused follow, each with the next seq and one member less.
//
//	mark                            7 bytes: op, and wire.Hash of member, number, groups and data
//	struct.pack('>d', score)        8, 0 after a delete
//	struct.pack('>I7I6I6I4I6')     29: run, seq, sum, members, at
//	struct.pack('>I2c0')           2 and the data's length, where members may have data: the member's after the change
//	struct.pack('>I6BI7')          14, of a hidden member and of a hide or restore: wire.CutHiding
//	struct.pack('>I6Bc0')          7 and the member's length, of each trim: sum, member
//	origin                          4, of durable boards: the record of the command topic that was applied, or the post
const (
	markLen   = 7
	recordLen = markLen + 8 + 7 + 6 + 6 + 4 + 6
	originLen = 4
)

// noOrigin is that of a command whose record is not known.
const noOrigin = "\x00\x00\x00\x00"

// originOf returns the origin of a change by a record: a digest of the name of its post, which all copies have that
// Kafka may have got, or else of where it is.
func originOf(m *kafka.Message) string {
	if name := postOf(m); name != "" {
		return originOfPost(name)
	}
	return originOfPost(fmt.Sprint(m.TopicPartition.Partition, " ", m.TopicPartition.Offset))
}

func originOfPost(name string) string {
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(name))
	return string(digest.Sum(nil))
}

// mark returns the fields of c that a repeat must have in common with it.
func mark(c *Command) string {
	return wire.OrderMark(c.Op, c.Member, c.raw(), c.groups()+c.given())
}

// packed returns c as apply.lua unpacks it: '>I8dBc10c7', and its origin on a durable board. at is the time that counts
// for it, and hash the index in KEYS, from 1, of its order id's hash in set 0.
func packed(c *Command, at int64, hash int, origin string) string {
	data := binary.BigEndian.AppendUint64(make([]byte, 0, 2*8+1+fieldLen+markLen+originLen), uint64(at))
	data = binary.BigEndian.AppendUint64(data, math.Float64bits(c.raw()))
	data = append(data, byte(hash))
	return string(append(append(append(data, orderField(c.OrderID)...), mark(c)...), origin...))
}

// readRecord returns the update of c that an order's record tells, and those of the members that it had trimmed.
func readRecord(c *Command, record string) (u wire.Update, trims []wire.Update, err error) {
	if len(record) < recordLen || record[:markLen] != mark(c) {
		return u, nil, badReply(record)
	}
	f := record[markLen:]
	u = wire.Update{Board: c.Board, Member: c.Member, By: c.groups(), Given: c.given(), Op: c.Op, Form: c.Form, OrderID: c.OrderID, HasSum: true,
		Score: math.Float64frombits(bigEndian(f[:8])), Run: bigEndian(f[8:15]), Seq: bigEndian(f[15:21]),
		Sum: bigEndian(f[21:27]), Members: int(bigEndian(f[27:31])), At: int64(bigEndian(f[31:37]))}
	if c.Op.HasDelta() {
		u.Delta = c.Number
	}
	rest := record[recordLen:]
	if data, after, ok := readData(rest); c.HasData && ok {
		if trims, ok = readTrims(u, after); ok {
			u.Data = data
			return u, trims, nil
		} // else it is of a time when members had none
	}
	u.Hiding, rest = wire.CutHiding(rest)
	trims, ok := readTrims(u, rest)
	if !ok {
		err = badReply(record)
	}
	return u, trims, err
}

// readData returns the data that a record has, and what is behind it.
func readData(text string) (data, rest string, ok bool) {
	const head = 2
	if len(text) < head || len(text) < head+int(bigEndian(text[:head])) {
		return "", "", false
	}
	end := head + int(bigEndian(text[:head]))
	return text[head:end], text[end:], true
}

// readTrims returns the updates of the members that were trimmed after u.
func readTrims(u wire.Update, data string) (trims []wire.Update, ok bool) {
	u.Op, u.Delta, u.Score, u.By, u.Data, u.Given = wire.OpTrim, 0, 0, "", "", ""
	for len(data) > 0 && len(data) != originLen {
		const head = 6 + 1 // sum, length of the member
		if len(data) < head || len(data) < head+int(data[6]) {
			return nil, false
		}
		end := head + int(data[6])
		u.Sum, u.Member, data = bigEndian(data[:6]), data[head:end], data[end:]
		u.Seq++
		u.Members--
		trims = append(trims, u)
	}
	return trims, true
}

func bigEndian(data string) (n uint64) {
	for i := range len(data) {
		n = n<<8 | uint64(data[i])
	}
	return n
}

// need is the preparation that a command waits for before it can be applied.
type need uint8

const (
	needNothing  need = iota
	needPrepare       // of its board
	needAdoption      // of its board
	needBuckets       // the script was given another number than the board has; noted
	needHidden        // the script is that of a board that hides no members; noted
	needEras          // the server has another history than the script was made for
)

// Outcome is the result of one command: an update, which a repeat of the order id gets unchanged, or a refusal.
type Outcome struct {
	Update    wire.Update
	Trims     []wire.Update // of the members that the change had trimmed
	Duplicate bool          // the order id was applied before
	Refusal   *Refusal
	Beyond    string // the limit of a guard that is exceeded: changes, members
}

// beyond are the limits of a guard by the sign in apply.lua's reply.
var beyond = map[string]string{"C": "changes", "M": "members", "G": "gain"}

// errScoreRange refuses what a double would round, or has no room beside for a tie-break.
var errScoreRange = fmt.Errorf("the score would be beyond %d, or beyond %d where ties are ranked by first or last; nothing was changed", int64(maxScore), int64(wire.MaxTieScore))

// maxScore is the highest score, and its negative the lowest: a double has all whole
// numbers up to it, so that none is rounded.
const maxScore = 1<<53 - 1

// refusals are those that the scripts give.
var refusals = map[string]*Refusal{
	"score_range":    {"score_range", errScoreRange},
	"C":              {"guard", errors.New("the member was changed more often than the guard of the board's class allows; nothing was changed")},
	"G":              {"guard", errors.New("the member would gain more than the guard of the board's class allows; nothing was changed")},
	"S":              {"guard", errors.New("it was refused when it was read before, and may not be accepted when it is read again")},
	"M":              {"guard", errors.New("the board has as many members as the guard of its class allows; nothing was changed")},
	"order_conflict": {"order_conflict", errors.New("the order id was used for another op, member, number, group or data: use a new one for each change")},
	"too_old":        {"too_old", errors.New("at is so long ago that the order id may be forgotten; it is not known whether the command was applied: read the score before you repeat it with a new order id")},
	"primed":         {"prime", errors.New("the board has all of its primes, or was begun after its sources and gets none")},
	"hidden_full":    {"hidden_full", fmt.Errorf("the board hides %d members, or %d have been hidden; nothing was changed", wire.MaxHidden, wire.MaxHidings)},
	"ended":          {"ended", errors.New("the board's period has ended and its result stands; nothing was changed")},
	"early":          {"early", errors.New("at is more than a minute ahead of the clock of the writer, or of Kafka: check that of the sender")},
}

// errMeta refuses commands of a board whose meta another version has written.
var errMeta = &Refusal{"type", errors.New("the board's meta can't be read: check that nothing else uses the key, and that all writers are of one version")}

// outcome reads the reply of apply.lua to c.
func outcome(c *Command, reply string) (o Outcome, then need, err error) {
	if reply == "" {
		return o, 0, badReply(reply)
	}
	switch rest := reply[1:]; reply[0] {
	case '+', '=', '<', 'C', 'M', 'G':
		o.Update, o.Trims, err = readRecord(c, rest)
		o.Duplicate, o.Beyond = reply[0] == '=' || reply[0] == '<', beyond[reply[:1]]
	case '!':
		if refusals[rest] == nil {
			return o, 0, badReply(reply)
		}
		o.Refusal, o.Beyond = refusals[rest], beyond[rest]
	case 'p':
		then = needPrepare
	case 'w':
		then = needAdoption
	case 'n':
		then = needBuckets
	case 'h':
		then = needHidden
	case 's':
		then = needEras
	case 'm':
		o.Refusal = errMeta
	default:
		err = badReply(reply)
	}
	return o, then, err
}

func badReply(reply string) error {
	return &Refusal{"type", fmt.Errorf("%.80q is no record of an order: check that nothing else uses the key names", reply)}
}
