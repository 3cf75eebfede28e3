package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/doctor"
	"rankcache/internal/lab/servers"
	"rankcache/internal/operate"
	"rankcache/internal/testkit"
	"rankcache/ledger/reads"
	"rankcache/rooms"
	"rankcache/wire"
)

// examine runs rankcache doctor and returns its findings by check.
func examine(t *testing.T, args ...string) (map[string]doctor.Finding, int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"doctor", "-o", "json", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--hot-source", "none", "--timeout", "20s"}, args...)
	code := cli.ExitCode(cli.Run(t.Context(), NewCommand(), args, &out, &errs))
	var report operate.DoctorReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v in %q %q", err, out.String(), errs.String())
	}
	found := map[string]doctor.Finding{}
	for _, f := range report.Checks {
		found[f.Check] = f
	}
	return found, code, out.String()
}

// expect holds a finding against "status: part of the advice".
func expect(t *testing.T, found map[string]doctor.Finding, check, want string) {
	t.Helper()
	status, advice, _ := strings.Cut(want, ": ")
	if f := found[check]; string(f.Status) != status || !strings.Contains(f.Advice, advice) {
		t.Errorf("%s: got %s: %s\nwant %s", check, f.Status, f.Advice, want)
	}
}

// superHotRooms writes a rooms file.
func superHotRooms(t *testing.T, boards ...string) string {
	text := "boards:\n"
	for _, b := range boards {
		text += fmt.Sprintf("- {match: %q, mode: super-hot}\n", b)
	}
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDoctorFindsNothingWrong(t *testing.T) {
	t.Parallel()
	board := testkit.Name(t)
	brokers := testkit.Kafka(t)
	testkit.CreateTopic(t, brokers, "update_cache_"+board, 1, map[string]string{"retention.ms": "-1"})
	found, code, text := examine(t, "--redis", "redis://"+testkit.Redis(t), "--kafka", brokers, "--rooms", superHotRooms(t, board),
		"--for", "serve,write,poll,controller,ledger", "--key-rooms", testkit.Name(t), "--rpc", "127.0.0.1:0", "--live-streams", "4000000000")
	if code != cli.ExitOK {
		t.Errorf("exit code %d: %s", code, text)
	}
	for check, want := range map[string]string{
		"rooms": "ok: 1 board rules", "redis": "ok: Redis ", "redis-mode": "ok", "redis-role": "ok: master", "redis-acl": `ok: user "default" may use every command that serve, write, poll, controller, ledger`, "kafka-deletion": "ok: the user may delete topic",
		"boards": "ok: 1 boards are super-hot", "redis-eviction": "ok: noeviction", "redis-clock": "ok: agrees", "kafka": "ok: 1 brokers", "kafka-topics": "ok: each of 1",
		"kafka-retention": "ok: no retention limit", "kafka-replicas": "ok: one broker", "kafka-sizes": "ok", "kafka-clock": "ok", "ports": "ok", "open-files": "warn: 4000004096 for --rpc",
		"hot-source": "ok: by 50 reads/s of this sidecar (--hot-promote-rate), or by the verdict of rankcache keep or poll; without one, what many pods read rarely is not noticed",
	} {
		expect(t, found, check, want)
	}
	if f := found["memory"]; f.Status == doctor.Fail {
		t.Errorf("memory: %+v", f)
	}
}

// TestDoctorOfUnreadableBoard: the others are judged.
func TestDoctorOfUnreadableBoard(t *testing.T) {
	t.Parallel()
	addr, bad, good := testkit.Redis(t), testkit.Name(t), testkit.Name(t)
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	for _, row := range [][]any{{"ZADD", bad, "inf", "a"}, {"ZADD", good, "1", "a"}} {
		if err := client.Do(t.Context(), row...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	found, _, _ := examine(t, "--redis", "redis://"+addr, "--kafka", "127.0.0.1:1", "--rooms", superHotRooms(t, bad, good), "--for", "serve", "--key-rooms", testkit.Name(t))
	expect(t, found, "memory", `fail: board can't be read: key "`+bad+`" holds the score +Inf of member "a"`)
	expect(t, found, "memory", "fail: 1 super-hot boards with 1 members")
}

func TestDoctorOnRedis(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}})
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	for _, acl := range [][]any{
		{"ACL", "SETUSER", "reader", "on", ">hush-hush", "~*", "+@all", "-zscan", "-hgetall"},
		{"ACL", "SETUSER", "old", "on", ">hush-hush", "~*", "+@all", "-@admin", "-zrevrank"}, // no ACL DRYRUN
		{"ACL", "SETUSER", "blind", "on", ">hush-hush", "~*", "+@all", "-info"},
		{"ACL", "SETUSER", "narrow", "on", ">hush-hush", "~1_*", "+@all"},
	} {
		if err := client.Do(t.Context(), acl...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	cluster := testkit.StartRedis(t, servers.RedisOptions{Cluster: true})
	host, port, _ := net.SplitHostPort(server.Addr())
	replica := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--replicaof", host, port}})
	for name, c := range map[string]struct {
		url, mode string
		want      map[string]string
	}{
		"evicts":        {"redis://" + server.Addr(), "single", map[string]string{"redis-eviction": "fail: allkeys-lru"}},
		"bad password":  {"redis://reader:hush-wrong@" + server.Addr(), "single", map[string]string{"redis": "fail: refuses the user or the password", "redis-acl": "skip: redis failed"}},
		"ACL":           {"redis://reader:hush-hush@" + server.Addr(), "single", map[string]string{"redis": "ok", "redis-acl": "fail: serve needs ZSCAN, HGETALL"}},
		"ACL, tried":    {"redis://old:hush-hush@" + server.Addr(), "single", map[string]string{"redis": "ok", "redis-acl": "fail: serve needs ZREVRANK"}},
		"no INFO":       {"redis://blind:hush-hush@" + server.Addr(), "single", map[string]string{"redis-acl": `warn: user "blind" may not use INFO`}},
		"ACL of keys":   {"redis://narrow:hush-hush@" + server.Addr(), "single", map[string]string{"redis-acl": "fail: serve needs ZCARD"}},
		"no cluster":    {"redis://" + server.Addr(), "cluster", map[string]string{"redis": "fail: use --redis-mode single"}},
		"a cluster":     {"redis://" + cluster.Addr(), "single", map[string]string{"redis-mode": "fail: use --redis-mode cluster"}},
		"a replica":     {"redis://" + replica.Addr(), "single", map[string]string{"redis": "fail: replica of " + server.Addr()}},
		"no TLS":        {"rediss://" + server.Addr(), "single", map[string]string{"redis": "fail: "}},
		"no server":     {"redis://127.0.0.1:1", "single", map[string]string{"redis": "fail: nothing listens on that address", "memory": "skip"}},
		"no such host":  {"redis://nowhere.invalid:6379", "single", map[string]string{"redis": "fail: "}},
		"a black hole":  {"redis://" + silence(t), "single", map[string]string{"redis": "fail: no answer in time"}},
		"not this user": {"redis://nobody:hush-hush@" + server.Addr(), "single", map[string]string{"redis": "fail: refuses the user or the password"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a Kafka that is not there
			found, code, text := examine(t, "--redis", c.url, "--redis-mode", c.mode, "--kafka", "127.0.0.1:1", "--timeout", "1s", "--for", "serve,write")
			for check, want := range c.want {
				expect(t, found, check, want)
			}
			if code != cli.ExitFailed {
				t.Errorf("exit code %d", code)
			}
			if strings.Contains(text, "hush") {
				t.Errorf("a password is shown: %s", text)
			}
		})
	}
}

// A Redis that refuses the password is the one failure: what takes Redis is not checked, whatever else it takes.
func TestDoctorTellsAWrongPasswordOnce(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--requirepass", "hush-right"}})
	found, code, text := examine(t, "--redis", "redis://:hush-wrong@"+server.Addr(), "--kafka", testkit.Kafka(t), "--rooms", superHotRooms(t, testkit.Name(t)),
		"--for", "serve,write,poll,controller", "--profile-redis-key", "profile:<member>")
	expect(t, found, "redis", "fail: refuses the user or the password")
	expect(t, found, "kafka", "ok")
	for _, check := range []string{"redis-mode", "redis-role", "redis-acl", "redis-eviction", "redis-clock", "boards", "expiry", "kafka-topics", "kafka-retention",
		"kafka-replicas", "kafka-sizes", "kafka-clock", "kafka-commands", "kafka-durable", "profiles", "memory"} {
		expect(t, found, check, "skip: not checked: redis failed")
	}
	if n := strings.Count(text, `"fail"`); n != 1 || code != cli.ExitFailed {
		t.Errorf("%d failures, exit code %d: %s", n, code, text)
	}
}

// A command that the server does not have is no matter of an ACL.
func TestDoctorNamesCommandsThatRedisLacks(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--rename-command", "EVAL", "hidden"}})
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	must(t, client.Do(t.Context(), "ACL", "SETUSER", "old", "on", ">hush", "~*", "+@all", "-@admin").Err()) // no ACL DRYRUN
	for _, user := range []string{"", "old:hush@"} {
		found, _, _ := examine(t, "--redis", "redis://"+user+server.Addr(), "--kafka", testkit.Kafka(t), "--key-rooms", testkit.Name(t))
		expect(t, found, "redis-acl", "fail: this Redis has no EVAL, which serve needs: it is renamed or disabled (rename-command)")
		if f := found["redis-acl"]; strings.Contains(f.Advice, "ACL") {
			t.Errorf("no ACL would help: %s", f.Advice)
		}
	}
}

// silence returns an address that accepts connections and never answers.
func silence(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

func TestDoctorOnKafka(t *testing.T) {
	t.Parallel()
	brokers, cache := testkit.RealKafka(t), "redis://"+testkit.Redis(t)
	kept, short, cut, missing := testkit.Name(t), testkit.Name(t), testkit.Name(t), testkit.Name(t)
	testkit.CreateTopic(t, brokers, "update_cache_"+kept, 1, map[string]string{"cleanup.policy": "compact"})
	testkit.CreateTopic(t, brokers, "update_cache_"+short, 1, map[string]string{"retention.ms": "3600000"})
	testkit.CreateTopic(t, brokers, "update_cache_"+cut, 1, map[string]string{"retention.ms": "-1", "min.insync.replicas": "2"})
	testkit.Produce(t, brokers, &kgo.Record{Topic: "update_cache_" + short, Value: []byte("x"), Timestamp: time.Now().Add(30 * time.Minute)})
	cutLog(t, brokers, "update_cache_"+cut)
	key := testkit.Name(t)
	at := func(more ...string) (map[string]doctor.Finding, int) {
		found, code, _ := examine(t, append([]string{"--redis", cache, "--kafka", brokers, "--key-rooms", key}, more...)...)
		return found, code
	}
	found, code := at("--rooms", superHotRooms(t, kept, short, missing))
	expect(t, found, "kafka-topics", "warn: 1 of 3 super-hot boards have no update topic: "+missing)
	expect(t, found, "kafka-retention", "warn: will be truncated by age or size: "+short)
	expect(t, found, "kafka-clock", "warn: of board "+short)
	if code != cli.ExitOK {
		t.Errorf("warnings end with exit code %d", code)
	}
	found, code = at("--rooms", superHotRooms(t, kept, cut))
	expect(t, found, "kafka-retention", "warn: lost their beginning: "+cut)
	expect(t, found, "kafka-replicas", "fail: nothing can be produced: "+cut)
	if code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	inClass := filepath.Join(t.TempDir(), "classes.yaml")
	class := "c" + strings.ToLower(testkit.Name(t)[len(testkit.Name(t))-8:])
	must(t, os.WriteFile(inClass, fmt.Appendf(nil, `classes: [{name: %s, board: "%s:{zone}:{period}", period: 30m, lead: 0s, grace: 0s, linger: 0s, mode: super-hot, dims: {zone: ["1", "2"]}}]`, class, class), 0o644))
	found, _ = at("--rooms", inClass)
	expect(t, found, "kafka-topics", "warn: 2 of 2 super-hot boards have no update topic")
	for _, day := range []time.Time{time.Now().UTC(), time.Now().UTC().AddDate(0, 0, 1)} {
		testkit.CreateTopic(t, brokers, "update_class_"+class+"."+day.Format("20060102"), 4, nil)
	}
	found, _ = at("--rooms", inClass)
	expect(t, found, "kafka-topics", "ok")
	wide := testkit.Name(t)
	testkit.CreateTopic(t, brokers, "update_cache_"+wide, 3, nil)
	found, code = at("--rooms", superHotRooms(t, kept, wide))
	expect(t, found, "kafka-topics", "fail: update_cache_"+wide+" (3): Redis answers such boards; delete the topics")
	if code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	found, _ = at("--rooms", superHotRooms(t, cut), "--total", "none")
	expect(t, found, "kafka-retention", "fail: never open")
	found, _ = at("--kafka", silence(t), "--timeout", "1s")
	expect(t, found, "kafka", "fail: no answer in time")
}

// A Kafka that does not tell the settings of its topics is neither a failure nor fine.
func TestDoctorThatCannotLook(t *testing.T) {
	t.Parallel()
	broker, board := testkit.Kfake(t), testkit.Name(t)
	testkit.CreateTopic(t, broker.Addr(), "update_cache_"+board, 1, nil)
	broker.ControlKey(int16(kmsg.DescribeConfigs), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		return nil, errors.New("cut"), true
	})
	found, code, text := examine(t, "--redis", "redis://"+testkit.Redis(t), "--kafka", broker.Addr(), "--rooms", superHotRooms(t, board), "--key-rooms", testkit.Name(t), "--timeout", "2s")
	expect(t, found, "kafka", "ok: ")
	for _, check := range []string{"kafka-topics", "kafka-retention", "kafka-replicas", "kafka-sizes", "kafka-clock"} {
		expect(t, found, check, "unknown: can't look: ")
	}
	if code != cli.ExitUnasked || strings.Contains(text, `"unknown": 0`) {
		t.Errorf("exit code %d: %s", code, text)
	}
}

// Classes set at run time have topics, and commands that can be late, as those of the file.
func TestDoctorKnowsClassesSetAtRunTime(t *testing.T) {
	t.Parallel()
	brokers, key, commands := testkit.Kafka(t), testkit.Name(t), testkit.Name(t)
	class := "c" + strings.ToLower(key[len(key)-8:])
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t)})
	defer client.Close()
	at := func() map[string]doctor.Finding {
		found, _, _ := examine(t, "--redis", "redis://"+testkit.Redis(t), "--kafka", brokers, "--key-rooms", key, "--topic-commands", commands)
		return found
	}
	testkit.CreateTopic(t, brokers, commands, 1, nil)
	expect(t, at(), "kafka-commands", "ok: no class has periods")
	expect(t, at(), "kafka-durable", "ok: no class is durable")
	document := fmt.Sprintf(`classes: [{name: %s, board: "%s:{zone}:{period}", period: 30m, lead: 0s, grace: 0s, linger: 0s, mode: super-hot, dims: {zone: ["1"]}}]`, class, class)
	must(t, client.HSet(t.Context(), key, rooms.ClassesField, document).Err())
	for _, day := range []time.Time{time.Now().UTC(), time.Now().UTC().AddDate(0, 0, 1)} {
		testkit.CreateTopic(t, brokers, "update_class_"+class+"."+day.Format("20060102"), 4, nil)
	}
	found := at()
	expect(t, found, "kafka-topics", "ok: each of 1")
	expect(t, found, "kafka-commands", "warn: message.timestamp.type=CreateTime")
	must(t, client.HSet(t.Context(), key, rooms.ClassesField, fmt.Sprintf(`classes: [{name: %s, board: %s, period: none, durable: true, orders: 720h}]`, class, class)).Err())
	expect(t, at(), "kafka-durable", "fail: writers refuse posts of durable classes: set on topic "+commands+": message.timestamp.type=LogAppendTime (it is CreateTime), retention.ms=5184000000")
}

