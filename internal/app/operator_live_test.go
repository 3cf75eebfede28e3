package app

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// topsAsked is how often the page has asked for a top.
const topsAsked = `performance.getEntriesByType('resource').filter((e) => e.name.includes('/top?')).length`

// statusAsked is the same of the board's status, which the page asks for in each round.
const statusAsked = `performance.getEntriesByType('resource').filter((e) => e.name.includes('/status/')).length`

// TestOperatorLive looks at the live top with streams and without.
func TestOperatorLive(t *testing.T) {
	t.Parallel()
	testkit.Chromium(t)
	h := newFixture(t)
	h.give(t, h.star, 3)
	for i, args := range [][]string{{"--drain", "0s"}, {"--drain", "0s", "--rpc", "127.0.0.1:0"}} {
		streams := i > 0
		t.Run(fmt.Sprint("Streams", streams), func(t *testing.T) {
			s := h.serve(t, args...)
			s.WaitReady(time.Minute)
			p := openTab(t, s.URL("admin", "/#board="+string(h.star)))
			p.value(`performance.setResourceTimingBufferSize(100000)`)
			p.await("rows", `document.querySelectorAll('#top-rows tr').length >= 3`)
			if streams {
				p.await("a page by the stream", `import('/assets/stream.js').then((m) => window.live = m.live()) && window.live === true`)
			}
			before := p.value(topsAsked)
			climber := fmt.Sprint("climber", i)
			h.giveTo(t, h.star, climber, float64(50_000*(i+1)))
			p.await("the climber on top", fmt.Sprintf(`document.querySelector('#top-rows tr').textContent.includes(%q)`, climber))
			rounds := p.value(statusAsked)
			p.await("two more rounds", statusAsked+" >= 2 + "+rounds)
			if asked := p.value(topsAsked); (asked == before) != streams {
				t.Errorf("streams %v: tops asked for were %s and are %s", streams, before, asked)
			}
			if messages := p.complaints(); len(messages) > 0 {
				t.Errorf("the console has %q", messages)
			}
			s.Signal(syscall.SIGTERM) // the open stream must not hold the end up
			if code := s.Wait(time.Minute); code != 0 || strings.Contains(s.Log(), "deadline") {
				t.Errorf("exit code %d:\n%s", code, s.Log())
			}
		})
	}
}
