package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// needy starts one of the long-running processes with names of its own, against these servers; later arguments win.
func needy(t *testing.T, command, redisURL, kafka string, more ...string) *child {
	t.Helper()
	name := testkit.Name(t)
	name = command + name[strings.LastIndexByte(name, '-'):] // short enough for a prefix
	args := []string{command, "--redis", redisURL, "--redis-timeout", "2s", "--kafka", kafka, "--topic-commands", name + "_commands", "--topic-ledger", name + "_ledger",
		"--topic-refused", name + "_refused", "--topic-updates", name + "_", "--key-rooms", name + ":rooms", "--" + probedPort(command), "127.0.0.1:0"}
	switch command {
	case "serve":
		args = append(args, "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--hot-source", "none")
	case "write":
		args = append(args, "--scores", "127.0.0.1:0", "--group", name, "--command-partitions", "1")
	case "ledger":
		args = append(args, "--database", testkit.Database(t, testkit.SQLKinds[0]), "--ledger-group", name)
	case "controller":
		args = append(args, "--key-controller", name+":lease", "--key-ends", name+":ends", "--group", name, "--topic-keep", "0")
	case "reconcile":
		database := testkit.Database(t, testkit.SQLKinds[0])
		must(t, cli.Run(t.Context(), NewCommand(), []string{"ledger", "migrate", "--database", database}, io.Discard, io.Discard))
		query := filepath.Join(t.TempDir(), "books.sql")
		must(t, os.WriteFile(query, []byte("SELECT '' AS order_id, '' AS board, '' AS member, '' AS op, 0 AS number, 0 AS at WHERE $1::bigint < $2::bigint"), 0o600))
		args = append(args, "--database", database, "--books", database, "--books-query-file", query, "--group", name)
	case "keep":
		args = append(args, "--hot-instance", name)
	case "poll":
		args = append(args, "--hot-source", "redis", "--hot-instance", name)
	}
	return startListening(t, append(args, more...)...)
}

// probe returns code and reason of the readiness probe.
func (c *child) probe(command string) (code int, reason string) {
	c.t.Helper()
	code, body := c.Get(probedPort(command), "/readyz")
	var probe struct{ Reason string }
	if err := json.Unmarshal([]byte(body), &probe); err != nil {
		c.t.Fatalf("/readyz: %v: %s", err, body)
	}
	return code, probe.Reason
}

// unready waits until the probe fails for a reason that has a text, in which no secret is.
func (c *child) unready(command, want string) {
	c.t.Helper()
	testkit.Eventually(c.t, 15*time.Second, func() error {
		code, reason := c.probe(command)
		if strings.Contains(reason, urlSecret) {
			c.t.Fatalf("a secret is told: %s", reason)
		}
		if code != http.StatusServiceUnavailable || !strings.Contains(reason, want) {
			return fmt.Errorf("%s: readiness is %d %q, want 503 with %q", command, code, reason, want)
		}
		return nil
	})
	if _, status := c.Get(probedPort(command), "/status"); command != "serve" && !strings.Contains(status, want) {
		c.t.Errorf("%s: the status does not tell %q: %s", command, want, status)
	}
}

// staysUnready is unready, and for a sidecar so also once its board is given up.
func (c *child) staysUnready(command, want string) {
	c.t.Helper()
	c.unready(command, want)
	if command != "serve" {
		return
	}
	testkit.Eventually(c.t, 30*time.Second, func() error {
		_, body := c.Get("health", "/readyz")
		return contains(body, `"state":"given-up"`)
	})
	c.unready(command, "kafka: ")
	if code, reason := c.probe(command); code != http.StatusServiceUnavailable {
		c.t.Errorf("a board is given up, and the sidecar ready: %s", reason)
	}
}

// becomesReady waits until the probe passes.
func (c *child) becomesReady(command string) {
	c.t.Helper()
	testkit.Eventually(c.t, 30*time.Second, func() error {
		if code, reason := c.probe(command); code != http.StatusOK {
			return fmt.Errorf("%s: %d %s", command, code, reason)
		}
		return nil
	})
}

