package wire

import (
	"crypto/sha1" // #nosec G505 -- it detects faults, not attackers; Redis's scripts have no other hash
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"rankcache"
)

const SumMask = 1<<48 - 1 // has the bits of a checksum: sums are added modulo 2^48, which a double holds exactly

// Hash returns one member's share of its board's checksum: the first 48 bits of SHA-1 over the score, as a big-endian
// double, and the member. The checksum is the sum of the shares modulo 2^48. A score of -0 counts as 0. apply.lua
// computes the same as redis.sha1hex(struct.pack('>d', score) .. member). A member with data is given as
// [rankcache.JoinData] joins it.
func Hash(member string, score float64) uint64 {
	var buffer [8 + rankcache.MaxMemberLen]byte
	data := binary.BigEndian.AppendUint64(buffer[:0], math.Float64bits(score+0))
	sum := sha1.Sum(append(data, member...)) // #nosec G401 -- see the import
	return binary.BigEndian.Uint64(sum[:8]) >> 16
}

// Life is that of the root package, with its values.
type Life = rankcache.Life

const (
	LifeOpen    = rankcache.LifeOpen
	LifeClosing = rankcache.LifeClosing
	LifeClosed  = rankcache.LifeClosed
	LifeFinal   = rankcache.LifeFinal
)

// Meta is Redis's state of a board beside its sorted set. Only the writer's scripts change it, both together.
type Meta struct {
	Life      Life
	Adopting  bool // set while a writer adds up a board that it did not make; changes wait, and HasSum is false
	Primed    bool // set when a board that sums up several periods has what the earlier ones give it
	HasHidden bool // set once the board has had a hidden member: it has the companion [Hidden] then
	rankcache.State
	Members      uint64
	End, Expires uint64 // when the board's period ends, and Expires when its keys do, in Unix milliseconds; 0: never
	Now          uint64 // the highest time that a writer has passed, in Unix milliseconds
	Turn         uint64 // counts the order lives since 1970: order ids are kept for the current and the previous one
	// OrderLife is how long an order id is known at least, in seconds, and Buckets over how many hashes the order ids
	// of one turn are spread. Both are fixed when the board is born.
	OrderLife uint32
	Buckets   uint16

	// Era names the server's history in which the run began: the start of its master_replid. Empty: not durable.
	Era  string
	Seen Seen // what a durable board with a guard has seen of the topic of commands
}

// OrdersSince returns the least time, in Unix milliseconds, of a command that can't repeat a forgotten one.
func (m *Meta) OrdersSince() int64 {
	span := int64(m.OrderLife)*1000 + 120_000
	return (int64(m.Turn)-1)*span + 60_000 // #nosec G115 -- they count order lives
}

// Seen are the commands of a partition from an offset up to the next one that is to come.
type Seen struct {
	Topic      uint64 // digest of the topic's id
	Partition  uint32
	From, Next uint64
}

const EraLen = 16 // the length of [Meta.Era]: 64 bits of a random number

// A meta value begins with its version: 1, which the scripts spell as struct.pack('>BBI8I8I8I8I8I8I8I8I4I2', ...), or 2
// of durable boards, which have the era behind it, and '>I8I4I8I8'.
const (
	metaLen1 = 2 + 8*8 + 4 + 2
	metaLen2 = metaLen1 + EraLen + 8 + 4 + 8 + 8
)

// Script returns a script's source in which META_UNREADABLE is the condition that its variable meta is bad.
func Script(source string) string {
	return strings.ReplaceAll(source, "META_UNREADABLE",
		fmt.Sprintf("((#meta ~= %d or meta:byte() ~= 1) and (#meta ~= %d or meta:byte() ~= 2))", metaLen1, metaLen2))
}

const (
	lifeMask       = 0x0f
	metaAdopting   = 0x10
	metaUnknownSum = 0x20
	metaPrimed     = 0x40
	metaHasHidden  = 0x80
)

var ErrMeta = errors.New("bad meta of a board") // reports a meta value that this version can't read

// AppendMeta appends m as Redis keeps it and returns the longer slice.
func AppendMeta(dst []byte, m *Meta) []byte {
	flags := byte(m.Life)
	if m.Adopting {
		flags |= metaAdopting
	}
	if !m.HasSum {
		flags |= metaUnknownSum
	}
	if m.Primed {
		flags |= metaPrimed
	}
	if m.HasHidden {
		flags |= metaHasHidden
	}
	version := byte(1)
	if m.Era != "" {
		version = 2
	}
	dst = append(dst, version, flags)
	for _, n := range []uint64{m.Run, m.Seq, m.Sum, m.Members, m.End, m.Expires, m.Now, m.Turn} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	dst = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(dst, m.OrderLife), m.Buckets)
	if version == 1 {
		return dst
	}
	dst = append(dst, m.Era...)
	dst = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, m.Seen.Topic), m.Seen.Partition)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, m.Seen.From), m.Seen.Next)
}

// ParseMeta reads the value of a meta key. The error wraps [ErrMeta].
func ParseMeta(value string) (m Meta, err error) {
	if !(len(value) == metaLen1 && value[0] == 1 || len(value) == metaLen2 && value[0] == 2) {
		return Meta{}, fmt.Errorf("%w: %d bytes that begin with %.4q, want %d of version 1 or %d of version 2: check that nothing else uses the key, and that all writers and sidecars are of one version",
			ErrMeta, len(value), value, metaLen1, metaLen2)
	}
	data := []byte(value)
	flags := data[1]
	m.Life, m.Adopting, m.HasSum, m.Primed = Life(flags&lifeMask), flags&metaAdopting != 0, flags&metaUnknownSum == 0, flags&metaPrimed != 0
	m.HasHidden = flags&metaHasHidden != 0
	for i, n := range []*uint64{&m.Run, &m.Seq, &m.Sum, &m.Members, &m.End, &m.Expires, &m.Now, &m.Turn} {
		*n = binary.BigEndian.Uint64(data[2+8*i:])
	}
	m.OrderLife, m.Buckets = binary.BigEndian.Uint32(data[66:]), binary.BigEndian.Uint16(data[70:])
	if rest := data[metaLen1:]; len(rest) > 0 {
		m.Era, rest = value[metaLen1:][:EraLen], rest[EraLen:]
		m.Seen = Seen{Topic: binary.BigEndian.Uint64(rest), Partition: binary.BigEndian.Uint32(rest[8:]),
			From: binary.BigEndian.Uint64(rest[12:]), Next: binary.BigEndian.Uint64(rest[20:])}
	}
	if m.Life > LifeFinal || m.Sum > SumMask || m.Buckets == 0 {
		return Meta{}, fmt.Errorf("%w: life %d, sum %x, %d buckets", ErrMeta, m.Life, m.Sum, m.Buckets)
	}
	if !m.HasSum {
		m.Sum = 0
	}
	return m, nil
}

// OrderBucket returns in which of n hashes an order id is kept.
func OrderBucket(orderID string, n uint16) int {
	const offset, prime = 2166136261, 16777619 // FNV-1a
	h := uint32(offset)
	for i := range len(orderID) {
		h = (h ^ uint32(orderID[i])) * prime
	}
	return int(h % uint32(n))
}
