package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"rankcache/internal/testkit"
)

// browser is the Chromium that the package's tests share, each with windows of its own.
var browser struct {
	start sync.Once
	ctx   context.Context
	end   func()
}

// openBrowser starts the Chromium with the first test that needs it.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	path := testkit.Chromium(t)
	browser.start.Do(func() {
		allocator, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU)...)
		browser.ctx, _ = chromedp.NewContext(allocator)
		browser.end = end // waits until the process has gone
		must(t, chromedp.Do(browser.ctx))
	})
	if browser.ctx == nil {
		t.Fatal("the browser did not start: see the first test that wanted it")
	}
	return browser.ctx
}

// endBrowser ends the Chromium if a test has started it.
func endBrowser() error {
	if browser.end != nil {
		browser.end()
	}
	return nil
}

// tab is a page in a window with a profile of its own, which closes with the test.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu      sync.Mutex
	console []string // warnings, errors, refusals by the page's policy
}

// openTab opens a page as wide as a desk's screen.
func openTab(t *testing.T, url string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(openBrowser(t), chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.note(m)
		}
	}()
	p.width(1360)
	p.do(chromedp.Navigate(url))
	return p
}

// run runs a part of a test on the page.
func (p *tab) run(t *testing.T, name string, part func(*testing.T)) {
	whole := p.t
	defer func() { p.t = whole }()
	t.Run(name, func(t *testing.T) {
		p.t = t
		part(t)
	})
}

func (p *tab) note(m chromedp.ConsoleMessage) {
	if m.Type == chromedp.ConsoleDebug || m.Type == chromedp.ConsoleLog || m.Type == chromedp.ConsoleInfo {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.console = append(p.console, m.String()+" "+m.URL)
}

// complaints returns the console's messages since the last call.
func (p *tab) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	messages := p.console
	p.console = nil
	return messages
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("browser: %v\n%s", err, strings.Join(p.complaints(), "\n"))
	}
}

// value returns what a JavaScript expression is now, as JSON.
func (p *tab) value(js string) string {
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[any](js))
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// await waits until a JavaScript expression is true.
func (p *tab) await(what, js string) {
	p.t.Helper()
	testkit.Eventually(p.t, 30*time.Second, func() error {
		if got := p.value(js); got != "true" {
			return fmt.Errorf("%s: %s is %s; the page shows:\n%s", what, js, got, p.value("document.body.innerText"))
		}
		return nil
	})
}

func (p *tab) click(css string) { p.t.Helper(); p.do(chromedp.Click(chromedp.CSS(css))) }

func (p *tab) write(css, text string) {
	p.t.Helper()
	p.do(chromedp.Clear(chromedp.CSS(css)), chromedp.SendKeys(chromedp.CSS(css), text))
}

func (p *tab) width(pixels int64) {
	p.t.Helper()
	metrics := emulation.SetDeviceMetricsOverrideParams{Width: pixels, Height: 900, DeviceScaleFactor: 1, Mobile: pixels < 600}
	if _, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, metrics); err != nil {
		p.t.Fatalf("browser: %v", err)
	}
}

// prefer reports which colours the system of the browser's user likes.
func (p *tab) prefer(scheme string) {
	p.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media); err != nil {
		p.t.Fatalf("browser: %v", err)
	}
}