// each runs a test for each of the processes at the same time.
func each(t *testing.T, commands []string, test func(t *testing.T, command string)) {
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			test(t, command)
		})
	}
}

var needRedis, needKafka = []string{"serve", "keep", "write", "controller", "poll", "reconcile"}, []string{"write", "ledger", "controller", "reconcile"}

// Redis refuses the password, and takes it later: then all are ready.
func TestNotReadyWithAWrongPassword(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { admin.Close() })
	each(t, needRedis, func(t *testing.T, command string) {
		user := "app-" + command
		rules := []any{"ACL", "SETUSER", user, "on", "~*", "&*", "+@all"}
		must(t, admin.Do(t.Context(), append(rules, ">right")...).Err())
		c := needy(t, command, "redis://"+user+":"+urlSecret+"@"+server.Addr(), testkit.Kafka(t))
		c.unready(command, "WRONGPASS")
		must(t, admin.Do(t.Context(), append(rules, ">"+urlSecret)...).Err())
		c.becomesReady(command)
	})
}

// The address is that of a replica.
func TestNotReadyOnAReplica(t *testing.T) {
	t.Parallel()
	_, port, _ := strings.Cut(testkit.Redis(t), ":")
	replica := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--replicaof", "127.0.0.1", port}})
	each(t, needRedis, func(t *testing.T, command string) {
		needy(t, command, "redis://"+replica.Addr(), testkit.Kafka(t)).unready(command, "no master but a replica")
	})
}

// Nothing listens there.
func TestNotReadyWithoutRedis(t *testing.T) {
	t.Parallel()
	each(t, needRedis, func(t *testing.T, command string) {
		needy(t, command, "redis://"+freeAddr(t), testkit.Kafka(t)).unready(command, "connection refused")
	})
}

// The user may log in and read everything, and that is not enough.
func TestNotReadyWithoutRightsInRedis(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { admin.Close() })
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">"+urlSecret, "~*", "+@read", "+@connection", "+role", "+info", "+time").Err())
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "nobody", "on", ">"+urlSecret, "~other:*", "+@all").Err())
	each(t, needRedis, func(t *testing.T, command string) {
		user := "nobody" // for a reader it is enough to read
		if command == "write" || command == "controller" || command == "poll" || command == "keep" {
			user = "reader"
		}
		needy(t, command, "redis://"+user+":"+urlSecret+"@"+server.Addr(), testkit.Kafka(t)).unready(command, "NOPERM")
	})
}

// Without INFO all are ready but for what needs it, say so once, and refuse durable classes by name; doctor names the user.
func TestReadyWithoutInfo(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { admin.Close() })
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "blind", "on", ">"+urlSecret, "~*", "+@all", "-info", "-acl").Err())
	url := "redis://blind:" + urlSecret + "@" + server.Addr()
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(file, []byte(`classes:
- {name: plain, board: "plain:{period}", period: day}
- {name: gift, board: "gift:{period}", period: day, durable: true}
`), 0o600))
	each(t, []string{"serve", "keep", "write", "controller"}, func(t *testing.T, command string) {
		c := needy(t, command, url, testkit.Kafka(t), "--rooms", file)
		c.becomesReady(command)
		testkit.Eventually(t, 10*time.Second, func() error {
			if n := strings.Count(c.Log(), "Redis refuses INFO"); n != 1 {
				return fmt.Errorf("said %d times", n)
			}
			return nil
		})
		if command != "write" {
			return
		}
		testkit.Eventually(t, 10*time.Second, func() error {
			return c.posts("gift", http.StatusServiceUnavailable, "class gift: history of a server of Redis: NOPERM")
		})
		testkit.Eventually(t, 10*time.Second, func() error { return c.posts("plain", http.StatusOK, "") })
		if code, reason := c.probe(command); code != http.StatusOK || !strings.Contains(reason, "durable") {
			t.Errorf("beside refused posts the writer is %d %q", code, reason)
		}
	})
	found, code, _ := examine(t, "--redis", url, "--key-rooms", testkit.Name(t))
	if expect(t, found, "redis-acl", `warn: user "blind" may not use INFO`); code != 0 {
		t.Error("doctor:", code)
	}
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", "-acl", "-info").Err())
	found, _, _ = examine(t, "--redis", "redis://"+server.Addr(), "--key-rooms", testkit.Name(t))
	expect(t, found, "redis-acl", `warn: user "default" may not use INFO`)
}

