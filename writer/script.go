package writer

import (
	_ "embed"
	"fmt"
	"strings"

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
	Trim       bool
	Best       bool
	Durable    bool
	Prime      bool // of a rolling board
}

func (r *rules) features() features {
	return features{
		Ties: r.ties == rooms.TiesFirst || r.ties == rooms.TiesLast, Last: r.ties == rooms.TiesLast,
		Guard: r.guard != rooms.Guard{}, Trim: r.trim > 0, Best: r.best, Durable: r.durable(), Prime: r.prime,
	}
}

// applyScripts are the variants of apply.lua.
var applyScripts = makeScripts()

func makeScripts() map[features]*redis.Script {
	scripts := make(map[features]*redis.Script)
	for i := range 1 << 7 {
		f := features{Ties: i&1 != 0, Last: i&3 == 3, Guard: i&4 != 0, Trim: i&8 != 0, Durable: i&16 != 0, Best: i&32 != 0, Prime: i&64 != 0}
		scripts[f] = redis.NewScript(wire.Script(f.choose(applySource)))
	}
	return scripts
}

// choose returns the source without the sections that are for other features: those between
// the lines "--if NAME", "--else" and "--end". text/template would have the linker keep every
// exported method of the program, 15 MB.
func (f features) choose(source string) string {
	has := map[string]bool{"Ties": f.Ties, "Last": f.Last, "Guard": f.Guard, "Trim": f.Trim, "Best": f.Best, "Durable": f.Durable, "Prime": f.Prime, "Origin": f.Durable && !f.Trim}
	var chosen strings.Builder
	in := []bool{true} // of the sections around a line, the innermost last
	for line := range strings.Lines(source) {
		last := len(in) - 1
		name, begins := strings.CutPrefix(strings.TrimSpace(line), "--if ")
		switch known, ok := has[name]; {
		case begins && ok:
			in = append(in, in[last] && known)
		case begins:
			panic(fmt.Sprintf("apply.lua: %s", line)) // a file of this package
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
	return []any{changes, per, members, refuse}
}
