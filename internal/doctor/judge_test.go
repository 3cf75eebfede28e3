package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
)

func check(t *testing.T, what string, v Verdict, want string) {
	t.Helper()
	status, advice, _ := strings.Cut(want, ": ")
	if string(v.Status) != status || !strings.Contains(v.Advice, advice) {
		t.Errorf("%s: got %s: %s\nwant %s", what, v.Status, v.Advice, want)
	}
}

func TestJudgeServers(t *testing.T) {
	check(t, "single", judgeMode("single", "standalone", "0"), "ok")
	check(t, "no INFO", judgeMode("single", "", ""), "warn: by hand")
	check(t, "sentinel", judgeMode("single", "sentinel", ""), "fail: --redis-mode sentinel")
	check(t, "behind sentinel", judgeMode("sentinel", "standalone", "0"), "ok")
	check(t, "cluster", judgeMode("single", "cluster", "1"), "fail: --redis-mode cluster")
	check(t, "no cluster", judgeMode("cluster", "standalone", "0"), "fail: --redis-mode single")
	check(t, "master", judgeRole([]any{"master", int64(7), []any{[]any{"h", "1", "7"}}}, nil), "ok: 1 replicas")
	check(t, "replica", judgeRole([]any{"slave", "h", int64(1), "connected", int64(7)}, nil), "fail: --redis-mode sentinel")
	check(t, "no ROLE", judgeRole(nil, errors.New("NOPERM this user has no permissions")), "warn: by hand")
	check(t, "volatile", judgeEviction("volatile-lru", "1000", "1K"), "warn: volatile-lru")
	check(t, "no limit", judgeEviction("allkeys-lru", "0", "0B"), "ok")
	check(t, "allkeys", judgeEviction("allkeys-random", "1000", "1K"), "fail: noeviction")
	check(t, "unknown", judgeEviction("", "", ""), "warn")
	check(t, "ahead", judgeSkew("Redis", 3*time.Second, time.Millisecond), "warn: 3s ahead of")
	check(t, "behind", judgeSkew("Redis", -3*time.Second, time.Millisecond), "warn: 3s behind")
	check(t, "a slow answer", judgeSkew("Redis", 3*time.Second, 4*time.Second), "ok: within 4s")
}

func TestJudgeMemory(t *testing.T) {
	m := Memory{Boards: 2, Members: 1000, Estimate: 100 << 20, Source: "60% of the cgroup's limit"}
	check(t, "unknown", m.Judge(), "warn: 100.0 MiB")
	m.Budget = 90 << 20
	check(t, "too little", m.Judge(), "fail: 90 MiB are for them")
	m.Budget = 110 << 20
	check(t, "tight", m.Judge(), "warn: little room")
	m.Budget = 1 << 30
	check(t, "enough", m.Judge(), "ok")
}

func TestJudgeOpenFiles(t *testing.T) {
	conns := []Conns{{"the data port", 4096}, {"--rpc", 14_096}}
	const need = 4096 + 14_096 + OtherFiles
	check(t, "enough", judgeOpenFiles(need, conns), "ok: 14096 for --rpc")
	check(t, "no limit", judgeOpenFiles(1<<64-1, conns), "ok")
	check(t, "too few", judgeOpenFiles(need-1, conns), fmt.Sprintf("warn: set %d or more", need))
}

func TestJudgeTopics(t *testing.T) {
	now := time.Now()
	of := func(t topic) survey {
		return survey{boards: []rankcache.BoardID{t.board}, topics: []topic{t}, brokers: 3, now: now}
	}
	kept := topic{board: "b", replicas: 3, minISR: 2, policy: "delete", retention: -1, retentionBytes: -1}
	with := func(change func(*topic)) survey { t := kept; change(&t); return of(t) }
	check(t, "none", judgeTopics(survey{}, "seq"), "ok: no board is super-hot")
	check(t, "missing", judgeTopics(survey{boards: []rankcache.BoardID{"b"}, missing: []rankcache.BoardID{"b"}}, "seq"), "warn: 1 of 1")
	split := survey{boards: []rankcache.BoardID{"b"}, split: []string{"update_cache_b (3)"}}
	check(t, "several partitions", judgeTopics(split, "seq"), "fail: update_cache_b (3): Redis answers such boards; delete the topics")
	check(t, "several partitions, no seqs", judgeTopics(split, "orders"), "ok")
	check(t, "kept", judgeRetention(of(kept), "seq"), "ok")
	check(t, "by age", judgeRetention(with(func(t *topic) { t.retention = 1000 }), "seq"), "warn: will be truncated")
	check(t, "by size", judgeRetention(with(func(t *topic) { t.retentionBytes = 1000 }), "none"), "warn: never open")
	check(t, "cut", judgeRetention(with(func(t *topic) { t.low = 7 }), "seq"), "warn: lost their beginning")
	check(t, "cut, no seqs", judgeRetention(with(func(t *topic) { t.low = 7 }), "none"), "fail: --total none")
	check(t, "compacted", judgeRetention(with(func(t *topic) { t.low, t.policy = 7, "compact" }), "none"), "ok")
	check(t, "both policies", judgeRetention(with(func(t *topic) { t.low, t.policy = 7, "compact,delete" }), "none"), "fail")
	check(t, "replicas", judgeReplicas(of(kept)), "ok: loss of a broker")
	check(t, "stuck", judgeReplicas(with(func(t *topic) { t.minISR = 4 })), "fail: nothing can be produced")
	check(t, "tight", judgeReplicas(with(func(t *topic) { t.minISR = 3 })), "warn: one lower")
	check(t, "single", judgeReplicas(with(func(t *topic) { t.replicas, t.minISR = 1, 1 })), "warn: lost with its broker")
	check(t, "future", judgeNewest(with(func(t *topic) { t.newest = now.Add(time.Minute) })), "warn: 1m0s ahead")
	check(t, "past", judgeNewest(with(func(t *topic) { t.newest = now.Add(-time.Minute) })), "ok")
}