// posts returns whether a post to a class is answered with a status and a text.
func (c *child) posts(class string, status int, want string) error {
	body := fmt.Sprintf(`{"order":"o","class":%q,"member":"m","op":"incr","delta":1}`, class)
	resp, err := http.Post(c.URL("scores", "/v1/scores"), "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != status || !strings.Contains(string(text), want)) {
		err = fmt.Errorf("%s %s, want %d with %q", resp.Status, text, status, want)
	}
	return err
}

// A command is renamed or disabled.
func TestNotReadyWithoutACommandOfRedis(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--rename-command", "EVAL", "", "--rename-command", "HGET", ""}})
	each(t, []string{"keep", "write", "controller", "poll"}, func(t *testing.T, command string) {
		needy(t, command, "redis://"+server.Addr(), testkit.Kafka(t)).unready(command, "unknown command")
	})
}

// Behind PgBouncer in transaction mode the tables can't be made; the ledger is ready once they were made at the server itself.
func TestLedgerBehindPgBouncer(t *testing.T) {
	t.Parallel()
	database := testkit.Database(t, "postgres")
	c := needy(t, "ledger", "redis://"+testkit.Redis(t), testkit.Kafka(t), "--serve-reads", "--database", testkit.PooledDatabase(t, database))
	c.unready("ledger", "a pooler stands before the database")
	must(t, cli.Run(t.Context(), NewCommand(), []string{"ledger", "migrate", "--serve-reads", "--database", database}, io.Discard, io.Discard))
	c.becomesReady("ledger")
}

// A database that answers and takes no writes, as a replica after a failover.
func TestNotReadyWithAReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	database := testkit.Database(t, "postgres")
	must(t, cli.Run(t.Context(), NewCommand(), []string{"ledger", "migrate", "--database", database}, io.Discard, io.Discard))
	needy(t, "ledger", "redis://"+testkit.Redis(t), testkit.Kafka(t), "--database", database+"?default_transaction_read_only=on").unready("ledger", "read-only transaction")
}

// Orders can't be compared with books that do not answer, do not know the user, or have another table.
func TestNotReadyWithoutBooks(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, "postgres")
	other := filepath.Join(t.TempDir(), "other.sql")
	must(t, os.WriteFile(other, []byte("SELECT * FROM gifts WHERE at >= $1 AND at < $2"), 0o600))
	for name, fault := range map[string]struct{ flag, value, want string }{
		"closed": {"--books", "postgres://u:" + urlSecret + "@" + freeAddr(t) + "/d", "connection refused"},
		"query":  {"--books-query-file", other, "does not exist"},
		"tables": {"--database", url, "run rankcache ledger migrate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needy(t, "reconcile", "redis://"+testkit.Redis(t), testkit.Kafka(t), fault.flag, fault.value).unready("reconcile", fault.want)
		})
	}
}

// Nothing listens there. A sidecar needs Kafka for super-hot boards alone, and gives them up to Redis.
func TestNotReadyWithoutKafka(t *testing.T) {
	t.Parallel()
	each(t, needKafka, func(t *testing.T, command string) {
		needy(t, command, "redis://"+testkit.Redis(t), freeAddr(t)).unready(command, "Connection refused")
	})
}

// saslArgs log in as app.
func saslArgs(password string) []string {
	return []string{"--kafka.security.protocol=sasl_plaintext", "--kafka.sasl.mechanism=PLAIN", "--kafka.sasl.username=app", "--kafka.sasl.password=" + password}
}

