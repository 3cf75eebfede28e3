package writer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"sync"

	"rankcache"
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

// result is that of a command in the metrics.
func (o *Outcome) result() string {
	switch {
	case o.Refusal != nil:
		return "refused"
	case o.Duplicate:
		return "duplicate"
	}
	return "applied"
}

// beyond are the limits of a guard by the sign in apply.lua's reply.
var beyond = map[string]string{"C": "changes", "M": "members", "G": "gain"}

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

const maxRemembered = 100_000 // limits the boards that are remembered; they are forgotten beyond that

// remembered is what is known of some boards. It is safe for concurrent use.
type remembered[V any] struct {
	mu sync.Mutex // nothing is called under it
	of map[rankcache.BoardID]V
}

func (r *remembered[V]) get(b rankcache.BoardID) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[b]
}

func (r *remembered[V]) put(b rankcache.BoardID, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= maxRemembered {
		r.of = make(map[rankcache.BoardID]V)
	}
	r.of[b] = v
}

// bucketCounts knows boards born with an unusual number of buckets. It is safe for concurrent use.
type bucketCounts struct {
	usual int
	other remembered[int]
}

func (c *bucketCounts) of(b rankcache.BoardID) int { return cmp.Or(c.other.get(b), c.usual) }

// note remembers the number of a board, as a script tells it.
func (c *bucketCounts) note(b rankcache.BoardID, text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || n > maxOrderBuckets {
		return &Refusal{"type", fmt.Errorf("the board has %.20q buckets of orders, want 1 to %d: check that all writers are of one version", text, maxOrderBuckets)}
	}
	c.other.put(b, int(n))
	return nil
}