// Boards without a period are reported while they have an expiry.
func TestDoctorTellsWhenBoardsExpire(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t)})
	defer client.Close()
	names, board := wire.DefaultNames(), rankcache.BoardID(testkit.Name(t))
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	for _, c := range []struct {
		expires uint64
		keep    string
		want    string
	}{
		{0, "", "ok: 1 super-hot boards without a period, none expires"},
		{1_900_000_000_000, "", "warn: the first " + string(board) + " at 2030-03-17T17:46:40Z, unless they are changed: for 1 no class sets a keep"},
		{1_900_000_000_000, "keep: 9h", "ok: the first " + string(board) + " at 2030-03-17T17:46:40Z, unless they are changed: their classes have a keep"},
	} {
		must(t, client.Set(t.Context(), names.MetaKey(board), wire.AppendMeta(nil, &wire.Meta{State: rankcache.State{Run: 1}, Expires: c.expires, Buckets: 1}), time.Hour).Err())
		text := fmt.Sprintf("boards: [{match: %q, mode: super-hot}]\n", board)
		if c.keep != "" {
			text += fmt.Sprintf("classes: [{name: x, board: %q, period: none, %s}]\n", board, c.keep)
		}
		must(t, os.WriteFile(file, []byte(text), 0o644))
		found, _, _ := examine(t, "--redis", "redis://"+testkit.Redis(t), "--kafka", "127.0.0.1:1", "--timeout", "1s", "--key-rooms", testkit.Name(t), "--rooms", file)
		expect(t, found, "expiry", c.want)
	}
}

