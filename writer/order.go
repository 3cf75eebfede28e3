package writer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"sync"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/wire"
)

// fieldLen is the length of an order id's field in its hash.
const fieldLen = 10

func orderField(orderID string) string { return wire.OrderField(orderID) }

// Lengths of a mark, and of the origin that the record of a durable board's order ends with (wire/order.go).
const (
	markLen   = 7
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
	u = wire.Update{Board: c.Board, Member: c.Member, By: c.groups(), Given: c.given(), Form: c.Form, OrderID: c.OrderID}
	if c.Op.HasDelta() {
		u.Delta = c.Number
	}
	if !strings.HasPrefix(record, mark(c)) {
		return u, nil, badReply(record)
	}
	bare := u
	trims, ok := u.ReadOrder(record, c.HasData)
	if !ok && c.HasData { // it is of a time when members had none
		u = bare
		trims, ok = u.ReadOrder(record, false)
	}
	if !ok {
		err = badReply(record)
	}
	return u, trims, err
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
