package adminapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"rankcache/sidecar/encode"
)

// argsOf are the query arguments of a route of the admin port. What is not listed reads its own, as live pages and profiles of
// the process do, or looks at none, as probes do, whose callers may add some.
var argsOf = map[string][]string{
	"GET /status":                          {expect, "limit", "start", "state", "match"},
	"GET /boards/{board}/top":              {"limit"},
	"DELETE /rooms":                        {"uid", "match"},
	"DELETE /rooms/bypass":                 {"board", "all"},
	"GET /status/{board}":                  nil,
	"GET /openapi.yaml":                    nil,
	"POST /boards/{board}/compare":         nil,
	"GET /boards/{board}/members/{member}": nil,
	"GET /history":                         nil,
	"GET /hotkeys":                         nil,
	"GET /events":                          nil,
	"GET /config":                          nil,
	"GET /runbooks.md":                     nil,
	"GET /rooms":                           nil,
	"POST /rooms":                          nil,
	"POST /rooms/bypass":                   nil,
	"GET /classes":                         nil,
	"PUT /classes":                         nil,
	"DELETE /classes":                      nil,
	"DELETE /profiles/{member}":            nil,
}

// expect may be given more than once, and tells what is wrong with it itself.
const expect = "expect"

// maxNamed is how much of an unknown argument a problem repeats, in bytes.
const maxNamed = 40

// checkArgs returns the problem of a query that has what the route does not take: a check in a script must not pass, and no
// other room be taken back, because an argument was not understood.
func checkArgs(pattern, query string) *encode.Problem {
	names, listed := argsOf[pattern]
	if !listed {
		return nil
	}
	seen := make(map[string]bool)
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		_, err := url.ParseQuery(pair)
		switch {
		case pair == "":
		case !slices.Contains(names, name):
			return encode.BadArgument(name[:min(len(name), maxNamed)], "is no argument here: want "+wanted(names))
		case err != nil:
			return encode.BadArgument(name, fmt.Sprintf("%.80v: percent-encode it", err))
		case seen[name] && name != expect:
			return encode.BadArgument(name, "is given twice")
		case value == "" && name != expect:
			return encode.BadArgument(name, "is empty")
		}
		seen[name] = true
	}
	return nil
}

func wanted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " ")
}
