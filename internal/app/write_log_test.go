package app

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/doctor"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// A writer with its log in Redis needs no Kafka: with the rights that doctor asks for it is ready, answers posts, has them
// in the stream and looks after its size; it complains of nothing.
func TestWriteWithLogInRedis(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = admin.Close() })
	user := []any{"ACL", "SETUSER", "write", "on", ">secret", "~*", "-@all", "+ping", "+exec", "+role"}
	for _, command := range (doctor.Redis{Names: wire.DefaultNames(), Total: "seq", Log: true}).Needs("write") {
		user = append(user, "+"+command)
	}
	must(t, admin.Do(t.Context(), user...).Err())
	board := rankcache.BoardID(testkit.Name(t))
	h := &fixture{writer: needy(t, "write", "redis://write:secret@"+server.Addr(), "", "--log", "redis", "--rooms", superHotRooms(t, string(board)))}
	h.writer.becomesReady("write")
	h.give(t, board, 3)
	h.give(t, board+"-other", 3)
	if n := admin.XLen(t.Context(), wire.LogKey).Val(); n != 3 {
		t.Errorf("%d entries, want 3", n)
	}
	testkit.Eventually(t, time.Minute, func() error {
		return contains(admin.Info(t.Context(), "commandstats").Val(), "cmdstat_memory|usage")
	})
	_, body := h.writer.Get("health", "/status")
	for _, word := range []string{`"log":"redis"`, `"redis_log":{"state":"ok"`} {
		must(t, contains(body, word))
	}
	if strings.Contains(body, "kafka") {
		t.Error("it has to do with Kafka:", body)
	}
	for line := range strings.Lines(h.writer.Log()) {
		if strings.Contains(line, `"WARN"`) || strings.Contains(line, `"ERROR"`) {
			t.Error("it complains:", line)
		}
	}
	tellRefused(t, admin)
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "write", "-memory|usage").Err())
	for _, f := range (doctor.Redis{Client: redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "write", Password: "secret"}), Names: wire.DefaultNames(), Roles: []string{"write"}, Log: true}).Checks() {
		if v := f.Look(t.Context()); f.Name == "redis-acl" && !strings.Contains(v.Advice, "write needs MEMORY|USAGE") {
			t.Errorf("doctor says %+v", v)
		}
	}
}
