package app

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"rankcache/docs"
	"rankcache/internal/cli"
)

// wrongs are faults that a status can show, laid over that of a sound sidecar, and the runbook that each opens.
var wrongs = []struct{ name, runbook, overlay string }{
	{"starting", "RankcacheNotReady", `{state: 'starting', reason: 'waiting for Redis'}`},
	{cli.ServiceRedis, "RankcacheOriginErrors", failing(cli.ServiceRedis)},
	{cli.ServiceKafka, "Kafka does not answer", failing(cli.ServiceKafka)},
	{cli.ServiceProfiles, "RankcacheProfilesDown", failing(cli.ServiceProfiles)},
	{cli.ServiceHotKeys, "RankcacheHotVerdictStale", failing(cli.ServiceHotKeys)},
	{cli.ServiceLedger, "The ledger does not answer a sidecar", failing(cli.ServiceLedger)},
	{"damage", "RankcacheBoardsWait", `{damage: {masters: 1, since: new Date(), wanted: 2, left: 3}}`},
	{"damage unknown", "RankcacheNotReady", `{damage: {masters: 0, since: new Date(), wanted: 0, left: 0, unknown: 'NOPERM'}}`},
	{"lost", "RankcacheBoardsLost", `{boards_by_state: {lost: 2}}`},
	{"begun again", "RankcacheBoardsLost", `{boards_begun_again: 1}`},
	{"given up", "RankcacheBoardGivenUp", `{boards_by_state: {'given-up': 2}}`},
	{"stale", "RankcacheBoardOld", `{boards_by_state: {stale: 2}}`},
	{"old", "RankcacheBoardOld", `{local: {members: 1, bytes: 1, oldest_ms: 99000}}`},
	{"refused", "RankcacheMemoryRefused", `{memory: {refused_boards: 3}}`},
	{"a file", "A file is not in force", `{files: [{setting: '--redis-ca', file: '/x', read_at: new Date(), error: 'no certificate in it'}]}`},
	{"a certificate", "RankcacheCertificateEnds", `{files: [{setting: '--redis-ca', file: '/x', read_at: new Date(), certificate_ends: new Date(Date.now() + 864e5)}]}`},
}

func failing(service string) string {
	return fmt.Sprintf(`{dependencies: {...status.dependencies, %s: {state: 'failing', since: new Date(), last_ok: new Date(), last_error: 'connection refused'}}}`, service)
}

// checkRunbooks opens "What to do" of each fault, and the section of each alert, and copies its commands.
func (p *tab) checkRunbooks(t *testing.T) {
	p.value(`(() => { const real = window.fetch; window.overlay = () => ({}); window.fetch = async (path, options) => {
		const answer = await real(path, options);
		if (!String(path).startsWith('/status?')) return answer;
		const status = await answer.json();
		return new Response(JSON.stringify({...status, ...window.overlay(status)}), {status: answer.status});
	}; Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (s) => { window.copied = s; }}}); return ''; })()`)
	sections := runbookSections(t)
	for _, w := range wrongs {
		p.value(`(() => { window.before = document.querySelector('#troubles button'); window.overlay = (status) => (` + w.overlay + `); return ''; })()`)
		p.await(w.name, `document.querySelectorAll('#troubles button').length === 1 && document.querySelector('#troubles button') !== window.before`)
		if w.name == "a file" {
			p.await("the list of files", rowShows("files-rows", "--redis-ca", "/x", "not in force"))
		}
		p.value(`document.querySelector('#troubles button').click()`)
		p.checkRunbook(t, w.name, w.runbook, sections[w.runbook])
	}
	p.value(`(() => { window.overlay = () => ({}); return ''; })()`)
	p.await("nothing wrong", `document.getElementById('trouble').hidden`)
	for title, text := range sections {
		name, _ := json.Marshal(title)
		p.value(`import('/assets/runbook.js').then((m) => m.open(` + string(name) + `)); ''`)
		p.checkRunbook(t, title, title, text)
	}
}

// runbookSections returns the text of each section by its heading.
func runbookSections(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, part := range strings.Split(docs.Runbooks, "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		all[title] = text
	}
	if len(all) < 40 {
		t.Fatalf("%d sections of runbooks", len(all))
	}
	return all
}

var (
	fenced  = regexp.MustCompile("(?s)```\n(.*?)\n```")
	rawMark = regexp.MustCompile("\\*\\*|`|\\]\\(|^#+ |\\|---")
)

// checkRunbook looks at the open dialog: the section, without marks, its commands line by line, its links to what there is.
func (p *tab) checkRunbook(t *testing.T, what, title, text string) {
	t.Helper()
	p.await("the runbook of "+what, fmt.Sprintf(`document.getElementById('runbook').open && document.getElementById('runbook-title').textContent === %q`, title))
	if shown := p.value(`document.getElementById('runbook-text').innerText`); rawMark.MatchString(shown) || len(shown) < 100 {
		t.Errorf("%s: the text has marks of Markdown, or is none: %s", what, shown)
	}
	if words := p.value(`[...document.querySelectorAll('#runbook-text strong')].map((e) => e.textContent)`); strings.HasPrefix(title, "Rankcache") && !strings.Contains(words, "Symptom.") {
		t.Errorf("%s: what stands out is %s", what, words)
	}
	for i, block := range fenced.FindAllStringSubmatch(text, -1) {
		want, _ := json.Marshal(block[1])
		pre := fmt.Sprintf(`document.querySelectorAll('#runbook-text pre')[%d]`, i)
		marked := p.value(`(() => { getSelection().selectAllChildren(` + pre + `.firstChild); return getSelection().toString().trim() === ` + string(want) + `.trim(); })()`)
		p.value(`(() => { window.copied = ''; ` + pre + `.parentElement.querySelector('button').click(); return ''; })()`)
		if copied := p.value(`window.copied === ` + string(want)); copied != "true" || marked != "true" {
			t.Errorf("%s: commands %d: marked as they are %s, copied %s: %s", what, i+1, marked, copied, p.value(`window.copied`))
		}
		if high := p.value(`Math.round(` + pre + `.firstChild.getBoundingClientRect().height / parseFloat(getComputedStyle(` + pre + `).lineHeight))`); high != fmt.Sprint(strings.Count(block[1], "\n")+1) {
			t.Errorf("%s: commands %d have %s lines on the screen: %s", what, i+1, high, block[1])
		}
	}
	if lost := p.value(`[...document.querySelectorAll('#runbook-text button[data-section]')].filter((b) => !b.dataset.found).map((b) => b.dataset.section)`); lost != "[]" {
		t.Errorf("%s: links to %s lead nowhere", what, lost)
	}
	p.click("#runbook-close")
}
