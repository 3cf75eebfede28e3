package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"rankcache"
)

// A rolling board is the sum of several periods' boards. What ended ones give a member is one command: its prime.

const PrimeSet = 2 // the set of orders with a rolling board's primes until all are applied: see [Names.OrdersKey]

// Whole is the value of the field ” of these hashes if the board has had all increments that change it as they come.
const Whole = "whole"

// PrimeOrder returns the order id of the prime of a member of a period's board: prime/<tag>/<of>/<member>, with the
// member's SHA-256 in its place if that would be too long. of is what [PrimesOf] returns.
func PrimeOrder(tag, of, member string) string {
	id := "prime/" + tag + "/" + of + "/" + member
	if len(id) > MaxOrderIDLen {
		id = fmt.Sprintf("prime/%s/%s/#%x", tag, of, sha256.Sum256([]byte(member)))
	}
	return id
}

const primesOfLen = 12 // the length of what [PrimesOf] returns

// PrimesOf returns 12 hex digits for the boards that primes are made of, and their checksums: primes of anything else
// have other order ids, so that a board that has some of both never has as many as it should.
func PrimesOf(sums map[rankcache.BoardID]uint64) string {
	digest := sha256.New()
	for _, b := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(digest, "%q %x\n", b, sums[b])
	}
	return hex.EncodeToString(digest.Sum(nil))[:primesOfLen]
}

// IsPrimeOrder reports whether an order id is that of a prime of a member of a period's board.
func IsPrimeOrder(id, tag, member string) bool {
	first := len("prime/") + len(tag) + 1
	return len(id) > first+primesOfLen && id == PrimeOrder(tag, id[first:first+primesOfLen], member)
}

// Prime returns a prime as the topic has it, always in the same bytes; at is in Unix milliseconds.
func Prime(b rankcache.BoardID, tag, of, member string, number float64, at int64) []byte {
	text, _ := json.Marshal(struct { // finite numbers and strings
		Order  string            `json:"order"`
		Board  rankcache.BoardID `json:"board"`
		Member string            `json:"member"`
		Op     string            `json:"op"`
		Delta  float64           `json:"delta"`
		At     int64             `json:"at"`
		Prime  bool              `json:"prime"`
	}{PrimeOrder(tag, of, member), b, member, OpIncr.String(), number, at, true})
	return text
}
