package resp

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"time"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/wire"
)

// writes knows when this connection last passed on a write that named a key, so that later reads of the key are passed
// on until the copy is known to be newer. Keys share places by their hash: then a read is passed on that need not be.
type writes struct {
	began time.Time
	at    *[places]int64 // nanoseconds since began; nil: nothing was written
	all   int64          // when a script may have written to any key
	// What was written to by commands whose replies, or whose EXEC, have not come.
	open     [places / 64]uint64
	openAll  bool
	openSome bool
	boards   []rankcache.BoardID // that they may have written to
	named    []uint64            // places of members that the script writes, in [named]
}

const places = 1024

var seed = maphash.MakeSeed()

// begun takes note of a command that may write. Any of its arguments may be a key.
func (w *writes) begun(v verb, args [][]byte, boardOf func(key []byte, well bool) (rankcache.BoardID, bool)) {
	for _, a := range args[1:] {
		if board, ok := boardOf(a, len(a) <= maxKey && len(w.boards) < maxWritten); ok {
			w.boards = append(w.boards, rankcache.BoardID(strings.Clone(string(board))))
		}
	}
	if w.openSome = true; v == script {
		w.openAll = true
		return
	}
	for _, a := range args[1:] {
		if len(a) > 0 && len(a) <= maxKey {
			p := place(a)
			w.open[p/64] |= 1 << (p % 64)
		}
	}
}

const maxWritten = 64 // of how many arguments of a connection's commands at once the hot pages are read again

const maxKey = 2 * rankcache.MaxBoardLen // longer than the key of any board

func place(key []byte) uint64 { return maphash.Bytes(seed, key) % places }

// ended takes note that all replies have come, and no transaction is open.
func (w *writes) ended() {
	if !w.openSome {
		return
	}
	if w.at == nil {
		w.at = new([places]int64)
	}
	now := int64(time.Since(w.began))
	for i, set := range w.open {
		for ; set != 0; set &= set - 1 {
			w.at[64*i+bits.TrailingZeros64(set)] = now
		}
	}
	if w.openAll {
		w.all = now
	}
	w.dropped()
}

// dropped forgets the commands without replies: they were not passed on.
func (w *writes) dropped() { w.open, w.openAll, w.openSome = [places / 64]uint64{}, false, false }

// after reports whether a write to the key may be later than a copy that was current at a time.
func (w *writes) after(key []byte, currentAt time.Time) bool {
	if w.at == nil && !w.openSome {
		return false
	}
	p := place(key)
	if w.openAll || w.open[p/64]&(1<<(p%64)) != 0 {
		return true
	}
	if w.at == nil {
		return false
	}
	last := max(w.at[p], w.all)
	return last > 0 && last >= int64(currentAt.Sub(w.began))
}

const (
	refusal    = "-ERR RANKCACHE board is written by the writer\r\n"
	ownRefusal = "-ERR RANKCACHE no board has a key of rankcache's own\r\n"
)

// writeGuard refuses writes to boards read here whole, and sorted sets where rankcache's own keys are.
type writeGuard struct {
	reader  *sidecar.Reader
	names   wire.Names
	learner *learner
	logged  *loggedWrites
}

// refuses returns the error for a command that would write to a board read here whole, whose copies would be wrong, or
// a sorted set under rankcache's own keys; or the boards of which it would change the log. The upstream tells which
// arguments are keys.
func (g *writeGuard) refuses(args [][]byte) (why string, unsure []rankcache.BoardID) {
	sorted := len(args[0]) > 0 && args[0][0]|0x20 == 'z' // lower-case
	own := func(key []byte) bool { return sorted && len(key) <= maxKey && g.names.IsShared(text(key)) }
	if !g.touches(args) && !slices.ContainsFunc(args[1:], own) {
		return "", nil
	}
	reply, err := g.askKeys(args)
	if err != nil {
		return awayReply(err), nil
	}
	keys, _ := decode(reply).([]any)
	for _, k := range keys {
		key, ok := writtenKey(k)
		if b, logged := g.logged.board([]byte(key)); ok && logged {
			unsure = append(unsure, b)
			continue
		}
		switch {
		case ok && g.isOpen([]byte(key)):
			return refusal, nil
		case ok && own([]byte(key)):
			return ownRefusal, nil
		}
	}
	if len(unsure) > 0 && !g.logged.unsure(unsure) {
		return refusal, nil
	}
	return "", unsure
}

// touches reports whether an argument is the key of a board that is read here whole, or whose changes are logged.
func (g *writeGuard) touches(args [][]byte) bool {
	return slices.ContainsFunc(args[1:], func(a []byte) bool {
		_, logged := g.logged.board(a)
		return logged || g.isOpen(a)
	})
}

// isOpen reports whether it is the key of a board that is kept open here, be it bypassed or not.
func (g *writeGuard) isOpen(key []byte) bool {
	if len(key) > maxKey {
		return false
	}
	board, ok := g.names.BoardOfKey(text(key))
	return ok && g.reader.Keeps(board)
}

// askKeys asks which arguments of a command are keys. Long ones are no boards', and don't matter.
func (g *writeGuard) askKeys(args [][]byte) ([]byte, error) {
	command := make([]string, 0, 2+len(args))
	command = append(command, "COMMAND", "GETKEYSANDFLAGS")
	for _, a := range args {
		if len(a) > maxKey {
			a = a[:1]
		}
		command = append(command, string(a))
	}
	reply, err := g.learner.ask(command...)
	if err == nil && reply[0] == '-' { // before Redis 7
		command[1] = "GETKEYS"
		reply, err = g.learner.ask(command...)
	}
	return reply, err
}

// anyKey returns a key of COMMAND GETKEYS or GETKEYSANDFLAGS.
func anyKey(k any) string {
	if list, _ := k.([]any); len(list) > 0 {
		k = list[0]
	}
	key, _ := k.(string)
	return key
}

// writtenKey returns a key of COMMAND GETKEYS or GETKEYSANDFLAGS, if it may be written to.
func writtenKey(k any) (key string, ok bool) {
	switch k := k.(type) {
	case string:
		return k, true
	case []any:
		if len(k) < 2 {
			return "", false
		}
		key, ok = k[0].(string)
		flags, _ := k[1].([]any)
		for _, f := range flags {
			if word, _ := f.(string); strings.EqualFold(word, "RO") {
				return "", false
			}
		}
		return key, ok
	}
	return "", false
}
