package app

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/doctor"
	"rankcache/internal/lab/servers"
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
