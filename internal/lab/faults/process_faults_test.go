package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// processFaults are those of rankcache itself, its files and its neighbours.
func processFaults() []fault {
	return []fault{{
		name: "the sidecar is killed (SIGKILL)", due: nothing,
		inject: func(w *env) { w.sidecar().Kill() },
		heal:   func(w *env) { w.startSidecar() },
	}, {
		name: "the sidecar is stopped (SIGTERM)", note: "callers go to the next when it is not ready",
		args:   []string{"--drain", "3s"},
		inject: func(w *env) { w.replaceSidecar() },
	}, {
		name:   "the writer is killed (SIGKILL)",
		inject: func(w *env) { w.writing().Kill() },
		heal:   func(w *env) { w.startWriter() },
	}, {
		name: "boards are changed for longer than they live", note: "--board-life 20s; none expires", lasts: 5000,
		prepare: func(w *env) { w.writerArgs = append(w.writerArgs, "--board-life", "20s") },
	}, {
		name: "a sorted set is where the rooms set at run time should be", note: "the writer restarts and takes posts, of its own keys none",
		inject: func(w *env) {
			w.must(w.client().ZAdd(w.Context(), wire.DefaultNames().Rooms, redis.Z{Member: "m", Score: 1}).Err())
			w.writing().Kill()
			w.startWriter()
		},
		hold: func(w *env) {
			w.waitPost(string(w.boards[0].ID)+"_other", http.StatusOK)
			w.waitPost(wire.DefaultNames().Rooms, http.StatusBadRequest)
		},
		heal: func(w *env) { w.must(w.client().Del(w.Context(), wire.DefaultNames().Rooms).Err()) },
	}, {
		name:   "the rooms file is broken",
		inject: func(w *env) { w.writeRooms("rooms:\n- {uid: 88, mode: lukewarm}\n") },
		hold:   func(w *env) { w.waitMetric("rankcache_rooms_file_bad 1") },
		heal:   func(w *env) { w.writeRooms(w.roomsText()) },
	}, {
		name: "commands are given years and seconds ago and ahead", note: "years are refused",
		inject: func(w *env) { w.writes.Clock.Store(&wildClock) },
		hold:   func(w *env) { w.waitRefused() },
		heal:   func(w *env) { w.writes.Clock.Store(nil) },
	}, profileFault("the profile service is down", func(rw http.ResponseWriter, _ *http.Request) {
		panic(http.ErrAbortHandler)
	}), profileFault("the profile service is slow", func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}), profileFault("the profile service answers garbage", func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, `{"profiles":{"m0001":"<html>", "m0002":[[[[`)
	}), hotFault("the hot-key API is down", func(rw http.ResponseWriter, _ *http.Request) {
		panic(http.ErrAbortHandler)
	}), hotFault("the hot-key API is slow", func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}), hotFault("the hot-key API answers garbage", func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, "<html>502 Bad Gateway</html>")
	})}
}

// wildClock returns times that jump to and fro by ten years or by seconds.
var wildClock = func() int64 {
	now := time.Now()
	return now.AddDate(int(now.UnixNano()%3-1)*10, 0, 0).Add(time.Duration(now.UnixNano()%60-30) * time.Second).UnixMilli()
}

// waitPost posts a change of a board until the writer answers with a status.
func (w *env) waitPost(board string, status int) {
	w.Helper()
	w.eventually(func() error {
		answer, err := http.Post(w.writing().URL("scores", "/v1/scores"), "application/json",
			strings.NewReader(fmt.Sprintf(`{"order":"o","board":%q,"member":"m","op":"incr","delta":1}`, board)))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != status {
			return fmt.Errorf("a post of %s is answered %s, want %d", board, answer.Status, status)
		}
		return nil
	})
}

// waitRefused waits until commands were refused for their time.
func (w *env) waitRefused() {
	w.Helper()
	w.eventually(func() error {
		if n := w.writes.Refused(); n < 10 {
			return fmt.Errorf("%d commands were refused", n)
		}
		return nil
	})
}

// replaceSidecar does what a Deployment does: the next one becomes ready, the old
// one gets SIGTERM, and callers leave it when it reports that it is not ready.
func (w *env) replaceSidecar() {
	w.Helper()
	old := w.sidecar()
	next := w.readySidecar()
	old.Signal(syscall.SIGTERM)
	w.eventually(func() error {
		if code, body := old.Get("health", "/readyz"); code != http.StatusServiceUnavailable {
			return fmt.Errorf("still ready: %d %s", code, body)
		}
		return nil
	})
	w.waitReads(100) // it answers while it drains
	w.useSidecar(next)
	if code := old.Wait(settleWithin); code != 0 {
		w.Errorf("the old sidecar ended with %d", code)
	}
}

// profileFault makes the profile service ill.
func profileFault(name string, ill http.HandlerFunc) fault {
	var sick *atomic.Bool
	return fault{name: name, note: "pages come without profiles",
		prepare: func(w *env) {
			var url string
			url, sick = w.neighbour(serveProfiles, ill)
			w.args = append(w.args, "--profile-url", url, "--profile-ttl", "200ms", "--profile-stale-for", "400ms")
			w.reads.Query = "profiles=1"
		},
		inject: func(*env) { sick.Store(true) },
		heal:   func(*env) { sick.Store(false) },
	}
}

// serveProfiles answers as a healthy profile service.
func serveProfiles(rw http.ResponseWriter, r *http.Request) {
	var asked struct{ Members []string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	profiles := map[string]json.RawMessage{}
	for _, m := range asked.Members {
		profiles[m] = json.RawMessage(profileOf(m))
	}
	_ = json.NewEncoder(rw).Encode(map[string]any{"profiles": profiles}) // the caller may have gone
}

// hotFault makes the cloud's hot-key API ill.
func hotFault(name string, ill http.HandlerFunc) fault {
	var sick *atomic.Bool
	return fault{name: name,
		prepare: func(w *env) {
			var url string
			url, sick = w.neighbour(func(rw http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(rw, `{"Response":{"Data":[],"RequestId":"r-1"}}`)
			}, ill)
			w.args = append(w.args, "--hot-source", "tencent", "--tencent-instance", "crs-1", "--tencent-region", "ap-guangzhou",
				"--tencent-endpoint", url, "--tencent-credentials", "env", "--poll-every", "300ms")
		},
		inject: func(*env) { sick.Store(true) },
		heal:   func(*env) { sick.Store(false) },
	}
}

// neighbour is a service beside the sidecar that a row makes ill.
func (w *env) neighbour(well, ill http.HandlerFunc) (url string, sick *atomic.Bool) {
	sick = new(atomic.Bool)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if sick.Load() {
			io.Copy(io.Discard, r.Body) // else a handler does not notice that its caller has gone
			ill(rw, r)
			return
		}
		well(rw, r)
	}))
	w.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL, sick
}
