package class

import (
	"crypto/sha1" // #nosec G505 -- it spreads ids over shards, and keeps no secret
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"rankcache"
)

// A class may be split: each board is kept as several, its shards, whose ids are its own, ".s" and a number from 0. The
// member alone decides which shard has it, so that it never moves.

// The fewest and the most shards of a board.
const (
	MinShards = 2
	MaxShards = 64
)

const shardMark = ".s" // stands between the id of a whole board and the number of a shard

// ShardID returns the id of a shard, counted from 0, of a whole board.
func ShardID(whole rankcache.BoardID, shard int) rankcache.BoardID {
	return whole + shardMark + rankcache.BoardID(strconv.Itoa(shard))
}

// ShardIDs returns the ids of the n shards of a whole board. The slice is the caller's.
func ShardIDs(whole rankcache.BoardID, n int) []rankcache.BoardID {
	ids := make([]rankcache.BoardID, n)
	for shard := range ids {
		ids[shard] = ShardID(whole, shard)
	}
	return ids
}

// ShardOf returns which of n shards has a member, from the first 8 bytes of the SHA-1 of its id.
func ShardOf(member string, n int) int {
	sum := sha1.Sum([]byte(member)) // #nosec G401 -- see the import
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}

// CutShard returns the whole board of a shard's id and the shard's number; ok is false if no shard can have the id.
func CutShard(id rankcache.BoardID) (whole rankcache.BoardID, shard int, ok bool) {
	whole, shard = cutShard(id, MaxShards)
	return whole, shard, shard >= 0
}

// cutShard is the inverse of [ShardID] for n shards. It returns the id itself and -1 if it is none of a shard.
func cutShard(id rankcache.BoardID, n int) (whole rankcache.BoardID, shard int) {
	at := strings.LastIndex(string(id), shardMark)
	if at < 0 {
		return id, -1
	}
	digits := string(id[at+len(shardMark):])
	shard, err := strconv.Atoi(digits)
	if err != nil || shard < 0 || shard >= n || len(digits) > 1 && digits[0] == '0' || digits[0] == '+' {
		return id, -1
	}
	return id[:at], shard
}

// Split returns the class with its boards split into n shards.
func (c *Class) Split(n int) (*Class, error) {
	if n < MinShards || n > MaxShards {
		return nil, fmt.Errorf("shards: %d, want %d to %d", n, MinShards, MaxShards)
	}
	split := *c
	split.shards = n
	if err := ShardID(rankcache.BoardID(c.longest()), MaxShards-1).Check(); err != nil {
		return nil, fmt.Errorf("board %.100q, longest id of a shard: %w", c.board, err)
	}
	return &split, nil
}

// Shards returns into how many shards the class's boards are split, 0 if they are not.
func (c *Class) Shards() int { return c.shards }

// IsWhole reports whether the id, which [Class.Matches], is that of a whole board that is split.
func (c *Class) IsWhole(id rankcache.BoardID) bool {
	if c.shards == 0 {
		return false
	}
	_, shard := cutShard(id, c.shards)
	return shard < 0
}

// cut returns the id of the whole board that one is of, and which shard of that it is, -1 if none.
func (c *Class) cut(id rankcache.BoardID) (whole rankcache.BoardID, shard int) {
	if c.shards == 0 {
		return id, -1
	}
	return cutShard(id, c.shards)
}

// Shard returns a shard of a whole board, counted from 0; b itself if its class is not split.
func (b Board) Shard(shard int) Board {
	if b.Class.shards > 0 {
		b.ID, b.shard = ShardID(b.ID, shard), shard+1
	}
	return b
}

// Whole returns the id of the whole board that b is or is a shard of.
func (b Board) Whole() rankcache.BoardID { return b.Class.WholeOf(b.ID) }

// WholeOf returns the id of the whole board that one of the class's is or is a shard of.
func (c *Class) WholeOf(id rankcache.BoardID) rankcache.BoardID {
	whole, _ := c.cut(id)
	return whole
}

// As returns the board of another class that has the dimensions, the period and the shard of b.
func (b Board) As(c *Class) (Board, error) {
	as, err := c.In(b.Dims, b.Period)
	if err != nil || b.shard == 0 {
		return as, err
	}
	return as.Shard(b.shard - 1), nil
}

// For returns the board that has a member's score, a shard of a split one; false if b is another member's shard.
func (b Board) For(member string) (Board, bool) {
	if b.Class == nil || b.Class.shards == 0 {
		return b, true
	}
	shard := ShardOf(member, b.Class.shards)
	if b.shard > 0 {
		return b, b.shard == shard+1
	}
	return b.Shard(shard), true
}
