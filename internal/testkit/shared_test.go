package testkit

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestSharedServersStayTheSame(t *testing.T) {
	if a, b := Redis(t), Redis(t); a != b {
		t.Errorf("two addresses of one redis-server: %s and %s", a, b)
	}
	if a, b := Kafka(t), Kafka(t); a != b {
		t.Errorf("two addresses of one broker: %s and %s", a, b)
	}
}

func TestSharedRedisAnswers(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: Redis(t)})
	defer c.Close()
	key := Name(t)
	if err := c.ZAdd(t.Context(), key, redis.Z{Score: 1.5, Member: "a"}).Err(); err != nil {
		t.Fatal(err)
	}
	if got := c.ZScore(t.Context(), key, "a").Val(); got != 1.5 {
		t.Errorf("score %v, want 1.5", got)
	}
}

// The topic helpers do the same on both brokers.
func TestTopics(t *testing.T) {
	for name, addr := range map[string]string{"shared": Kafka(t), "kfake": Kfake(t).Addr()} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			topic := Name(t)
			CreateTopic(t, addr, topic, 3, map[string]string{"retention.ms": "-1"})
			Produce(t, addr, &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte("1")}, &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte("2")})
			got := Records(t, addr, topic, 2)
			if string(got[0].Value) != "1" || string(got[1].Value) != "2" {
				t.Errorf("read %q then %q", got[0].Value, got[1].Value)
			}
			DeleteTopic(t, addr, topic)
			t.Log(time.Since(start))
		})
	}
}
