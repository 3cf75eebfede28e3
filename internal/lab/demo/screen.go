package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"rankcache/internal/lab/compare"
)

// drawTop writes the live top 10. On a terminal it takes the place of the
// previous one.
func drawTop(to io.Writer, page *compare.Page, again bool) {
	var b strings.Builder
	if again {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", 12)
	}
	fmt.Fprintf(&b, "%s  %s  source %s  seq %d  %d members  age %s ms\n\n",
		time.Now().Format(time.TimeOnly), page.Board, page.Source, page.Seq, page.Total, page.Age)
	for i := range 10 {
		if i >= len(page.Entries) {
			b.WriteString("\n")
			continue
		}
		e := page.Entries[i]
		fmt.Fprintf(&b, "%4d  %-20s %12.0f\n", e.Rank, nick(e.Member, e.Profile), e.Score)
	}
	io.WriteString(to, b.String())
}

// nick returns the profile's nick, or the member's id without one.
func nick(member string, profile json.RawMessage) string {
	var p struct{ Nick string }
	if json.Unmarshal(profile, &p) == nil && p.Nick != "" {
		return p.Nick
	}
	return member
}
