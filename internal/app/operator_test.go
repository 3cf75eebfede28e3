package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/health"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/servers"
	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

const adminToken = "page-t0ken"

// foreignText is what a member or a nick may be called. It must stay text.
const foreignText = `"><img src=x onerror="window.struck=1"><b>`

// TestOperatorPage drives the page in Chromium on the real sidecar.
func TestOperatorPage(t *testing.T) {
	t.Parallel()
	testkit.Chromium(t) // before anything is started for it
	nicks := serveNicks(t, `<script>window.struck=1</script>`+foreignText)
	h := newFixture(t)
	h.roomsWithMarkup(t)
	h.give(t, h.star, 12)
	h.give(t, h.small, 3)
	h.giveTo(t, h.star, foreignText, 1000)
	h.giveTo(t, h.star, "abc\u202edef", 900)
	h.giveTo(t, h.star, " ", 800)
	s := h.serve(t, "--profile-url", nicks, "--admin-token", adminToken, "--hot-source", "none")
	s.WaitReady(time.Minute)
	p := openTab(t, s.URL("admin", "/"))

	p.await("ready", `document.getElementById('state').textContent === 'ready'`)
	p.await("the super-hot board", rowShows("superhot-rows", string(h.star), "open"))
	p.await("the rooms file's rule", rowShows("rooms-rows", string(h.blocked), "blocked"))
	p.await("ten rows of the top", `document.querySelectorAll('#top-rows tr').length === 10`)
	p.await("the source of the top", `document.getElementById('top-source').textContent === 'local memory'`)
	p.await("figures of profiles", `document.getElementById('profiles-rows').textContent !== '–'`)
	if messages := p.complaints(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
	p.await("a lamp of no source of hot keys", lampSays(cli.ServiceHotKeys, "off", "not used"))
	p.await("an event", `document.querySelectorAll('#events li').length > 0`)
	p.await("eight plots", `document.querySelectorAll('#plots li').length === 8`)
	p.await("plots of what was before", `document.querySelector('#plots li[data-plot=age] path').getAttribute('d').length > 3`)
	p.run(t, "Axe", func(t *testing.T) { p.checkAxe(t) })
	p.run(t, "ForeignTextStaysText", func(t *testing.T) { p.checkForeignText(t) })
	p.run(t, "Colours", func(t *testing.T) { p.checkColours(t) })
	p.run(t, "Phone", func(t *testing.T) { p.checkPhone(t) })
	p.run(t, "Accessible", func(t *testing.T) { p.checkNames(t) })
	p.run(t, "Change", func(t *testing.T) { p.checkChanges(t, h) })
	p.run(t, "Bypass", func(t *testing.T) { p.checkBypass(t, h) })
	p.run(t, "Compare", func(t *testing.T) { p.checkCompare(t, h) })
	p.run(t, "Member", func(t *testing.T) { p.checkMember(t, h) })
	p.run(t, "Plots", func(t *testing.T) { p.checkPlots() })
	p.run(t, "Damage", func(t *testing.T) { p.checkDamage(t, h) })
	p.run(t, "Runbooks", func(t *testing.T) { p.checkRunbooks(t) })
	p.run(t, "Drop", func(t *testing.T) { p.checkDrop(t) })
	p.run(t, "Lost", func(t *testing.T) { p.checkLost(t, s) })
}

// rowShows is an expression: a row of a table has these texts.
func rowShows(body string, texts ...string) string {
	list, _ := json.Marshal(texts)
	return fmt.Sprintf(`[...document.querySelectorAll('#%s tr')].some((row) => %s.every((s) => row.textContent.includes(s)))`, body, list)
}

// serveNicks is a profile service with the same nick for every member.
func serveNicks(t *testing.T, nick string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Members []string }
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		profiles := map[string]any{}
		for _, m := range ask.Members {
			profiles[m] = map[string]string{"nick": nick, "avatar": "https://elsewhere.example/a.png"}
		}
		json.NewEncoder(w).Encode(map[string]any{"profiles": profiles})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// roomsWithMarkup adds a room whose uid is markup to the rooms file.
func (h *fixture) roomsWithMarkup(t *testing.T) {
	t.Helper()
	file, err := os.OpenFile(h.rooms, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, "rooms:\n- {uid: %q, mode: hot, boards: []}\n", "<b>88</b>"); err != nil {
		t.Fatal(err)
	}
}

// giveTo posts one gift of a member with any id.
func (h *fixture) giveTo(t *testing.T, board rankcache.BoardID, member string, score float64) {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"order": testkit.Name(t), "board": board, "member": member, "op": "incr", "delta": score})
	resp, err := http.Post(h.writer.URL("scores", "/v1/scores"), "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("gift of %s: %s", member, resp.Status)
	}
}

