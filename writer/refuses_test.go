package writer

import (
	"errors"
	"strings"
	"testing"

	"rankcache/internal/httpserve"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// A Redis that answers that it takes no writes is not said to have not answered: a post has its words at once, and so has the reader's fault.
func TestRedisRefusesWrites(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--save", "3600 1", "--enable-protected-configs", "yes"}})
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	h.posts.time = testTimeout // so that it would wait
	h.run(t)
	status, answer := h.post(t, h.command("o1", "a"))
	equal(t, answer, status, 200)
	ctx := t.Context()
	for words, refuse := range map[string][]any{
		"NOREPLICAS": {"min-replicas-to-write", 1},
		"OOM":        {"maxmemory", 1},
		"MISCONF":    {"dir", "/proc/self"}, // it can't save there
	} {
		was := h.client.ConfigGet(ctx, refuse[0].(string)).Val()[refuse[0].(string)]
		must(t, h.client.Do(ctx, "CONFIG", "SET", refuse[0], refuse[1]).Err())
		if words == "MISCONF" {
			testkit.Eventually(t, testTimeout, func() error {
				_ = h.client.BgSave(ctx).Err()
				if !strings.Contains(h.client.Info(ctx, "persistence").Val(), "rdb_last_bgsave_status:err") {
					return errors.New("Redis can save")
				}
				return nil
			})
		}
		status, answer := h.post(t, h.command("o2"+words, "a"))
		checkProblem(t, words, status, answer, httpserve.Problem{Status: 503, Code: "redis_refuses"})
		if !strings.Contains(answer, words) {
			t.Error(answer)
		}
		must(t, h.client.Do(ctx, "CONFIG", "SET", refuse[0], was).Err())
		if words == "MISCONF" {
			testkit.Eventually(t, testTimeout, func() error { return h.client.Save(ctx).Err() })
		}
		status, answer = h.post(t, h.command("o2"+words, "a"))
		equal(t, answer, status, 200)
	}
}

// What its user may not do in Redis a post is told at once, in Redis's words.
func TestRedisForbidsWrites(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) { o.Redis = redisClient(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()) })
	h.posts.time = testTimeout // so that it would wait
	h.run(t)
	status, answer := h.post(t, h.command("o1", "a"))
	equal(t, answer, status, 200)
	must(t, h.client.Do(t.Context(), "ACL", "SETUSER", "default", "-evalsha").Err())
	status, answer = h.post(t, h.command("o2", "a"))
	checkProblem(t, "NOPERM", status, answer, httpserve.Problem{Status: 503, Code: "redis_refuses"})
	if !strings.Contains(answer, "evalsha") {
		t.Error(answer)
	}
	must(t, h.client.Do(t.Context(), "ACL", "SETUSER", "default", "+evalsha").Err())
	status, answer = h.post(t, h.command("o2", "a"))
	equal(t, answer, status, 200)
}
