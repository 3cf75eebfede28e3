package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// oneProcess is a sidecar that takes changes, with a Redis of its own: "star" is super-hot, "hot" is hot, others are small.
type oneProcess struct {
	*testing.T
	redis *servers.Redis
	args  []string
	c     *child
}

func newOneProcess(t *testing.T, more ...string) *oneProcess {
	p := &oneProcess{T: t, redis: testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--appendonly", "yes"}})}
	rooms := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(rooms, []byte("boards: [{match: star, mode: super-hot}, {match: hot, mode: hot}]\n"), 0o600))
	p.args = append([]string{"--log", "redis", "--rooms", rooms}, more...)
	p.c = p.start("--write", "--resp", "127.0.0.1:0")
	return p
}

func (p *oneProcess) start(more ...string) *child {
	c := needy(p.T, "serve", "redis://"+p.redis.Addr(), "", append(p.args, more...)...)
	c.becomesReady("serve")
	return c
}

// post posts a command or several, and returns the answer.
func (p *oneProcess) post(path, body string, header ...string) (code int, answer string) {
	req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.c.URL("data", path), strings.NewReader(body))
	must(p, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

func increment(order, board, member string) string {
	return fmt.Sprintf(`{"order":%q,"board":%q,"member":%q,"op":"incr","delta":1}`, order, board, member)
}

func (p *oneProcess) client(addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	p.Cleanup(func() { _ = c.Close() })
	return c
}

// Who posts reads what it has posted, by every read that names the member, of boards in every tier; and the copies of
// another sidecar come to the same.
func TestOneProcessReadsItsWrites(t *testing.T) {
	t.Parallel()
	p := newOneProcess(t)
	other := p.start()
	resp := p.client(strings.TrimPrefix(p.c.URL("resp", ""), "http://"))
	for _, board := range []string{"star", "hot", "small"} {
		local := 0
		for n := 1; n <= 60; n++ {
			member := fmt.Sprint("m", n%7)
			if code, body := p.post("/v1/scores", increment(fmt.Sprint(board, n), board, member)); code != http.StatusOK {
				t.Fatal(code, body)
			}
			want := fmt.Sprintf(`"member":%q,"score":%d`, member, (n+6)/7)
			if n%7 == 0 {
				want = fmt.Sprintf(`"member":%q,"score":%d`, member, n/7)
			}
			_, body := p.c.Get("data", "/v1/boards/"+board+"/members/"+member)
			if strings.Contains(body, `"source":"local"`) {
				local++
			}
			if !strings.Contains(body, want) {
				t.Errorf("%s after %d changes: %s, want %s", board, n, body, want)
			}
			if _, body := p.c.Get("data", "/v1/boards/"+board+"/top?limit=1&me="+member); !strings.Contains(body, want) {
				t.Errorf("%s after %d changes, with the page: %s, want %s", board, n, body, want)
			}
			if score, err := resp.ZScore(t.Context(), board, member).Result(); err != nil || !strings.Contains(want, fmt.Sprintf(`"score":%v`, score)) {
				t.Errorf("%s after %d changes, over RESP: %v, %v", board, n, score, err)
			}
		}
		if board == "star" && local == 0 {
			t.Error("no write was read from memory, though each was waited for")
		}
	}
	testkit.Eventually(t, time.Minute, func() error {
		_, body := other.Get("data", "/v1/boards/star/top?limit=1")
		return contains(body, `"source":"local","seq":60,"total":7`)
	})
}

// What the data port takes of the writer's paths, and what it answers.
func TestOneProcessTakesChanges(t *testing.T) {
	t.Parallel()
	p := newOneProcess(t, "--write-token", "hush")
	const token, bearer = "Authorization", "Bearer hush"
	one := increment("o", "star", "m")
	for _, c := range []struct {
		path, body string
		header     []string
		code       int
		want       string
	}{
		{"/v1/scores", one, nil, 401, "want the write token"},
		{"/v1/scores", one, []string{token, "Bearer wrong"}, 401, "want the write token"},
		{"/v1/scores", one, []string{token, bearer}, 200, `"score":1,"run":`},
		{"/v1/scores", one, []string{token, bearer}, 200, `"duplicate":true`},
		{"/v1/scores", one, []string{token, bearer, "Origin", "http://elsewhere"}, 403, "cross_origin"},
		{"/v1/scores", one, []string{token, bearer, "Content-Type", "text/plain"}, 415, "unsupported_media_type"},
		{"/v1/scores", `{"order":"p","board":"star","member":"m","op":"incr"}`, []string{token, bearer}, 400, `"argument":"delta"`},
		{"/v1/scores", strings.Repeat(" ", 300<<10), []string{token, bearer}, 413, "body_too_large"},
		{"/v1/scores:batch", `{"commands":[` + increment("q", "star", "n") + `,` + increment("", "star", "n") + `]}`, []string{token, bearer}, 200, `"problem":{`},
		{"/v1/scores:delete", `{"order":"d","board":"star","members":["n"]}`, []string{token, bearer}, 200, `"op":"delete"`},
		{"/v1/members:forget", `{"member":"n"}`, []string{token, bearer}, 404, "unknown_path"},
		{"/v1/members:hide", `{"member":"n"}`, []string{token, bearer}, 404, "unknown_path"},
	} {
		if code, body := p.post(c.path, c.body, c.header...); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %.100s %q: %d %.300s, want %d %s", c.path, c.body, c.header, code, body, c.code, c.want)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.c.URL("data", "/v1/scores"), strings.NewReader(one))
	must(t, err)
	req.Host = "elsewhere"
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	if resp.Body.Close(); resp.StatusCode != http.StatusMisdirectedRequest {
		t.Error("another Host:", resp.Status)
	}
	req, err = http.NewRequestWithContext(t.Context(), http.MethodPut, p.c.URL("data", "/v1/scores"), strings.NewReader(one))
	must(t, err)
	req.Header.Set(token, bearer)
	resp, err = http.DefaultClient.Do(req)
	must(t, err)
	if resp.Body.Close(); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != http.MethodPost {
		t.Error("PUT:", resp.Status, resp.Header)
	}
	if _, body := p.c.Get("admin", "/metrics"); contains(body, `rankcache_write_posts_total{reason="applied",status="200"} 3`) != nil {
		t.Error("the metrics don't count the posts")
	}
	plain := &oneProcess{T: t, redis: p.redis, args: p.args, c: p.start()}
	if code, body := plain.post("/v1/scores", one, token, bearer); code != http.StatusNotFound && code != http.StatusMethodNotAllowed {
		t.Error("a sidecar without --write:", code, body)
	}
}

// What --write can't be used with is refused at the start, by name.
func TestOneProcessIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(file, []byte("boards: [{match: star, mode: super-hot}]\n"), 0o600))
	for line, want := range map[string]string{
		"serve --write":                                                             "--write needs --log redis",
		"serve --write --rooms " + file:                                             "--write needs --log redis",
		"serve --write --log redis --kafka 127.0.0.1:1":                             "leave out --kafka",
		"serve --write --log redis --data 0.0.0.0:0":                                "--write without --write-token: the data port",
		"serve --write --log redis --data 127.0.0.1:0 --log-size 64":                "want bytes such as 64MiB",
		"serve --write --log redis --data 127.0.0.1:0 --redis-mode cluster":         "--log redis: ",
		"serve --write --log redis --data 127.0.0.1:0 --redis-role replica":         "--log redis can't be used with --redis-role replica",
		"serve --write --log redis --data 0.0.0.0:0 --write-token-file /nowhere/at": "/nowhere/at",
	} {
		args := append(strings.Fields(line), "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0")
		if !strings.Contains(line, "--data") {
			args = append(args, "--data", "127.0.0.1:0")
		}
		var out bytes.Buffer
		if err := cli.Run(t.Context(), NewCommand(), args, &out, &out); cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a usage error with %q", line, err, want)
		}
	}
}

