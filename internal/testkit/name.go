package testkit

import (
	"crypto/rand"
	"strings"
	"testing"
)

// maxNameHead leaves room for prefixes: a board may have 200 characters, a topic 249.
const maxNameHead = 60

// Name returns a new name made of the test's and eight random characters. It is legal as a board, a topic, a group and a Redis key.
func Name(t testing.TB) string {
	head := strings.Map(legal, t.Name())
	return head[:min(len(head), maxNameHead)] + "-" + strings.ToLower(rand.Text()[:8])
}

// legal keeps the characters that boards and topics share.
func legal(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
		return r
	}
	return '-'
}
