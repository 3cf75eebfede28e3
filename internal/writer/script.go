package writer

import (
	_ "embed"
	"strings"
	"text/template"

	"github.com/redis/go-redis/v9"

	"rankcache/rooms"
)

//go:embed apply.lua
var applySource string

// features are what a board's class needs of apply.lua. Each combination is a script of
// its own, so that other boards don't pay for it.
type features struct {
	Ties, Last bool // Last with Ties only
	Guard      bool
	Trim       bool
}

func (r *rules) features() features {
	return features{
		Ties: r.ties == rooms.TiesFirst || r.ties == rooms.TiesLast, Last: r.ties == rooms.TiesLast,
		Guard: r.guard != rooms.Guard{}, Trim: r.trim > 0,
	}
}

// applyScripts are the variants of apply.lua.
var applyScripts = makeScripts()

func makeScripts() map[features]*redis.Script {
	source := template.Must(template.New("apply.lua").Delims("--{{", "}}").Parse(applySource))
	scripts := make(map[features]*redis.Script)
	for i := range 1 << 4 {
		f := features{Ties: i&1 != 0, Last: i&3 == 3, Guard: i&4 != 0, Trim: i&8 != 0}
		var text strings.Builder
		if err := source.Execute(&text, f); err != nil {
			panic(err) // of a file of this package
		}
		scripts[f] = redis.NewScript(text.String())
	}
	return scripts
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