// A process that is killed, or stopped, while changes are posted has each that it has acknowledged, and those that are
// posted again count once.
func TestOneProcessIsKilledUnderPosts(t *testing.T) {
	t.Parallel()
	p := newOneProcess(t)
	for round, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		again := map[int][]string{} // posts without an answer
		var posters sync.WaitGroup
		var mu sync.Mutex
		var acked int
		for i := range 4 {
			posters.Go(func() {
				for n := 0; ; n++ {
					order := fmt.Sprintf("o%d-%d-%d", round, i, n)
					code, body := p.post("/v1/scores", increment(order, "star", fmt.Sprint("m", i)))
					mu.Lock()
					switch {
					case code == http.StatusOK:
						acked++
					case code == 0 || code == http.StatusServiceUnavailable:
						again[i] = append(again[i], order)
					default:
						t.Error(code, body)
					}
					mu.Unlock()
					if code != http.StatusOK {
						return
					}
				}
			})
		}
		testkit.Eventually(t, time.Minute, func() error {
			mu.Lock()
			defer mu.Unlock()
			if acked < 200 {
				return fmt.Errorf("%d posts", acked)
			}
			return nil
		})
		p.c.Signal(signal)
		p.c.Wait(time.Minute)
		posters.Wait()
		p.c = p.start("--write", "--resp", "127.0.0.1:0")
		for i, orders := range again {
			for _, order := range orders {
				if code, body := p.post("/v1/scores", increment(order, "star", fmt.Sprint("m", i))); code != http.StatusOK {
					t.Error(code, body)
				}
				acked++
			}
		}
		p.counts(acked)
	}
}

