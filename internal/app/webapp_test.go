package app

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
)

// webApp is a running process of examples/webapp.
type webApp struct {
	cmd *exec.Cmd
	url string // of the board's page
}

func startWebApp(t *testing.T, sidecar string, board rankcache.BoardID) *webApp {
	t.Helper()
	cmd := exec.Command(buildExample(t, "webapp"), "--listen", "127.0.0.1:0", "--sidecar", sidecar, string(board))
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	log := bufio.NewReader(stderr)
	line, err := log.ReadString('\n')
	found := regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(line)
	if err != nil || found == nil {
		t.Fatalf("the web app's log has no address: %q, %v", line, err)
	}
	go io.Copy(io.Discard, log)
	return &webApp{cmd, found[1] + "b/" + string(board)}
}

// holdsOneStream: however many viewers there are, the sidecar has one stream of the app.
func (a *webApp) holdsOneStream(t *testing.T, s *child, streams int) {
	t.Helper()
	for range 20 {
		watchPage(t, a.url+"/live").until(t, "event: page")
	}
	testkit.Eventually(t, 30*time.Second, func() error { // programs that were disconnected come back
		if _, text := s.Get("admin", "/metrics"); !strings.Contains(text, fmt.Sprintf("\nrankcache_live_streams %d\n", streams)) {
			return fmt.Errorf("not %d streams: %s", streams, regexp.MustCompile(`\nrankcache_live_streams.*`).FindString(text))
		}
		return nil
	})
	if resp, err := http.Get(a.url + "x"); err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("another board: %v, %v", resp, err)
	}
}

// movesRows looks at the page in Chromium while scores change, and while the sidecar and the app end.
func (a *webApp) movesRows(t *testing.T, h *fixture, restart func(meanwhile func())) {
	p := openTab(t, a.url)
	rows := func(board string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('#rows tr')].map((row) => ' ' + row.dataset.member + '=' + row.dataset.score).join('') === %q`, board)
	}
	p.await("the board", rows(h.rows(t)))
	p.await("live", `document.getElementById('state').textContent === 'live'`)
	if messages := p.complaints(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
	p.value(`window.row = document.querySelector('tr[data-member=m0]'); window.place = row.rowIndex; window.slides = 0;
		new MutationObserver(() => { window.slides += row.getAnimations().length }).observe(document.getElementById('rows'), { childList: true }); 0`)
	h.giveTo(t, h.star, "m0", 1000)
	p.await("the changed board", rows(h.rows(t)))
	p.await("the same row at the top", `window.place > 1 && window.row.rowIndex === 1`)
	p.await("the row slid", `window.slides > 0`)
	p.value(`window.diffs = 0; window.other = new EventSource(location.pathname + '/live'); other.addEventListener('diff', () => { window.diffs++ });
		other.addEventListener('page', () => { window.joined = true }); 0`)
	p.await("another viewer", `window.joined === true`)
	h.giveTo(t, h.star, "m0", 1)
	p.await("one row changed", rows(h.rows(t)))
	p.await("a diff", `window.diffs > 0`)
	p.checkNames(t)
	p.checkPhone(t)
	p.await("rows at rest", `document.getAnimations().length === 0`) // colours fade
	p.checkRules(t)
	restart(func() {
		p.await("not live", `document.getElementById('state').textContent.startsWith('not live')`)
		h.giveTo(t, h.star, "m1", 5000)
	})
	p.await("the board after a restart", rows(h.rows(t)))
	p.await("live again", `document.getElementById('state').textContent === 'live'`)
	must(t, a.cmd.Process.Signal(syscall.SIGTERM))
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("the app ends with %v", err)
	}
	p.await("not live", `document.getElementById('state').textContent.startsWith('not live')`)
}

// checkRules runs the accessibility rules of axe-core, in the light and the dark theme.
func (p *tab) checkRules(t *testing.T) {
	axe, err := os.ReadFile(testkit.Fetched(t, "node_modules/axe-core/axe.min.js"))
	must(t, err)
	p.value(string(axe) + "; 0")
	for _, scheme := range []string{"light", "dark"} {
		p.prefer(scheme)
		p.value(`window.found = undefined; axe.run().then((r) => { window.found = r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.failureSummary).join('; ')) },
			(e) => { window.found = [String(e)] }); 0`)
		p.await("axe's findings", `window.found !== undefined`)
		if found := p.value(`window.found`); found != "[]" {
			t.Errorf("%s: axe finds %s", scheme, found)
		}
	}
}
