package writer

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"rankcache/internal/kafka"
	"rankcache/writer/internal/rewind"
)

const lookEvery = time.Second // how often Redis is asked whether it has lost something, and told how far it is

const askTimeout = 5 * time.Second // bounds what is asked of Redis and Kafka for a rewind

// round is what holds from one reading of the positions to the next. It is immutable.
type round struct {
	number  uint64 // 0 until a class is durable: then commands are read from where the group has committed
	reading bool   // from where seeks tell
	seeks   map[int32]rewind.Seek
	hashes  map[rewind.Master]rewind.Hash // as they were read
	eras    map[rewind.Master]rewind.Era  // for which durable boards are changed
	list    string                        // of the same, as scripts take it
	topicID string                        // of the command topic; "" if it is not known
	topic   uint64                        // its digest, or 0
}

var noRewinds = &round{reading: true} // the round without a durable class

// errOtherEra tells that a master has another era than a round is for.
var errOtherEra = errors.New("a master of Redis has another history")

// errStale tells that a round is over: what was begun in it is dropped, and read again in the next one.
var errStale = errors.New("the positions of Redis are read anew")

// digestOf returns that of a topic's id, 0 if it is not known.
func digestOf(topicID string) uint64 {
	if topicID == "" {
		return 0
	}
	digest := fnv.New64a()
	_, _ = digest.Write([]byte(topicID))
	return digest.Sum64()
}

// listOf returns eras as scripts take them.
func listOf(eras map[rewind.Master]rewind.Era) string {
	var list []string
	for _, master := range slices.Sorted(maps.Keys(eras)) {
		list = append(list, string(eras[master]))
	}
	return strings.Join(list, " ")
}

// place returns where a record is, and when it was appended, as apply.lua takes it; "" without rewinds.
func (of *round) place(m *kafka.Message, polled time.Time) string {
	if of.topic == 0 {
		return ""
	}
	place := binary.BigEndian.AppendUint64(make([]byte, 0, 28), of.topic)
	place = binary.BigEndian.AppendUint32(place, uint32(m.TopicPartition.Partition))
	place = binary.BigEndian.AppendUint64(place, uint64(m.TopicPartition.Offset))
	return string(binary.BigEndian.AppendUint64(place, uint64(arrival(m, polled).UnixMilli())))
}

// confirmedBy reports whether all masters of a round, and no others, have answered with their eras.
func (of *round) confirmedBy(seen map[rewind.Master]rewind.History) bool {
	for master, h := range seen {
		if of.eras[master] != h.Era {
			return false
		}
	}
	return len(seen) == len(of.eras) && len(seen) > 0
}

// wasPublished reports whether what came of a record was published before the round. Then a command of a class that is
// not durable is not applied again: its order id may be forgotten.
func (of *round) wasPublished(m *kafka.Message) bool {
	return int64(m.TopicPartition.Offset) < of.seeks[m.TopicPartition.Partition].Published
}

// mayBeLost reports whether a record was there when the round began: Redis may have lost what came of it.
func (of *round) mayBeLost(m *kafka.Message) bool {
	return int64(m.TopicPartition.Offset) < of.seeks[m.TopicPartition.Partition].Target
}

// Which boards prepare.lua may begin: those that are not there, and those of an earlier era. Of others it answers 'b'.
const (
	beginAny   = ""
	beginThere = "there" // in this era, if it has them
	beginNone  = "none"
)

// begins returns which boards of a class with a ledger may begin without a question.
func (of *round) begins() string {
	if of.sawDamage() {
		return beginNone
	}
	return beginThere
}

// sawDamage reports whether a master was damaged when the round began.
func (of *round) sawDamage() bool {
	for _, h := range of.hashes {
		if h.Damaged {
			return true
		}
	}
	return false
}