// cutLog writes a record and takes it away again, as retention would.
func cutLog(t *testing.T, brokers, topic string) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cl := testkit.KafkaClient(t, brokers, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Offset = 1
	of := kmsg.NewDeleteRecordsRequestTopic()
	of.Topic, of.Partitions = topic, append(of.Partitions, part)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics, req.TimeoutMillis = append(req.Topics, of), 10_000
	resp, err := req.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("delete records of %s: %v", topic, err)
	}
}

func TestDoctorRefusesWrongSettings(t *testing.T) {
	for _, args := range [][]string{{"--for", "everything"}, {"--timeout", "0"}, {"--total", "sum"}, {"--kafka", "127.0.0.1:1", "--kafka.no.such=1"}} {
		var out bytes.Buffer
		if err := cli.Run(t.Context(), NewCommand(), append([]string{"doctor"}, args...), &out, &out); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%v: %v, want a usage error", args, err)
		}
	}
}

func TestDoctorSeesTheSidecarBehindTakenPorts(t *testing.T) {
	t.Parallel()
	taken := silence(t)
	found, _, _ := examine(t, "--redis", "redis://127.0.0.1:1", "--kafka", "127.0.0.1:1", "--timeout", "1s", "--data", taken)
	expect(t, found, "ports", "fail: --data")
	found, _, _ = examine(t, "--redis", "redis://127.0.0.1:1", "--kafka", "127.0.0.1:1", "--timeout", "1s", "--rooms", "/nowhere/rooms.yaml")
	expect(t, found, "rooms", "fail: --rooms")
}

