package app

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// pod is a sidecar and the sample app as a kubelet runs them: the app starts when the sidecar is ready, and
// the sidecar ends after the app.
type pod struct {
	sidecar *child
	app     *sample
}

func (h *fixture) startPod(t *testing.T) *pod {
	socket := filepath.Join(t.TempDir(), "data.sock")
	sidecar := h.serve(t, "--socket", socket, "--drain", "10m", "--drain-early")
	sidecar.WaitReady(time.Minute)
	return &pod{sidecar, startSample(t, "--board", string(h.star), "--rankcache", "unix:"+socket)}
}

func (p *pod) end(t *testing.T) {
	p.app.preStop(t)
	p.app.end(t)
	p.sidecar.Signal(syscall.SIGTERM)
	if code := p.sidecar.Wait(time.Minute); code != cli.ExitOK { // of ten
		t.Errorf("the sidecar's exit code is %d", code)
	}
}

// service sends each caller to one of its pods. It learns a second late of pods that come and go, as proxies on
// the nodes do.
type service struct {
	mu    sync.Mutex
	addrs []string
}

const serviceDelay = time.Second

func (s *service) change(do func([]string) []string) {
	time.AfterFunc(serviceDelay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.addrs = do(s.addrs)
	})
}

func (s *service) add(p *pod) {
	s.change(func(addrs []string) []string { return append(slices.Clone(addrs), p.app.addr) })
}

func (s *service) remove(p *pod) {
	s.change(func(addrs []string) []string {
		return slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return a == p.app.addr })
	})
}

func (s *service) any() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addrs[rand.IntN(len(s.addrs))]
}

// TestRolledOutPodsRefuseNoCaller replaces two pods under load as a Deployment does with maxSurge 1: a new pod joins the
// Service when it is ready, then an old one is deleted in the kubelet's order: the app's preStop hook, during which callers
// still come, SIGTERM to the app, and to the sidecar when the app has ended. Callers come with new connections and with kept ones.
func TestRolledOutPodsRefuseNoCaller(t *testing.T) {
	testkit.FullOnly(t, "the rollout of two pods takes half a minute")
	h := newFixture(t)
	h.give(t, h.star, 5)
	old := []*pod{h.startPod(t), h.startPod(t)}
	s := &service{addrs: []string{old[0].app.addr, old[1].app.addr}}
	load := startLoad(t, func(_, _ int) (int, string) { return askOnce(s.any()) })
	var kept []*sync.WaitGroup
	for _, p := range old {
		kept = append(kept, keepCallers(t, p.app.addr, 4))
	}
	load.atLeast(t, 100)
	for _, p := range old {
		s.add(h.startPod(t))
		time.Sleep(serviceDelay)
		s.remove(p)
		p.end(t)
	}
	load.stop(t)
	for _, all := range kept {
		all.Wait()
	}
}

// TestCrashedSidecarFailsNoRead kills the sidecar under an app that reads as docs/CLIENTS.md advises, and starts it
// again at once, as a kubelet does after the first crash.
func TestCrashedSidecarFailsNoRead(t *testing.T) {
	testkit.FullOnly(t, "three crashes under the clients of the documentation")
	h := newFixture(t)
	h.give(t, h.star, 3)
	rows := h.rows(t)
	dir, socket, addr := t.TempDir(), filepath.Join(t.TempDir(), "s"), freePorts(t, "data")["data"]
	start := func() *child {
		s := h.serve(t, "--data", addr, "--socket", socket, "--snapshot-dir", dir)
		s.WaitReady(time.Minute)
		return s
	}
	sidecar := start()
	app := startRecipes(t, socket, addr, h.star, "")[0]
	app.until(t, "local", rows)
	sources, quit := map[string]int{}, make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-quit:
				return
			case <-time.After(2 * time.Millisecond):
			}
			source, _, got := app.read(t, "")
			if sources[source]++; source == "error" || got != rows {
				t.Errorf("a read answers%s from %s, want%s", got, source, rows)
			}
		}
	})
	for range 3 {
		sidecar.Kill()
		sidecar = start()
		time.Sleep(500 * time.Millisecond)
	}
	close(quit)
	reading.Wait()
	if sources["direct"] == 0 || sources["local"]+sources["unchanged"] == 0 {
		t.Errorf("reads by source: %v", sources)
	}
	t.Logf("reads by source: %v", sources)
}
