package wire

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"rankcache"
)

// A rolling board is the sum of the boards of several periods. What those that have ended give a member is one command of
// the controller: its prime.

// PrimeSet is the set of orders that has the primes of a rolling board until all of them are applied: see [Names.OrdersKey].
const PrimeSet = 2

// Whole is the value of the field ” of these hashes if the board has had all increments that change it as they come.
const Whole = "whole"

// PrimeOrder returns the order id of the prime of a member of a period's board: prime/<tag>/<member>, with the member's
// SHA-256 in its place if that would be too long.
func PrimeOrder(tag, member string) string {
	id := "prime/" + tag + "/" + member
	if len(id) > MaxOrderIDLen {
		id = fmt.Sprintf("prime/%s/#%x", tag, sha256.Sum256([]byte(member)))
	}
	return id
}

// Prime returns a prime as the topic of commands has it. The same one has the same bytes whenever it is made; at is in
// Unix milliseconds.
func Prime(b rankcache.BoardID, tag, member string, number float64, at int64) []byte {
	text, _ := json.Marshal(struct { // finite numbers and strings
		Order  string            `json:"order"`
		Board  rankcache.BoardID `json:"board"`
		Member string            `json:"member"`
		Op     string            `json:"op"`
		Delta  float64           `json:"delta"`
		At     int64             `json:"at"`
		Prime  bool              `json:"prime"`
	}{PrimeOrder(tag, member), b, member, OpIncr.String(), number, at, true})
	return text
}
