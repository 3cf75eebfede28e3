package rooms

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"rankcache"
	"rankcache/wire"
)

const (
	MaxBypass     = 24 * time.Hour // the longest time that a board is bypassed by one request
	MaxBypassJSON = 4 << 10        // the longest JSON form of a [Bypass], in bytes

	bypassPrefix = "bypass:"
	allBoards    = "*" // which is no board's id
	maxByLen     = 128
)

// Bypass is an operator's order that Redis answers a board, or all, whatever is kept here. It ends. It is immutable.
type Bypass struct {
	Board rankcache.BoardID `json:"board,omitempty"`
	All   bool              `json:"all,omitzero"` // else Board is set
	By    string            `json:"by"`           // name of the operator, as given
	// From and Until are by the clock of the sidecar that was asked.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// ParseBypass parses JSON of a Bypass. An unknown field is an error; a bypass that has ended is not.
func ParseBypass(data []byte) (Bypass, error) {
	var b Bypass
	if len(data) > MaxBypassJSON {
		return b, fmt.Errorf("bypass has %d bytes, want at most %d", len(data), MaxBypassJSON)
	}
	if err := wire.DecodeWithoutNull(data, &b); err != nil {
		return b, fmt.Errorf("bypass: %w", err)
	}
	b.From, b.Until = b.From.UTC(), b.Until.UTC() // one time is one value
	return b, b.check()
}

// ParseBypassRequest parses {"board" or "all","for_s","by"} into the bypass that begins now.
func ParseBypassRequest(data []byte, now time.Time) (Bypass, error) {
	var j struct {
		Board rankcache.BoardID `json:"board"`
		All   bool              `json:"all"`
		For   int               `json:"for_s"`
		By    string            `json:"by"`
	}
	if err := wire.DecodeWithoutNull(data, &j); err != nil {
		return Bypass{}, fmt.Errorf("bypass: %w", err)
	}
	if j.For < 1 || j.For > int(MaxBypass/time.Second) {
		return Bypass{}, fmt.Errorf("bypass: for_s is %d, want 1 to %d seconds", j.For, MaxBypass/time.Second)
	}
	b := Bypass{Board: j.Board, All: j.All, By: j.By, From: now, Until: now.Add(time.Duration(j.For) * time.Second)}
	return b, b.check()
}

func (b *Bypass) check() error {
	switch {
	case b.All == (b.Board != ""):
		return errors.New("bypass: want either a board or all")
	case !b.All && b.Board.Check() != nil:
		return fmt.Errorf("bypass: %w", b.Board.Check())
	case !rankcache.PlainText(b.By, maxByLen):
		return fmt.Errorf("bypass: by: want the operator's name: 1 to %d bytes of UTF-8 without control characters", maxByLen)
	case !b.From.Before(b.Until) || b.Until.Sub(b.From) > MaxBypass:
		return fmt.Errorf("bypass: want it to end after it began, and within %v", MaxBypass)
	}
	if _, err := json.Marshal(b); err != nil { // a year that RFC 3339 can't write
		return fmt.Errorf("bypass: %w", err)
	}
	return nil
}

// Field returns the field in the hash of rooms set at run time: "bypass:<board>", or "bypass:*" for all.
func (b *Bypass) Field() string {
	if b.All {
		return BypassField(allBoards)
	}
	return BypassField(b.Board)
}

// BypassField returns the hash field of a board's bypass.
func BypassField(board rankcache.BoardID) string { return bypassPrefix + string(board) }

// IsBypassField reports whether a field of the hash holds a bypass.
func IsBypassField(field string) bool { return strings.HasPrefix(field, bypassPrefix) }

// String names the bypassed boards.
func (b *Bypass) String() string {
	if b.All {
		return "all boards"
	}
	return string(b.Board)
}

// Bypassing returns the tiers with these bypasses in force.
func (t *Tiers) Bypassing(bypasses []Bypass) *Tiers {
	with := *t
	with.bypassed = nil
	for _, b := range bypasses {
		if with.bypassed == nil {
			with.bypassed = make(map[rankcache.BoardID]Bypass, len(bypasses))
		}
		if b.All {
			b.Board = allBoards
		}
		for _, board := range t.Parts(b.Board) {
			with.bypassed[board] = b
		}
	}
	return &with
}

// Bypassed reports whether Redis answers the board, whatever copy is kept here; its mode stays.
func (t *Tiers) Bypassed(board rankcache.BoardID) bool {
	if t == nil || len(t.bypassed) == 0 {
		return false
	}
	_, is := t.Bypass(board)
	return is
}

// Bypass returns the bypass of the board; if it is bypassed both by name and with all boards, the one that ends last.
func (t *Tiers) Bypass(board rankcache.BoardID) (Bypass, bool) {
	if t == nil {
		return Bypass{}, false
	}
	named, is := t.bypassed[board]
	if all, both := t.bypassed[allBoards]; both && !(is && named.Until.After(all.Until)) {
		named, is = all, true
		named.Board = ""
	}
	return named, is
}
