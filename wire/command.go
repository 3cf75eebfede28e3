package wire

import "bytes"

// Command is one requested score change as its JSON has it, with nothing checked yet (docs/WIRE.md).
type Command struct {
	Board  string            `json:"board,omitempty"`
	Class  string            `json:"class,omitempty"` // with Dims in place of Board
	Dims   map[string]string `json:"dims,omitempty"`
	By     map[string]string `json:"by,omitempty"` // groups of the member, for feeds
	Room   string            `json:"room,omitempty"`
	Member string            `json:"member"`
	Op     string            `json:"op"`
	Delta  *float64          `json:"delta,omitempty"` // of an incr
	Score  *float64          `json:"score,omitempty"` // of a set or best
	Order  string            `json:"order"`
	At     int64             `json:"at,omitempty"` // Unix milliseconds; 0: now
	Reason string            `json:"reason,omitempty"`
	Prime  bool              `json:"prime,omitempty"`
	Data   *string           `json:"data,omitempty"`
}

var marker = []byte(`{"v":1,"marker":"end"}`) // not a command: it has no member

// Marker returns the record of the command topic that tells the controller how far the
// writers have come: once they have committed it, every command before it is applied.
// Writers apply nothing for it and refuse nothing. The slice is the caller's.
func Marker() []byte { return bytes.Clone(marker) }

// IsMarker reports whether a record of the command topic is a [Marker].
func IsMarker(record []byte) bool { return bytes.Equal(record, marker) }