// The profile service, the collector and the folders are tried as serve uses them.
func TestDoctorOnServicesAndFolders(t *testing.T) {
	t.Parallel()
	var asked atomic.Pointer[string]
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/traces":
			text := r.Method + " " + r.Header.Get("Content-Type")
			asked.Store(&text)
		case r.Header.Get("Authorization") == "Bearer hush-hush":
			fmt.Fprint(w, `{"profiles":{}}`)
		case r.URL.Path == reads.Path:
			fmt.Fprint(w, `{"age_ms":5}`)
		case r.URL.Path == "/old"+reads.Path:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer service.Close()
	dir := t.TempDir()
	at := func(more ...string) map[string]doctor.Finding {
		found, _, text := examine(t, append([]string{"--redis", "redis://127.0.0.1:1", "--kafka", "127.0.0.1:1", "--timeout", "1s"}, more...)...)
		if strings.Contains(text, "hush") {
			t.Errorf("a secret is printed: %s", text)
		}
		return found
	}
	found := at("--profile-url", service.URL+"/hush", "--profile-header", "Authorization: Bearer hush-hush", "--otlp-endpoint", service.URL,
		"--snapshot-dir", dir+"/boards", "--socket", dir+"/data.sock", "--ledger-url", service.URL)
	for check, want := range map[string]string{"profiles": "ok: answered in", "ledger-reads": "ok: answered in", "traces": "ok: answered in", "snapshots": "ok: can be created in " + dir, "socket": "ok"} {
		expect(t, found, check, want)
	}
	if got := asked.Load(); got == nil || *got != "POST application/x-protobuf" {
		t.Error("the collector got no traces")
	}
	found = at("--profile-url", service.URL+"/hush", "--profile-header", "Authorization: Bearer hush-wrong", "--otlp-endpoint", "http://127.0.0.1:1",
		"--snapshot-dir", "/dev/null/boards", "--socket", dir+"/none/data.sock", "--ledger-url", service.URL+"/old")
	for check, want := range map[string]string{"profiles": "fail: check its credentials", "traces": "fail: nothing listens on that address",
		"ledger-reads": "fail: the ledger does not serve reads", "snapshots": "fail: --snapshot-dir", "socket": "fail: --socket: the folder does not exist"} {
		expect(t, found, check, want)
	}
	found = at()
	for _, check := range []string{"profiles", "traces", "ledger-reads", "snapshots", "socket"} {
		if f, made := found[check]; made {
			t.Errorf("%s is checked without its setting: %+v", check, f)
		}
	}
}