// The broker refuses the password; a sidecar with a super-hot board doesn't give it up to Redis then.
func TestNotReadyWithAWrongPasswordOfKafka(t *testing.T) {
	t.Parallel()
	broker, _ := startSASL(t, 0, "right")
	each(t, append(needKafka, "serve"), func(t *testing.T, command string) {
		args := saslArgs(urlSecret)
		if command == "serve" {
			args = append(args, "--rooms", superHotRooms(t, testkit.Name(t)), "--give-up-after", "8s")
		}
		needy(t, command, "redis://"+testkit.Redis(t), broker.Addr(), args...).staysUnready(command, "uthentication")
	})
}

// The user may log in and nothing else.
func TestNotReadyWithoutRightsInKafka(t *testing.T) {
	t.Parallel()
	broker, err := servers.StartKfake(kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "app", urlSecret))
	must(t, err)
	t.Cleanup(broker.Close)
	each(t, append(needKafka, "serve"), func(t *testing.T, command string) {
		args := saslArgs(urlSecret)
		if command == "serve" {
			args = append(args, "--rooms", superHotRooms(t, testkit.Name(t)), "--give-up-after", "8s")
		}
		needy(t, command, "redis://"+testkit.Redis(t), broker.Addr(), args...).staysUnready(command, "uthorization failed")
	})
}

// The writer may read commands, but make no topic for updates.
func TestNotReadyWithoutTheRightToMakeTopics(t *testing.T) {
	t.Parallel()
	any := func(kind kmsg.ACLResourceType, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kind, Name: "*", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	broker, err := servers.StartKfake(kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"),
		kfake.User("PLAIN", "app", urlSecret, any(kmsg.ACLResourceTypeTopic, kmsg.ACLOperationRead), any(kmsg.ACLResourceTypeTopic, kmsg.ACLOperationWrite),
			any(kmsg.ACLResourceTypeTopic, kmsg.ACLOperationDescribe), any(kmsg.ACLResourceTypeGroup, kmsg.ACLOperationAll)))
	must(t, err)
	t.Cleanup(broker.Close)
	w := needy(t, "write", "redis://"+testkit.Redis(t), broker.Addr(), append(saslArgs(urlSecret), "--command-partitions", "0")...)
	w.unready("write", "uthorization failed")
}

// No server is at the address, or it has no such user.
func TestNotReadyWithoutDatabase(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, testkit.SQLKinds[0])
	_, rest, _ := strings.Cut(url, "@")
	addr, _, _ := strings.Cut(rest, "/")
	if addr == "" {
		t.Fatalf("no address in %q", url)
	}
	for name, fault := range map[string]struct{ database, want string }{
		"closed": {"postgres://u:" + urlSecret + "@" + freeAddr(t) + "/d", "connection refused"},
		"login":  {"postgres://nobody:" + urlSecret + "@" + addr + "/d", "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, []string{"ledger", "controller", "reconcile"}, func(t *testing.T, command string) {
				needy(t, command, "redis://"+testkit.Redis(t), testkit.Kafka(t), "--database", fault.database).unready(command, fault.want)
			})
		})
	}
}

// With all there, all are ready, also where a key of another type is in the place of the rooms set at run time.
func TestReadyWithAllThere(t *testing.T) {
	t.Parallel()
	each(t, append(needRedis, "ledger"), func(t *testing.T, command string) {
		key := testkit.Name(t)
		client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t)})
		defer client.Close()
		must(t, client.Set(t.Context(), key, "no hash", time.Hour).Err())
		needy(t, command, "redis://"+testkit.Redis(t), testkit.Kafka(t), "--key-rooms", key).becomesReady(command)
	})
}

// A rooms file that is not there ends the process, which tells which file and what to check.
func TestNotReadyWithoutRoomsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	each(t, []string{"serve", "write", "controller"}, func(t *testing.T, command string) {
		c := startChild(t, command, "--kafka", "127.0.0.1:1", "--rooms", file, "--health", "127.0.0.1:0")
		if code := c.Wait(20 * time.Second); code != cli.ExitUsage {
			t.Errorf("ended with %d", code)
		}
		for _, want := range []string{file, "check --rooms", "no such file"} {
			if !strings.Contains(c.Log(), want) {
				t.Errorf("%q is not in %s", want, c.Log())
			}
		}
	})
}
