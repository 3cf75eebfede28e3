package writer

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"rankcache/rooms"
	"rankcache/wire"
)

//go:embed apply.lua
var applySource string

// features are what a board's class needs of apply.lua. Each combination is a script of
// its own, so that other boards don't pay for it.
type features struct {
	Ties, Last bool // Last with Ties only
	Guard      bool
	Gain       bool // with Guard only
	Trim       bool
	Best       bool
	By         bool // the mark is not the share of the command's number
	Durable    bool
	Data       bool
	Prime      bool // of a rolling board
	Hidden     bool // of one that hides members; not with Trim
	Forget     bool // of a call with a command to forget a member
	Log        bool // of a board whose changes are logged in Redis
}

// sections are those of apply.lua.
var sections = map[string]func(features) bool{
	"Ties":    func(f features) bool { return f.Ties },
	"Last":    func(f features) bool { return f.Last },
	"Guard":   func(f features) bool { return f.Guard },
	"Gain":    func(f features) bool { return f.Gain },
	"Trim":    func(f features) bool { return f.Trim },
	"Best":    func(f features) bool { return f.Best },
	"By":      func(f features) bool { return f.By },
	"Data":    func(f features) bool { return f.Data },
	"Durable": func(f features) bool { return f.Durable },
	"Prime":   func(f features) bool { return f.Prime },
	"Hidden":  func(f features) bool { return f.Hidden },
	"Forget":  func(f features) bool { return f.Forget },
	"Log":     func(f features) bool { return f.Log },
	"Plain":   func(f features) bool { return !f.Hidden },
	"Origin":  func(f features) bool { return f.Durable && !f.Trim },
}

// has reports whether a section of apply.lua is needed. It panics for one that no script has.
func (f features) has(section string) bool {
	if needed := sections[section]; needed != nil {
		return needed(f)
	}
	panic(fmt.Sprintf("apply.lua: --if %s", section)) // a file of this package
}

// scripts are the variants of apply.lua, each made when a board first needs it. A server that does not know one is sent
// it then. It is safe for concurrent use.
type scripts struct{ made sync.Map } // features to *redis.Script

func (s *scripts) of(f features) *redis.Script {
	made, ok := s.made.Load(f)
	if !ok {
		made, _ = s.made.LoadOrStore(f, redis.NewScript(wire.Script(f.choose(applySource))))
	}
	return made.(*redis.Script) //nolint:forcetypeassert // nothing else is stored
}

// choose returns the source without the sections that are for other features: those between the lines "--if NAME",
// "--else" and "--end". text/template would have the linker keep every exported method of the program, 15 MB.
func (f features) choose(source string) string {
	var chosen strings.Builder
	in := []bool{true} // of the sections around a line, the innermost last
	for line := range strings.Lines(source) {
		last := len(in) - 1
		name, begins := strings.CutPrefix(strings.TrimSpace(line), "--if ")
		switch {
		case begins:
			in = append(in, f.has(name) && in[last])
		case strings.TrimSpace(line) == "--else":
			in[last] = in[last-1] && !in[last]
		case strings.TrimSpace(line) == "--end":
			in = in[:last]
		case in[last]:
			chosen.WriteString(line)
		}
	}
	return chosen.String()
}

// mayBeHidden reports whether boards of these features can hide members. One that does, and was given others, is not
// changed: [errHides].
func (f features) mayBeHidden() bool { return !f.Trim && !f.Data }

// noLimit stands for a limit that a guard does not have.
const noLimit = 1 << 53

// guardArgs are the arguments of apply.lua for a guard.
func guardArgs(g rooms.Guard) []any {
	changes, per, members, refuse := noLimit, int64(60_000), noLimit, 0
	if g.Changes > 0 {
		changes, per = g.Changes, g.Per.Milliseconds()
	}
	if g.Members > 0 {
		members = g.Members
	}
	if g.Refuse {
		refuse = 1
	}
	args := []any{changes, per, members, refuse}
	if g.Gain > 0 {
		args = append(args, g.Gain, g.GainPer.Milliseconds())
	}
	return args
}
