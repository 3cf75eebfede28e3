package app

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/doctext"
)

// TestEveryDocumentedCommand holds the documentation's commands against our flags
// and the Makefile's targets. In full size it also runs them against a writer and a
// sidecar on real servers, but for those that run until they are stopped, or need a
// cluster. Of a line only addresses are replaced, by those of this test.
func TestEveryDocumentedCommand(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	run := func(*testing.T, doctext.Line) {}
	if testkit.Full() {
		run = newStage(t).run
	}
	sh := doctext.NewShims(t)
	for _, l := range doctext.Lines(t, "../..") {
		if l.NotRun != "" {
			t.Logf("not run (%s): %s: %s", l.NotRun, l.File, l.Text)
			continue
		}
		calls := sh.Calls(t, l.Text)
		if len(calls) == 0 {
			t.Errorf("%s: %q calls nothing", l.File, l.Text)
		}
		for _, call := range calls {
			if err := checkCall(call); err != nil {
				t.Errorf("%s: %q: %v", l.File, l.Text, err)
			}
			if call[0] == "make" && len(call) > 1 && !strings.Contains(string(makefile), "\n"+call[1]+": ") {
				t.Errorf("%s: make has no target %s", l.File, call[1])
			}
		}
		if runsHere(calls) {
			run(t, l)
		}
	}
}

// runsHere reports whether the calls end by themselves and need no cluster.
func runsHere(calls [][]string) bool {
	for _, call := range calls {
		lasting := len(call) > 1 && slices.Contains([]string{"serve", "keep", "write", "poll", "controller", "ledger", "reconcile", "rebuild"}, call[1])
		if call[0] == "make" || call[0] == "rankcache-lab" || call[0] == "kubectl" || call[0] == "rankcache" && lasting {
			return false
		}
	}
	return true
}

// stage is what the documented commands are run against.
type stage struct {
	dir   string
	env   []string
	names *strings.Replacer
}

func newStage(t *testing.T) *stage {
	const token = "a-token-of-sixteen-bytes-or-more"
	s := &stage{dir: t.TempDir()}
	s.write(t, "classes.yaml", "classes: [{name: show, board: \"show:{host}:{period}\", period: 30m}]\n")
	s.write(t, "rooms.yaml", "rooms:\n- {uid: \"88\", mode: super-hot, boards: [\"1_2_3\"]}\nboards:\n- {match: \"9_*\", mode: blocked}\n"+
		"classes:\n- {name: older, board: \"older:{zone}\", period: none, ids: {act: 1, rank: 2}}\n- {name: gift-day, board: \"giftday:{period}\", period: day}\n")
	s.write(t, "rankcache.yaml", "drain: 2s\n")
	redis, brokers := testkit.StartRedis(t, servers.RedisOptions{}).Addr(), testkit.Kafka(t)
	common := []string{"--redis", "redis://" + redis, "--kafka", brokers, "--rooms", filepath.Join(s.dir, "rooms.yaml"),
		"--topic-updates", testkit.Name(t) + "_", "--topic-commands", testkit.Name(t), "--redis-timeout", "2s"}
	writer := startListening(t, append([]string{"write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--command-partitions", "1"}, common...)...)
	sidecar := startListening(t, append([]string{"serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--admin-token", token}, common...)...)
	poller := startListening(t, append([]string{"poll", "--health", "127.0.0.1:0", "--hot-source", "redis"}, common...)...)
	controller := startListening(t, append([]string{"controller", "--health", "127.0.0.1:0", "--topic-keep", "0"}, common...)...)
	database := testkit.Database(t, testkit.SQLKinds[0])
	s.write(t, "database", database)
	s.write(t, "token", token)
	ledger := startListening(t, append([]string{"ledger", "--http", "127.0.0.1:0", "--database", database, "--topic-ledger", testkit.Name(t)}, common...)...)
	keeper := startListening(t, append([]string{"keep", "--health", "127.0.0.1:0"}, common...)...)
	addr := (*child).Addr
	var pairs []string
	for port, at := range map[string]string{"8970": addr(sidecar, "data"), "8971": addr(sidecar, "admin"), "8972": addr(sidecar, "health"),
		"8973": addr(writer, "scores"), "8974": addr(writer, "health"), "8975": addr(poller, "health"), "8976": addr(ledger, "http"), "8977": addr(controller, "health"), "8979": addr(keeper, "health")} {
		pairs = append(pairs, "localhost:"+port, at, "127.0.0.1:"+port, at, " :"+port, " "+at)
	}
	s.names = strings.NewReplacer(append(pairs, "redis://redis:6379", "redis://"+redis, "kafka:9092", brokers, "writer:8973", addr(writer, "scores"),
		"/run/secrets/database", "database", "/run/secrets/forget", "token")...)
	s.shims(t, addr(sidecar, "admin"), addr(sidecar, "health"), addr(writer, "scores"))
	s.env = append(os.Environ(), envRunMain+"=1", "RANKCACHE_ADMIN_TOKEN="+token, "PATH="+s.dir+":"+os.Getenv("PATH"),
		"RANKCACHE_REDIS=redis://"+redis, "RANKCACHE_KAFKA="+brokers, "RANKCACHE_ROOMS=rooms.yaml")
	s.fill(t, writer)
	sidecar.WaitReady(time.Minute)
	return s
}

