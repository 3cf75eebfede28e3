package hotkey

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Limits of a verdict that is read: a sidecar believes what Redis holds, but
// not without bound.
const (
	maxVerdictBytes  = 256 << 10
	maxVerdictBoards = 1000
)

// verdictVersion is the form written here; others are refused.
const verdictVersion = 1

// Verdict is what one poll of a server-side source found, shared with the fleet
// through Redis. It is not changed after it was made.
type Verdict struct {
	At      time.Time    // when the source answered, by the poller's clock
	Source  string       // the source's name
	Poller  string       // who asked
	Boards  []BoardCount // the hot boards, most counted first
	Ignored int          // hot keys that are no board's
}

// wireVerdict is the JSON form.
type wireVerdict struct {
	V       int          `json:"v"`
	At      int64        `json:"at"` // Unix ms
	Source  string       `json:"source"`
	Poller  string       `json:"poller"`
	Boards  []BoardCount `json:"boards"`
	Ignored int          `json:"ignored"`
}

// Encode returns the verdict as it is kept in Redis.
func (v Verdict) Encode() []byte {
	data, _ := json.Marshal(wireVerdict{V: verdictVersion, At: v.At.UnixMilli(), Source: v.Source, Poller: v.Poller,
		Boards: v.Boards, Ignored: v.Ignored}) // strings and numbers always marshal
	return data
}

// DecodeVerdict reads what [Verdict.Encode] wrote. Anything malformed, too long
// or of another version is an error.
func DecodeVerdict(data []byte) (Verdict, error) {
	if len(data) > maxVerdictBytes {
		return Verdict{}, fmt.Errorf("verdict has %d bytes, want at most %d", len(data), maxVerdictBytes)
	}
	var w wireVerdict
	if err := json.Unmarshal(data, &w); err != nil {
		return Verdict{}, fmt.Errorf("verdict: %w", err)
	}
	v := Verdict{At: time.UnixMilli(w.At), Source: w.Source, Poller: w.Poller, Boards: w.Boards, Ignored: w.Ignored}
	return v, w.check()
}

func (w *wireVerdict) check() error {
	switch {
	case w.V != verdictVersion:
		return fmt.Errorf("verdict of version %d, want %d: update the older sidecars or pollers", w.V, verdictVersion)
	case w.At <= 0:
		return errors.New("verdict has no time")
	case len(w.Boards) > maxVerdictBoards:
		return fmt.Errorf("verdict lists %d boards, want at most %d", len(w.Boards), maxVerdictBoards)
	}
	for _, b := range w.Boards {
		if err := b.Board.Check(); err != nil {
			return fmt.Errorf("verdict: %w", err)
		}
	}
	return nil
}

// same reports whether both are the one verdict.
func (v Verdict) same(w Verdict) bool {
	return v.At.Equal(w.At) && v.Poller == w.Poller && v.Source == w.Source
}

// sameBoards reports whether both list the same boards with the same counts: the
// source's statistics have not moved.
func (v Verdict) sameBoards(w Verdict) bool { return slices.Equal(v.Boards, w.Boards) }