func TestExplain(t *testing.T) {
	for text, want := range map[string]string{
		"WRONGPASS invalid username-password pair":                                 "Redis refuses",
		"tls: failed to verify certificate: x509: unknown":                         "not trusted",
		"dial tcp: lookup nowhere: no such host":                                   "DNS",
		"SASL authentication error: Authentication failed":                         "kafka.sasl",
		"SSL handshake failed: ssl/record: wrong version":                          "TLS handshake failed",
		"Error 1045 (28000): Access denied for user 'a'@'h' (using password: YES)": "user or the password",
		"Error 1044 (42000): Access denied for user 'a'@'%' to database 'nope'":    "no database of this name, or",
		"something else": "something else",
		"Local: Broker transport failure: nothing is known":  "no answer in time",
		"ERR This instance has cluster support disabled":     "--redis-mode single",
		"Topic authorization failed: b: not authorized here": "grant Read",
	} {
		if got := explain(errors.New(text)); !strings.Contains(got, want) || !strings.Contains(got, text) {
			t.Errorf("%q: got %q, want %q and the error itself", text, got, want)
		}
	}
}

func TestJudgeLists(t *testing.T) {
	if got := list([]string{"a", "b", "c", "d", "e", "f", "g"}); got != "a, b, c, d, e, and 2 more" {
		t.Errorf("got %q", got)
	}
}

// A check that never ends must not hold the others, and what needs it is skipped.
func TestRunNeverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		var got []Finding
		Run(t.Context(), []Check{
			{"deaf", nil, func(context.Context) Verdict { <-never; return Verdict{} }},
			{"after deaf", []string{"none", "deaf"}, nil},
			{"after that", []string{"after deaf"}, nil},
			{"late", nil, func(ctx context.Context) Verdict { <-ctx.Done(); return warnf("late") }},
		}, time.Second, func(f Finding) { got = append(got, f) })
		for i, want := range []string{"unknown: can't look: no answer within 1s", "skip: deaf could not be looked at", "skip: deaf could not be looked at", "warn: late"} {
			check(t, got[i].Check, got[i].Verdict, want)
		}
		close(never)
	})
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look := func(c Check) Verdict { return c.Look(t.Context()) }
	check(t, "there", look(Folder("snapshots", "snapshot-dir", dir)), "ok: files can be created in "+dir)
	check(t, "not yet", look(Folder("snapshots", "snapshot-dir", filepath.Join(dir, "a", "b"))), "ok: can be created in "+dir)
	check(t, "a file", look(Folder("snapshots", "snapshot-dir", file)), "fail: --snapshot-dir: it is not a folder")
	check(t, "below a file", look(Folder("snapshots", "snapshot-dir", filepath.Join(file, "a"))), "fail: --snapshot-dir: it is not a folder")
	check(t, "socket", look(Socket("socket", "socket", filepath.Join(dir, "s.sock"))), "ok: sockets can be created in "+dir)
	check(t, "no folder", look(Socket("socket", "socket", filepath.Join(dir, "none", "s.sock"))), "fail: --socket: the folder does not exist")
	check(t, "long", look(Socket("socket", "socket", "/"+strings.Repeat("x", 200))), "fail: a path of 201 bytes")
	for _, err := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC} {
		if got := explainFolder(fmt.Errorf("open: %w", err)); strings.HasPrefix(got, "check the folder") {
			t.Errorf("%v: no advice: %s", err, got)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestCall(t *testing.T) {
	ok := Call("service", nil, func(context.Context) error { return nil })
	check(t, "answers", ok.Look(t.Context()), "ok: answered in")
	refused := Call("service", nil, func(context.Context) error { return errors.New("bad answer (status): HTTP 401 Unauthorized") })
	check(t, "refuses", refused.Look(t.Context()), "fail: --profile-header (bad answer")
}