func (s *stage) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// shimNote ends a shim: a failure is noted, which a pipe would hide.
const shimNote = "code=$?; [ $code = 0 ] || echo \"$0 $* ended with $code\" >>failed; exit $code\n"

// shims makes rankcache this binary, with the ports in its settings, and curl.
func (s *stage) shims(t *testing.T, admin, health, scores string) {
	s.write(t, "rankcache", fmt.Sprintf(`#!/bin/sh
case "$1 $2" in
hot*|"rooms list"|"rooms set"|"rooms delete"|"rooms bypass"|"classes list"|"classes set"|"classes delete"|debug*) set -- "$@" --admin %[1]s;;
wait*) shift; set -- wait --admin %[1]s --health http://%[2]s "$@";;
verify*) set -- "$@" --sidecar %[1]s;;
"members hide"|"members restore") set -- "$@" --scores %[4]s;;
doctor*) set -- "$@" --data 127.0.0.1:0 --admin 127.0.0.1:0 --health 127.0.0.1:0;;
esac
%[3]q "$@"
`, admin, health, os.Args[0], scores)+shimNote)
	s.curl(t, "curl")
}

// curl makes a curl that fails where the server refuses.
func (s *stage) curl(t *testing.T, name string) {
	curl, err := exec.LookPath("curl")
	if err != nil && testkit.RequireReal() {
		t.Fatal("curl is not installed")
	}
	if err != nil {
		t.Skip("curl is not installed: the documented commands are not run")
	}
	s.write(t, name, fmt.Sprintf("#!/bin/sh\n%q --fail --max-time 20 -sS \"$@\"\n", curl)+shimNote)
}

// fill gives the boards the members that the documentation asks for.
func (s *stage) fill(t *testing.T, writer *child) {
	for i, member := range []string{"1000123", "1000124", "1000123", "1000124"} {
		board := []string{"1_2_3", "demo_tonight_star"}[i/2]
		body := fmt.Sprintf(`{"order":"fill-%d","board":%q,"member":%q,"op":"incr","delta":5}`, i, board, member)
		testkit.Eventually(t, time.Minute, func() error { // the producer needs a moment at the start
			resp, err := http.Post(writer.URL("scores", "/v1/scores"), "application/json", strings.NewReader(body))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: %s", resp.Status, answer)
			}
			return nil
		})
	}
}

func (s *stage) run(t *testing.T, l doctext.Line) {
	t.Helper()
	failed := filepath.Join(s.dir, "failed")
	os.Remove(failed)
	cmd := exec.Command("sh", "-c", s.names.Replace(l.Text))
	cmd.Dir, cmd.Env = s.dir, s.env
	out, _ := cmd.CombinedOutput() // the shell's own status is that of a pipe's end
	if note, err := os.ReadFile(failed); err == nil {
		t.Errorf("%s: %s\n%s%s", l.File, l.Text, note, out)
	}
}
