package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/doctor"
	"rankcache/internal/lab/servers"
	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// What doctor asks for must be all that serve and write need: with just these
// commands granted, they do their work and Redis refuses nothing.
func TestCommandsThatDoctorWantsAreEnough(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer admin.Close()
	defer tellRefused(t, admin)
	needs := doctor.Redis{Names: wire.DefaultNames(), Total: "seq"}
	for _, role := range []string{"serve", "write", "controller"} {
		user := []any{"ACL", "SETUSER", role, "on", ">secret", "~*", "-@all", "+ping", "+exec", "+role"}
		for _, command := range needs.Needs(role) {
			user = append(user, "+"+command)
		}
		if err := admin.Do(t.Context(), user...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	board := testkit.Name(t)
	args := func(role string) []string {
		return []string{role, "--redis", "redis://" + role + ":secret@" + server.Addr(), "--kafka", testkit.Kafka(t), "--rooms", superHotRooms(t, board),
			"--topic-commands", board + "_commands", "--redis-timeout", "2s", "--health", "127.0.0.1:0"}
	}
	h := &fixture{star: rankcache.BoardID(board), writer: startListening(t, append(args("write"), "--scores", "127.0.0.1:0", "--command-partitions", "1", "--group", board)...)}
	h.give(t, h.star, 3)
	s := startListening(t, append(args("serve"), "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--hot-source", "none", "--audit-every", "100ms")...)
	s.WaitReady(time.Minute)
	index := h.star + "-ends"
	must(t, admin.ZAdd(t.Context(), string(index), redis.Z{Score: 1, Member: board}).Err()) // its meta has no end
	startListening(t, append(args("controller"), "--key-ends", string(index), "--group", board)...)
	testkit.Eventually(t, time.Minute, func() error {
		if admin.Exists(t.Context(), string(index)).Val() != 0 {
			return errors.New("the controller has not looked at the board")
		}
		return nil
	})
	for path, want := range map[string]int{
		"/v1/boards/" + board + "/top?start=0": http.StatusOK, "/v1/boards/" + board + "/members/m1?around=2": http.StatusOK,
		"/v1/boards/small/top": http.StatusOK, "/v1/boards/small/top?order=asc&start=900": http.StatusOK,
		"/v1/boards/small/members/m1": http.StatusNotFound, "/v1/boards/small/members/m1?around=2&order=asc": http.StatusNotFound,
	} {
		if code, body := s.Get("data", path); code != want {
			t.Errorf("%s answers %d %s", path, code, body)
		}
	}
}

// tellRefused fails the test for each command that Redis refused.
func tellRefused(t *testing.T, admin *redis.Client) {
	refused, err := admin.ACLLog(context.Background(), 10).Result()
	if err != nil {
		t.Error(err)
	}
	for _, r := range refused {
		t.Errorf("Redis refused user %s: %s %s in %s", r.Username, r.Reason, r.Object, r.Context)
	}
}

// The same of the ledger that rebuilds what Redis has lost. Doctor tells which right is missing.
func TestRightsOfALedger(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer admin.Close()
	grant := func(role string, more ...any) {
		t.Helper()
		user := []any{"ACL", "SETUSER", role, "on", ">secret", "~*", "-@all", "+ping", "+exec", "+role"}
		for _, command := range (doctor.Redis{Names: wire.DefaultNames(), Total: "seq"}).Needs(role) {
			user = append(user, "+"+command)
		}
		must(t, admin.Do(t.Context(), append(user, more...)...).Err())
	}
	grant("write")
	grant("ledger")
	name := testkit.Name(t)
	h := &fixture{rooms: t.TempDir() + "/rooms.yaml"}
	h.writeRooms(t, fmt.Sprintf("classes:\n- {name: day, board: %q, period: day, keep: 1h, ops: [incr], ledger: true, trim: 2}\n- {name: ever, board: %q, period: none, ledger: true}\n", name+"-day:{zone}:{period}", name+"-ever:{zone}"))
	args := func(role string, more ...string) []string {
		return append([]string{role, "--redis", "redis://" + role + ":secret@" + server.Addr(), "--kafka", testkit.Kafka(t), "--rooms", h.rooms,
			"--topic-commands", name, "--topic-ledger", name + "-ledger", "--redis-timeout", "2s"}, more...)
	}
	h.writer = startListening(t, args("write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--command-partitions", "1", "--group", name)...)
	l := startListening(t, args("ledger", "--http", "127.0.0.1:0", "--database", testkit.Database(t, testkit.SQLKinds[0]), "--ledger-group", name)...)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	kafka, hash := testkit.KafkaClient(t, testkit.Kafka(t)), wire.DefaultNames()
	hash.Commands = name
	give := func(order string) {
		t.Helper()
		for _, class := range []string{"day", "ever"} {
			for member := range 3 {
				h.await(t, fmt.Sprintf(`{"order":"%s-%d","class":%q,"dims":{"zone":"1"},"member":"m%d","op":"incr","delta":%d}`, order, member, class, member, member+1))
			}
		}
	}
	give("first")
	testkit.Eventually(t, time.Minute, func() error {
		_, body := l.Get("http", "/status")
		at, _ := wire.ParsePosition(client.HGet(t.Context(), hash.AppliedKey(masters.Tag(0)), "0").Val())
		committed, err := testkit.Committed(t.Context(), kafka, name, name, 1) // with the note that there are positions
		if err == nil && (at.Next < 6 || committed < 6) {
			err = fmt.Errorf("position %+v, %d committed", at, committed)
		}
		return errors.Join(err, contains(body, `"behind":0,"rows":7,`)) // with a trim
	})
	must(t, client.FlushAll(t.Context()).Err())
	testkit.Eventually(t, time.Minute, func() error {
		_, body := l.Get("http", "/status")
		return contains(body, `"rebuilt":2`)
	})
	give("then")
	if score := client.ZScore(t.Context(), name+"-ever:1", "m2").Val(); score != 6 {
		t.Errorf("%v points, want 6", score)
	}
	tellRefused(t, admin)
	grant("ledger", "-hvals")
	for _, f := range (doctor.Redis{Client: redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "ledger", Password: "secret"}), Names: hash, Roles: []string{"ledger"}}).Checks() {
		if v := f.Look(t.Context()); f.Name == "redis-acl" && !strings.Contains(v.Advice, "ledger needs HVALS") {
			t.Errorf("doctor says %+v", v)
		}
	}
}

// await posts until it is answered with 200.
func (h *fixture) await(t *testing.T, command string) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		if answer := postOrder(t, h, command); !strings.Contains(answer, `"order"`) || strings.Contains(answer, `"status"`) {
			return errors.New(answer)
		}
		return nil
	})
}

// A sidecar with --write needs the rights of a writer, too.
func TestRightsOfASidecarThatWrites(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer admin.Close()
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all", "-xadd").Err(); err != nil {
		t.Fatal(err)
	}
	args := []string{"--redis", "redis://reader:secret@" + server.Addr(), "--log", "redis"}
	found, _, _ := examine(t, args...)
	expect(t, found, "redis-acl", "ok: ")
	found, _, _ = examine(t, append(args, "--write")...)
	expect(t, found, "redis-acl", "fail: write needs XADD")
}
