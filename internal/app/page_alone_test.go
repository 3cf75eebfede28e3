package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestPageOfRedisAlone looks at the page of a sidecar without Kafka, token and writer, whose board is read over RESP.
func TestPageOfRedisAlone(t *testing.T) {
	t.Parallel()
	testkit.Chromium(t)
	board := testkit.Name(t)
	h := &fixture{rooms: t.TempDir() + "/rooms.yaml"}
	h.writeRooms(t, fmt.Sprintf("boards:\n- {match: %q, mode: hot}\n", board))
	h.common = []string{"--redis", "redis://" + testkit.Redis(t), "--rooms", h.rooms, "--key-rooms", testkit.Name(t), "--hot-source", "none"}
	client := h.redis(t)
	for i := range 40 {
		must(t, client.ZAdd(t.Context(), wire.DefaultNames().BoardKey(rankcache.BoardID(board)), redis.Z{Member: fmt.Sprint("m", i), Score: float64(i)}).Err())
	}
	s := h.serve(t, "--resp", "127.0.0.1:0")
	s.WaitReady(time.Minute)
	p := openTab(t, s.URL("admin", "/"))
	p.await("no reads yet", `document.getElementById('sum-calls').textContent === 'no reads in the last seconds'`)

	app := redis.NewClient(&redis.Options{Addr: s.Addr("resp"), Protocol: 2})
	defer app.Close()
	read := func() { must(t, app.ZRevRangeWithScores(t.Context(), board, 0, 9).Err()) }
	spared := `/^\d[\d.]* %, [\d,]+ calls\/s$/.test(document.getElementById('sum-spared').textContent) && !document.getElementById('sum-spared').textContent.startsWith('0 %')`
	testkit.Eventually(t, 30*time.Second, func() error {
		for range 3000 {
			read()
		}
		if got := p.value(spared); got != "true" {
			return fmt.Errorf("reads over RESP are not told: %s", p.value(`document.querySelector('.figures').innerText`))
		}
		return nil
	})
	if got := p.value(lampSays(cli.ServiceKafka, "off", "no Kafka") + ` && document.querySelectorAll('#lamps [data-tone=bad], #troubles li').length === 0`); got != "true" {
		t.Errorf("something is told to be wrong: %s", p.value(`document.getElementById('lamps').innerText + document.getElementById('troubles').innerText`))
	}
	p.click("#new-change")
	if got := p.value(`document.getElementById('continue').disabled && !document.getElementById('locked').hidden`); got != "true" {
		t.Error("Continue can be pressed though nothing can be changed")
	}
	p.click("#choose [data-close]")
	p.checkRoom(t)
	if messages := p.complaints(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
}

// checkRoom looks at where things are: the board's rows on the second screen of a phone at the latest, and no column that
// ends far above the other.
func (p *tab) checkRoom(t *testing.T) {
	at := func(css string) string {
		return `(document.querySelector('` + css + `').getBoundingClientRect().top + scrollY)`
	}
	p.width(400)
	if got := p.value(at("#top-rows tr") + ` < 1800`); got != "true" {
		t.Errorf("on a phone the live top begins at %s of %s px", p.value(at("#top-rows tr")), p.value(`document.documentElement.scrollHeight`))
	}
	for _, wide := range []int64{1280, 1920} {
		p.width(wide)
		high := `[...document.querySelectorAll('.columns:not(.last) > .column')].map((c) => [...c.children].filter((e) => !e.hidden).at(-1).getBoundingClientRect().bottom - c.getBoundingClientRect().top)`
		if got := p.value(`((a) => a.length === 2 && a[1] > 0.6 * a[0])(` + high + `)`); got != "true" {
			t.Errorf("at %d px a column is empty: the right and the left one are %s px high", wide, p.value(high))
		}
	}
	p.width(1360)
}
