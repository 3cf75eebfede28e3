package resp

import (
	"hash/maphash"
	"math"
	"strings"
	"time"

	"rankcache"
	"rankcache/sidecar"
)

// writes knows when this connection last passed on a write that named a key, so that
// later reads of the key are passed on until the copy is known to be newer. Keys share
// places by their hash: then a read is passed on that need not be.
type writes struct {
	began time.Time
	at    *[1024]int64 // nanoseconds since began; nil: nothing was written
	all   int64        // when a command may have written to any key
	open  bool         // there are unanswered ones
}

// unanswered is the time of a write whose reply has not come.
const unanswered = math.MaxInt64

var seed = maphash.MakeSeed()

// begun takes note of a command that may write. Any of its arguments may be a key.
func (w *writes) begun(v verb, args [][]byte) {
	if w.at == nil {
		w.at = new([1024]int64)
	}
	w.open = true
	if v == script || v == exec {
		w.all = unanswered
		return
	}
	for _, a := range args[1:] {
		if len(a) > 0 && len(a) <= 2*rankcache.MaxBoardLen {
			*w.place(a) = unanswered
		}
	}
}

func (w *writes) place(key []byte) *int64 {
	return &w.at[maphash.Bytes(seed, key)%uint64(len(w.at))]
}

// ended takes note that all replies have come.
func (w *writes) ended() {
	if !w.open {
		return
	}
	w.open = false
	now := int64(time.Since(w.began))
	for i, at := range w.at {
		if at == unanswered {
			w.at[i] = now
		}
	}
	if w.all == unanswered {
		w.all = now
	}
}

// after reports whether a write to the key may be later than a copy that was current at
// a time.
func (w *writes) after(key []byte, currentAt time.Time) bool {
	if w.at == nil {
		return false
	}
	return max(*w.place(key), w.all) >= int64(currentAt.Sub(w.began))
}

const refusal = "-ERR RANKCACHE board is written by the writer\r\n"

// refuses returns the error for a command that would write to a board which is read
// here whole: its copies would be wrong until the audit finds it. The upstream says which
// of the arguments are keys.
func (s *Server) refuses(args [][]byte) string {
	for _, a := range args[1:] {
		if len(a) > 2*rankcache.MaxBoardLen {
			continue
		}
		board, ok := s.cfg.Names.BoardOfKey(text(a))
		if !ok {
			continue
		}
		if c, err := s.reader.Copy(&sidecar.Query{Board: board}); err != nil || c.Source != sidecar.SourceLocal {
			continue
		}
		if reply := s.refusesKey(args, string(a)); reply != "" {
			return reply
		}
	}
	return ""
}

// refusesKey is refuses for one argument that may be a key.
func (s *Server) refusesKey(args [][]byte, key string) string {
	command := make([]string, 0, 2+len(args))
	command = append(command, "COMMAND", "GETKEYSANDFLAGS")
	for _, a := range args {
		command = append(command, string(a))
	}
	reply, err := s.ask(command...)
	if err == nil && reply[0] == '-' { // before Redis 7
		command[1] = "GETKEYS"
		reply, err = s.ask(command...)
	}
	if err != nil {
		return awayReply(err)
	}
	keys, _ := decode(reply).([]any)
	for _, k := range keys {
		if writesKey(k, key) {
			return refusal
		}
	}
	return ""
}

// writesKey reports whether a key of COMMAND GETKEYS or GETKEYSANDFLAGS is the key, and may
// be written to.
func writesKey(k any, key string) bool {
	switch k := k.(type) {
	case string:
		return k == key
	case []any:
		if len(k) < 2 || k[0] != key {
			return false
		}
		flags, _ := k[1].([]any)
		for _, f := range flags {
			if word, _ := f.(string); strings.EqualFold(word, "RO") {
				return false
			}
		}
		return true
	}
	return false
}
