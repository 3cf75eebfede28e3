package wire

import (
	"errors"
	"fmt"

	"rankcache"
)

// LogKey is the stream of a Redis server that has the changes of its followed boards, where the writer keeps one
// (docs/wire/LOG.md). Each entry is what one call of the writer's script changed on one board.
const LogKey = "rankcache:log"

// LogEntryBytes is about what an entry of one change takes there.
const LogEntryBytes = 112

// Fields of an entry: the board's id, and its changes as [DecodeLog] reads them.
const (
	LogBoard   = "b"
	LogChanges = "c"
)

// Changes begin with the version and flags. apply.lua writes them.
const (
	logVersion = 1
	logData    = 1 << 0  // the records have the members' data
	maxLogLen  = 1 << 20 // ten times what the writer's largest call changes
)

// DecodeLog appends the updates of an entry of the log in the sequence of their seqs, as the board's topic would tell
// them but for order ids and deltas, which nothing needs that has a seq. A change's trims follow it. The strings share
// the memory of changes. The error is a [*BadUpdate]; into is returned as it was then.
func DecodeLog(board rankcache.BoardID, changes string, into []Update) ([]Update, error) {
	if len(changes) > maxLogLen {
		return into, &BadUpdate{"size", fmt.Errorf("%d bytes, want at most %d", len(changes), maxLogLen)}
	}
	if len(changes) < 2 || changes[0] != logVersion || changes[1]&^logData != 0 {
		return into, &BadUpdate{"version", fmt.Errorf("an entry of the log that begins with %.2x, want version %d: check that all writers and sidecars are of one version", changes, logVersion)}
	}
	all, data := into, changes[1]&logData != 0
	for rest := changes[2:]; rest != ""; {
		u := Update{Board: board}
		var record string
		var named, whole bool
		u.Member, rest, named = cutText(rest)
		record, rest, whole = cutText(rest)
		trims, read := u.ReadOrder(record, data)
		if !named || !whole || !read {
			return into, &BadUpdate{"record", fmt.Errorf("change %d of an entry of the log is cut", len(all)-len(into)+1)}
		}
		if err := u.checkLogged(); err != nil {
			return into, err
		}
		u.plain()
		all = append(all, u)
		for i := range trims {
			if err := trims[i].checkNames(); err != nil {
				return into, err
			}
		}
		all = append(all, trims...)
	}
	return all, nil
}

// checkLogged checks what the log tells of a change as a command's op.
func (u *Update) checkLogged() error {
	switch {
	case u.Op < OpIncr || u.Op > OpForget || u.Op == OpTrim:
		return &BadUpdate{"op", fmt.Errorf("%w %d", ErrOp, u.Op)}
	case u.Run == 0 || u.Seq == 0:
		return &BadUpdate{"run", fmt.Errorf("seq %d of run %d: want both", u.Seq, u.Run)}
	case u.Op.Removes() && u.Data != "":
		return &BadUpdate{"data", errors.New("of a member that is not there")}
	}
	if err := rankcache.CheckScore(u.Score); err != nil {
		return &BadUpdate{"score", err}
	}
	if err := rankcache.CheckData(u.Data); err != nil {
		return &BadUpdate{"data", err}
	}
	return u.checkNames()
}