// checkMember finds members that are on the board and not, and those whose ids can't be seen.
func (p *tab) checkMember(t *testing.T, h *fixture) {
	shows := func(id, text string) string {
		return fmt.Sprintf(`document.getElementById(%q).textContent.startsWith(%q)`, id, text)
	}
	find := func(member string) {
		text, _ := json.Marshal(member)
		p.do(chromedp.Clear(chromedp.CSS("#member-id")))
		p.value(fmt.Sprintf(`document.getElementById('member-id').value = %s`, text))
		p.click("#member-form button")
	}
	p.await("the override as its code", `[...document.querySelectorAll('#top-rows .member')].some((e) => e.textContent === 'abc\\u{202e}def')`)
	p.await("a blank id", `[...document.querySelectorAll('#top-rows .member')].some((e) => e.textContent === '\\u{20}')`)
	find("abc\u202edef")
	p.await("its name", shows("member-name", `abc\u{202e}def`))
	for _, side := range []string{"member-here", "member-redis"} {
		p.await("a member of "+side, shows(side, "rank 2, score 900, at "))
	}
	find("nobody/at all")
	p.await("nobody", shows("member-here", "not on the board, at ")+" && "+shows("member-redis", "not on the board, at "))
	client := h.redis(t)
	must(t, client.ZAdd(t.Context(), string(h.star), redis.Z{Member: " ", Score: 801}).Err())
	testkit.Eventually(t, time.Minute, func() error { // the first answer may be of before, or of a board that is being adopted
		find(" ")
		time.Sleep(200 * time.Millisecond)
		if p.value(shows("member-redis", "rank 3, score 801, at ")) != "true" {
			return errors.New(p.value(`document.getElementById("member-redis").textContent`))
		}
		return nil
	})
}

// checkPlots looks at what the highest value of a plot is.
func (p *tab) checkPlots() {
	p.value(`import('/assets/history.js').then((m) => { window.scales = [m.scale([...Array(100).fill(10), 5000], 5000), m.scale([1, 2, 3, 4], 4), m.scale([], 1), m.scale([0, 0, 0, 7], 7)]; })`)
	p.await("a peak that does not flatten the rest", `JSON.stringify(window.scales) === '[20,4,1,7]'`)
}

func (p *tab) checkForeignText(t *testing.T) {
	text, _ := json.Marshal(foreignText)
	p.await("the member's id as text", fmt.Sprintf(`document.querySelector('#top-rows .member').textContent === %s`, text))
	p.await("the nick as text", `document.querySelector('#top-rows .nick').textContent.startsWith('<script>')`)
	p.await("the room as text", rowShows("rooms-rows", "<b>88</b>"))
	if got := p.value(`document.querySelectorAll('main b, main tbody img, main script, main iframe').length`); got != "0" {
		t.Errorf("%s elements came out of foreign text", got)
	}
	if got := p.value(`window.struck === undefined`); got != "true" {
		t.Error("foreign text was run")
	}
	if got := p.value(`(() => { try { document.body.insertAdjacentHTML('beforeend', '<b>'); return 'made' } catch (e) { return e.name } })()`); got != `"TypeError"` {
		t.Errorf("markup from text: %s, want the page's policy to refuse it", got)
	}
	p.value(`addEventListener('securitypolicyviolation', (e) => { window.refused = e.effectiveDirective; });
		document.body.append(Object.assign(document.createElement('img'), { src: 'https://elsewhere.example/a.png' }))`)
	p.await("no pictures of other hosts", `window.refused === 'img-src'`)
	p.complaints() // the refusals that the test provoked
}