// counts compares the board's scores with the number of posts, and starts from 0 again.
func (p *oneProcess) counts(posts int) {
	p.Helper()
	var page struct {
		Source  string
		Entries []struct{ Score float64 }
	}
	testkit.Eventually(p, time.Minute, func() error {
		_, body := p.c.Get("data", "/v1/boards/star/top")
		if err := json.Unmarshal([]byte(body), &page); err != nil || page.Source != "local" {
			return fmt.Errorf("%v: %s", err, body)
		}
		sum := 0.0
		for _, e := range page.Entries {
			sum += e.Score
		}
		if sum != float64(posts) {
			return fmt.Errorf("scores add up to %v after %d posts", sum, posts)
		}
		return nil
	})
	if code, body := p.post("/v1/scores:delete", `{"order":"clear`+fmt.Sprint(posts)+`","board":"star","members":["m0","m1","m2","m3"]}`); code != http.StatusOK {
		p.Fatal(code, body)
	}
}

// While the log takes no entries changes are answered, and read back, from Redis; and the process says so.
func TestOneProcessWithoutItsLog(t *testing.T) {
	t.Parallel()
	p := newOneProcess(t)
	direct := p.client(p.redis.Addr())
	if code, body := p.post("/v1/scores", increment("first", "star", "m")); code != http.StatusOK {
		t.Fatal(code, body)
	}
	testkit.Eventually(t, time.Minute, func() error {
		_, body := p.c.Get("data", "/v1/boards/star/top")
		return contains(body, `"source":"local","seq":1`)
	})
	must(t, direct.Del(context.Background(), "rankcache:log").Err())
	must(t, direct.Set(t.Context(), "rankcache:log", "something else", 0).Err())
	for n := 2; n <= 20; n++ {
		if code, body := p.post("/v1/scores", increment(fmt.Sprint("o", n), "star", "m")); code != http.StatusOK {
			t.Fatal(code, body)
		}
		if _, body := p.c.Get("data", "/v1/boards/star/members/m"); !strings.Contains(body, fmt.Sprintf(`"score":%d`, n)) {
			t.Errorf("after %d changes: %s", n, body)
		}
	}
	if _, body := p.c.Get("health", "/readyz"); contains(body, "ready, but the log of changes in Redis (key rankcache:log) fails") != nil {
		t.Error(body)
	}
	must(t, direct.Del(t.Context(), "rankcache:log").Err())
	testkit.Eventually(t, time.Minute, func() error {
		if code, body := p.post("/v1/scores", increment(fmt.Sprint(time.Now()), "star", "n")); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		_, body := p.c.Get("data", "/v1/boards/star/members/m")
		return contains(body, `"source":"local"`)
	})
}
