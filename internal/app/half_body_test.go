package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/run"
	"rankcache/internal/serve"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/halfbody"
)

// TestBodyIsNoRequestOnAnyPort: on every port of every process, what a client sends of a body
// behind the answer is not taken for its next request.
func TestBodyIsNoRequestOnAnyPort(t *testing.T) {
	t.Parallel()
	ports := startShortTimed(t)
	for _, p := range []struct {
		port  string
		http2 bool
		asked []halfbody.Request
	}{
		{"serve data", false, []halfbody.Request{post("/v1/boards:batch"), post("/v1/boards/x/members:batch"), get("/v1/boards/x/top"), post("/x")}},
		{"serve socket", false, []halfbody.Request{post("/v1/boards:batch"), get("/v1/boards/x/top")}},
		{"serve rpc", true, append(calls("/rankcache.v1.Boards/GetTop"), post("/x"), get("/v1/classes/x/live"))},
		{"serve admin", false, []halfbody.Request{post("/log-level"), post("/rooms"), get("/status"), post("/x")}},
		{"serve health", false, []halfbody.Request{post("/log-level"), get("/livez")}},
		{"write scores", true, append(calls("/rankcache.v1.Scores/PostScores"), post("/v1/scores"), post("/v1/scores:batch"), post("/v1/update_rank"), get("/v1/status"))},
		{"write health", false, []halfbody.Request{post("/log-level"), get("/livez")}},
		{"ledger http", false, []halfbody.Request{post("/v1/reads"), post("/log-level"), get("/status")}},
		{"controller health", false, []halfbody.Request{post("/log-level"), get("/status")}},
		{"reconcile health", false, []halfbody.Request{post("/log-level"), get("/status")}},
		{"poll health", false, []halfbody.Request{post("/log-level"), get("/status")}},
	} {
		network, addr := "tcp", ports[p.port]
		if addr == "" {
			t.Errorf("nobody listens on %s: %v", p.port, ports)
		}
		if strings.HasPrefix(addr, "/") {
			network = "unix"
		}
		for _, request := range p.asked {
			name := fmt.Sprintf("%s %s %s %s%s/", p.port, request.Method, request.Path, request.ContentType, request.ContentEncoding)
			for framing := range halfbody.Framings {
				t.Run(name+framing, func(t *testing.T) {
					t.Parallel()
					halfbody.HTTP1(t, network, addr, request, framing)
				})
			}
			if p.http2 {
				t.Run(name+"http2", func(t *testing.T) {
					t.Parallel()
					halfbody.HTTP2(t, addr, request)
				})
			}
		}
	}
}

func get(path string) halfbody.Request { return halfbody.Request{Method: http.MethodGet, Path: path} }

func post(path string) halfbody.Request {
	return halfbody.Request{Method: http.MethodPost, Path: path, ContentType: "application/json"}
}

// calls are calls of a method by each protocol.
func calls(path string) (all []halfbody.Request) {
	for _, contentType := range []string{"application/json", "application/proto", "application/connect+json", "application/grpc", "application/grpc-web+proto"} {
		all = append(all, halfbody.Request{Method: http.MethodPost, Path: path, ContentType: contentType})
	}
	return append(all, halfbody.Request{Method: http.MethodPost, Path: path, ContentType: "application/json", ContentEncoding: "gzip"})
}

// startShortTimed runs every process that listens, with short time-outs, and returns the
// addresses of its ports as "command port".
func startShortTimed(t *testing.T) map[string]string {
	name, local := testkit.Name(t), "127.0.0.1:0"
	database, query, rooms := testkit.Database(t, testkit.SQLKinds[0]), filepath.Join(t.TempDir(), "query"), filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(query, []byte("SELECT"), 0o600))
	must(t, os.WriteFile(rooms, []byte("boards: []\n"), 0o600))
	shared := []string{"--redis", "redis://" + testkit.Redis(t), "--kafka", testkit.Kafka(t), "--rooms", rooms, "--key-rooms", name + ":rooms", "--key-ends", name + ":ends",
		"--key-controller", name + ":lease", "--topic-commands", name, "--topic-ledger", name + "-ledger"}
	ports := make(map[string]string)
	start := func(command string, o cli.Settings, common *cli.Options, run func(ctx context.Context, log *slog.Logger) error, args ...string) {
		t.Helper()
		must(t, cli.ParseArgs(command, o, append(append(args, "--log-format", "json"), shared...)))
		common.ReadTimeout = 100 * time.Millisecond
		for flag, addr := range listening(t, common, run) {
			ports[command+" "+flag] = addr
		}
	}
	socket := filepath.Join(t.TempDir(), "data")
	ports["serve socket"] = socket
	s, w, l, c, r, p := &serve.Options{}, &run.WriteOptions{}, &run.LedgerOptions{}, &run.ControllerOptions{}, &run.ReconcileOptions{}, &run.PollOptions{}
	start("serve", s, &s.Options, func(ctx context.Context, log *slog.Logger) error { return serve.Run(ctx, s, log) },
		"--data", local, "--socket", socket, "--rpc", local, "--admin", local, "--health", local, "--drain", "0s")
	start("write", w, &w.Options, func(ctx context.Context, log *slog.Logger) error { return run.Write(ctx, w, log) },
		"--scores", local, "--health", local, "--group", name, "--command-partitions", "1", "--drain", "0s")
	start("ledger", l, &l.Options, func(ctx context.Context, log *slog.Logger) error { return run.Ledger(ctx, l, log) },
		"--http", local, "--database", database, "--serve-reads", "--ledger-group", name)
	start("controller", c, &c.Options, func(ctx context.Context, log *slog.Logger) error { return run.Control(ctx, c, log) }, "--health", local, "--topic-keep", "0")
	start("reconcile", r, &r.Options, func(ctx context.Context, log *slog.Logger) error { return run.Reconcile(ctx, r, log, io.Discard) },
		"--health", local, "--database", database, "--books", database, "--books-query-file", query)
	start("poll", p, &p.Options, func(ctx context.Context, log *slog.Logger) error { return run.Poll(ctx, p, log) }, "--health", local, "--hot-source", "redis")
	return ports
}

// listening runs a command in this process until the end of the test, and returns where it
// listens, as it logs that.
func listening(t *testing.T, o *cli.Options, run func(context.Context, *slog.Logger) error) map[string]string {
	t.Helper()
	var log notices
	to, err := o.Logger(&log)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, to) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	addrs := make(map[string]string)
	testkit.Eventually(t, time.Minute, func() error {
		for _, line := range log.take() {
			var entry map[string]any
			if json.Unmarshal([]byte(line), &entry) == nil && entry["version"] != nil {
				for name, value := range entry {
					addrs[name] = fmt.Sprint(value)
				}
			}
		}
		if len(addrs) == 0 {
			return errors.New("it does not listen")
		}
		return nil
	})
	return addrs
}