func (p *tab) checkColours(t *testing.T) {
	back := func() string { return p.value(`getComputedStyle(document.body).backgroundColor`) }
	p.prefer("light")
	light := back()
	p.prefer("dark")
	dark := back()
	if light == dark {
		t.Errorf("both %s: the system's choice of colours changes nothing", light)
	}
	p.click("#theme") // auto, light
	if got := back(); got != light {
		t.Errorf("light was chosen, the page is %s", got)
	}
	p.click("#theme")
	p.prefer("light")
	if got := back(); got != dark {
		t.Errorf("dark was chosen, the page is %s", got)
	}
	p.click("#theme")
	if got := back(); got != light {
		t.Errorf("the system was chosen, the page is %s", got)
	}
}

func (p *tab) checkPhone(t *testing.T) {
	p.width(360)
	defer p.width(1360)
	p.await("no sideways scroll", `document.documentElement.scrollWidth <= 360`)
	wide := p.value(`[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > 361 && !e.closest('.spoken, thead')).map((e) => e.tagName + '.' + e.className)`)
	if wide != "[]" {
		t.Errorf("wider than the screen: %s", wide)
	}
}

// checkNames: what can be pressed or filled in has a name, tables have heads,
// and changes of state are spoken.
func (p *tab) checkNames(t *testing.T) {
	for what, js := range map[string]string{
		"buttons without a name": `[...document.querySelectorAll('button')].filter((b) => !(b.textContent.trim() || b.getAttribute('aria-label'))).length`,
		"fields without a label": `[...document.querySelectorAll('input')].filter((i) => i.labels.length === 0).length`,
		"tables without heads":   `[...document.querySelectorAll('table')].filter((t) => !t.querySelector('th[scope=col]') || !t.getAttribute('aria-labelledby')).length`,
		"bars without a label":   `[...document.querySelectorAll('progress')].filter((b) => !b.getAttribute('aria-label')).length`,
		"states not spoken":      `document.getElementById('state').getAttribute('role') === 'status' ? 0 : 1`,
	} {
		if got := p.value(js); got != "0" {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// checkCompare compares the board with Redis.
func (p *tab) checkCompare(t *testing.T, h *fixture) {
	p.value(`(() => { location.hash = 'board=' + encodeURIComponent('` + string(h.star) + `'); return '' })()`)
	p.await("the board", `document.getElementById('top-source').textContent === 'local memory'`)
	p.click("#compare")
	p.await("equal boards", `document.getElementById('compare-words').textContent.startsWith('All 15 members equal')`)
}

// checkAxe runs the accessibility rules of axe-core, in the light and the dark theme, with the dialog closed and open.
func (p *tab) checkAxe(t *testing.T) {
	axe, err := os.ReadFile(testkit.Fetched(t, "node_modules/axe-core/axe.min.js"))
	must(t, err)
	p.value(string(axe) + "; 0")
	// A page that got no figures in time is dimmed, as it may be beside other tests: the colours are judged as they are else.
	p.value(`document.head.append(Object.assign(document.createElement('style'), {textContent: 'main { transition: none !important; opacity: 1 !important; filter: none !important }'})); 0`)
	for _, scheme := range []string{"light", "dark"} {
		p.prefer(scheme)
		for _, dialog := range []string{"close", "showModal"} {
			p.value(`window.found = undefined; document.getElementById('change').` + dialog + `(); document.getElementById('choose').hidden = false;
				axe.run().then((r) => { window.found = r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.target + ' ' + n.failureSummary).join('; ')) },
				(e) => { window.found = [String(e)] }); 0`)
			p.await("axe's findings", `window.found !== undefined`)
			if found := p.value(`window.found`); found != "[]" {
				t.Errorf("%s, dialog %s: axe finds %s", scheme, dialog, found)
			}
		}
	}
	p.value(`document.getElementById('change').close()`)
}

// checkChanges promotes the small board, first with a wrong token, and takes it
// back.
func (p *tab) checkChanges(t *testing.T, h *fixture) {
	small := string(h.small)
	p.click("#new-change")
	p.write("#change-name", small)
	p.click("#choose button[type=submit]")
	p.await("a step to confirm", `!document.getElementById('confirm').hidden && document.getElementById('choose').hidden`)
	p.write("#token", "wrong")
	p.click("#go")
	p.await("the refusal", `document.getElementById('change-problem').textContent.includes('does not take this token')`)
	if got := p.value(rowShows("superhot-rows", small)); got != "false" {
		t.Error("promoted with a wrong token")
	}
	p.complaints() // the browser logs the 401
	p.write("#token", adminToken)
	p.click("#keep")
	p.click("#go")
	p.await("the dialog closed", `!document.getElementById('change').open`)
	p.await("the promoted board", rowShows("superhot-rows", small))
	testkit.Eventually(t, 30*time.Second, func() error { // the writer makes its topic with the first command for it
		h.giveTo(t, h.small, "late", 1)
		if got := p.value(rowShows("superhot-rows", small, "open")); got != "true" {
			return fmt.Errorf("not open yet; the page shows:\n%s", p.value("document.body.innerText"))
		}
		return nil
	})
	p.await("where it was set", rowShows("rooms-rows", small, "run time"))
	if got := p.value(`location.href + document.cookie + JSON.stringify(localStorage)`); strings.Contains(got, adminToken) {
		t.Errorf("the token is in %s", got)
	}
	p.click(`#rooms-rows button[aria-label="Unset ` + small + `"]`)
	p.await("the kept token", `!document.getElementById('token-held').hidden`)
	p.click("#go")
	p.await("the board gone", "!"+rowShows("superhot-rows", small))
	if messages := p.complaints(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
}

// checkBypass bypasses the star by name and ends that, then all boards; the token is kept
// from before.
func (p *tab) checkBypass(t *testing.T, h *fixture) {
	star := string(h.star)
	banner := func(words string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('#bypasses li')].some((li) => li.textContent.includes(%q))`, words)
	}
	p.click("#new-change")
	p.write("#change-name", star)
	p.click("#choose input[value=bypass]")
	p.await("the fields", `!document.getElementById('bypass-row').hidden`)
	p.write("#bypass-by", "<b>alice</b>")
	p.click("#choose button[type=submit]")
	p.click("#go")
	p.await("the banner", banner(star+" bypassed by <b>alice</b> since"))
	p.await("Redis as the source", rowShows("superhot-rows", star, "open", "Redis"))
	p.await("the source of the top", `document.getElementById('top-source').textContent === 'Redis'`)
	p.click("#bypasses button")
	p.click("#go")
	p.await("no banner", `document.querySelectorAll('#bypasses li').length === 0`)
	p.await("the memory as the source", rowShows("superhot-rows", star, "open", "memory"))

	p.click("#new-change")
	p.click("#choose input[value=all]")
	p.await("no name to be asked for", `document.getElementById('name-row').hidden && document.querySelector('#choose input[value=bypass]').checked`)
	p.click("#choose button[type=submit]")
	p.click("#go")
	p.await("the banner of all", banner("All boards bypassed by the operator’s page"))
	p.run(t, "Phone", func(t *testing.T) { p.checkPhone(t) })
	p.click("#bypasses button")
	p.click("#go")
	p.await("no banner", `document.querySelectorAll('#bypasses li').length === 0`)
	if lines := p.complaints(); len(lines) > 0 {
		t.Errorf("the console shows %q", lines)
	}
}

// checkDamage has Redis say that it may lack boards, as a writer and the ledger do.
func (p *tab) checkDamage(t *testing.T, h *fixture) {
	names, client := wire.DefaultNames(), h.redis(t)
	names.Commands = h.common[slices.Index(h.common, "--topic-commands")+1]
	says := func(words string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('#troubles li')].some((li) => li.textContent.includes(%q))`, words)
	}
	tag := masters.Tag(0)
	must(t, client.HSet(t.Context(), names.AppliedKey(tag), wire.PositionsLife, "x", wire.PositionsDamaged, fmt.Sprint(time.Now().Add(-3*time.Minute).UnixMilli(), " 1")).Err())
	p.await("a ledger that has not begun", says("went back, 3 min")+" && "+says("the ledger has not begun to rebuild them. Check that rankcache ledger runs with --rebuild-lost"))
	must(t, client.SAdd(t.Context(), names.WantedKey(tag), "a", "b").Err())
	must(t, client.HSet(t.Context(), names.AnswersKey(tag), wire.AnswersLeft, "1200 00ff").Err())
	p.await("what is left", says("the ledger has 1,200 boards left to rebuild; commands of 2 boards wait for that."))
	p.value(`[...document.querySelectorAll('#troubles button')].find((b) => b.getAttribute('aria-label').includes('went back')).click()`)
	p.await("the runbook", `document.getElementById('runbook-title').textContent === 'RankcacheBoardsWait'`)
	p.click("#runbook-close")
	must(t, client.Del(t.Context(), names.AppliedKey(tag), names.WantedKey(tag), names.AnswersKey(tag)).Err())
	p.await("no banner", "!"+says("went back"))
	if messages := p.complaints(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
}

func (p *tab) checkDrop(t *testing.T) {
	p.write("#drop-member", "m1")
	p.click("#drop button")
	p.await("the question", `document.getElementById('confirm-what').textContent.includes('m1')`)
	p.click("#go")
	p.await("the answer", `document.getElementById('toast').textContent === 'The profile of m1 is dropped.'`)
	if messages := p.complaints(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
}

// checkLost ends the sidecar: the last figures stay and are marked as old.
func (p *tab) checkLost(t *testing.T, s *child) {
	s.Kill()
	p.await("the banner", `!document.getElementById('lost').hidden && document.getElementById('lost-text').textContent.includes('ago')`)
	p.await("greyed figures", `document.body.classList.contains('stale') && document.querySelectorAll('#top-rows tr').length === 10`)
	p.await("the state", `document.getElementById('state').textContent === 'no answer'`)
}

// TestLamps takes Redis away and looks at the page: what is not known any more is not shown
// as good.
func TestLamps(t *testing.T) {
	t.Parallel()
	testkit.Chromium(t)
	o := newOutage(t)
	o.await(cli.ServiceProfiles, health.OK, nothingMore)
	p := openTab(t, o.URL("admin", "/"))
	for _, service := range []string{cli.ServiceRedis, cli.ServiceKafka, cli.ServiceProfiles} {
		p.await("a good lamp", lampSays(service, "ok", "answers"))
	}
	p.await("a lamp of hot keys", lampSays(cli.ServiceHotKeys, "off", "not used"))
	p.await("a board that is level", behindSays("0"))
	must(t, o.redis.Pause())
	p.await("a failing lamp", lampSays(cli.ServiceRedis, "failing", "last answered"))
	p.await("why", `document.querySelector('#lamps [data-service=redis] .lamp-error').textContent.length > 5`)
	p.await("the spoken change", `document.getElementById('lamps-spoken').textContent === 'Failing: Redis'`)
	p.await("an unknown distance", behindSays("–"))
	o.profiles.Store(false)
	p.await("the root cause first", `[...document.querySelectorAll('#troubles li')].map((e) => e.textContent).findIndex((s) => s.startsWith('The profile service')) > [...document.querySelectorAll('#troubles li')].map((e) => e.textContent).findIndex((s) => s.startsWith('Redis')) `)
	o.profiles.Store(true)
	for _, scheme := range []string{"light", "dark"} {
		p.prefer(scheme)
		if got := p.value(lowContrast); got != "[]" {
			t.Errorf("%s: texts of lamps with a contrast below 4.5: %s", scheme, got)
		}
	}
	p.run(t, "Phone", func(t *testing.T) { p.checkPhone(t) })
	must(t, o.redis.Resume())
	p.await("a good lamp again", lampSays(cli.ServiceRedis, "ok", "answers"))
	p.await("silence", `document.getElementById('lamps-spoken').textContent === ''`)
	if messages := p.complaints(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
}

// lampSays is an expression: a service's lamp has this state, and this in its figures.
func lampSays(service, state, figures string) string {
	return fmt.Sprintf(`((lamp) => lamp?.querySelector('.pill').textContent === %q && lamp.querySelector('.lamp-figures').textContent.includes(%q))(document.querySelector('#lamps [data-service=%s]'))`,
		state, figures, service)
}

// behindSays is an expression: the only board is so many updates behind.
func behindSays(text string) string {
	return fmt.Sprintf(`document.querySelector('#superhot-rows td[data-label=Behind]')?.textContent === %q`, text)
}

// lowContrast is the texts of lamps whose contrast with what is behind them is below WCAG's
// 4.5.
const lowContrast = `(() => {
	const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
	const light = (rgb) => rgb.match(/[\d.]+/g).slice(0, 3).map((c) => channel(Number(c))).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const back = (e) => { const c = getComputedStyle(e).backgroundColor; return c === 'rgba(0, 0, 0, 0)' ? back(e.parentElement) : c; };
	return [...document.querySelectorAll('#lamps strong, #lamps .pill, #lamps .lamp-figures, #lamps bdi')].filter((e) => e.textContent !== '').filter((e) => {
		const [a, b] = [light(getComputedStyle(e).color), light(back(e))].sort((x, y) => y - x);
		return (a + 0.05) / (b + 0.05) < 4.5;
	}).map((e) => e.textContent);
})()`

// TestReplayBarMoves lets the broker answer one fetch after the other and looks
// at the bar in between.
func TestReplayBarMoves(t *testing.T) {
	t.Parallel()
	testkit.Chromium(t)
	const updates, batch = 20_000, 100
	broker, err := servers.StartKfake(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	board := rankcache.BoardID(testkit.Name(t))
	redisAddr := testkit.Redis(t)
	fillReplay(t, broker.Addr(), redisAddr, board, updates, batch)
	steps := make(chan struct{})
	letAll := sync.OnceFunc(func() { close(steps) })
	t.Cleanup(letAll)
	broker.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		<-steps // and not SleepControl, which races with itself when one sleep follows another
		return nil, nil, false
	})
	h := &fixture{rooms: t.TempDir() + "/rooms.yaml", blocked: "none"}
	h.nameRooms(t, board)
	h.common = []string{"--redis", "redis://" + redisAddr, "--kafka", broker.Addr(), "--rooms", h.rooms, "--key-rooms", testkit.Name(t)}
	s := h.serve(t, "--kafka.fetch.message.max.bytes=1000", "--kafka.max.partition.fetch.bytes=1000", "--give-up-after", "5m")
	p := openTab(t, s.URL("admin", "/"))

	p.await("starting", `document.getElementById('state').textContent === 'starting'`)
	p.await("a bar", `document.querySelectorAll('#replays progress').length === 1`)
	bar := `(document.querySelector('#replays progress')?.value ?? -1)`
	letThrough := func(what, js string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			select {
			case steps <- struct{}{}:
			case <-time.After(50 * time.Millisecond):
			}
			if got := p.value(js); got != "true" {
				return fmt.Errorf("%s: %s; the page shows:\n%s", what, got, p.value("document.body.innerText"))
			}
			return nil
		})
	}
	letThrough("the bar's first move", bar+` > 0`)
	first := p.value(bar)
	letThrough("the bar's next move", bar+` > `+first+` && `+bar+` < 1`)
	second := p.value(bar)
	letAll()
	p.await("an open board", rowShows("superhot-rows", string(board), "open"))
	p.await("ready", `document.getElementById('state').textContent === 'ready'`)
	p.await("no bar when all is open", `document.getElementById('replay').hidden`)
	t.Logf("the bar stood at %s and %s", first, second)
	if messages := p.complaints(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
}

// fillReplay leaves a log of updates, in small batches, and what it made of Redis.
func fillReplay(t *testing.T, kafka, redisAddr string, board rankcache.BoardID, updates, batch int) {
	t.Helper()
	names := wire.DefaultNames()
	f, err := fill.NewTopic(t.Context(), kafka, names.Topic(board), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	filled := fill.NewBoard(board)
	for i := range updates {
		u := filled.Set(fmt.Sprint("m", i), float64(i))
		u.OrderID = fmt.Sprint(i)
		if err := f.Put(&u); err != nil {
			t.Fatal(err)
		}
		if (i+1)%batch == 0 {
			if err := f.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	client := redis.NewClient(&redis.Options{Addr: redisAddr, Protocol: 2})
	defer client.Close()
	if err := filled.Redis(t.Context(), client, names, time.Hour); err != nil {
		t.Fatal(err)
	}
}
