package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lease"
	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestLease(t *testing.T) {
	rdb, key := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2}), testkit.Name(t)
	t.Cleanup(func() { rdb.Close() })
	a := &lease.Lease{Redis: rdb, Key: key, ID: "a", TTL: time.Minute}
	b := &lease.Lease{Redis: rdb, Key: key, ID: "b", TTL: time.Minute}
	ctx := t.Context()
	if held, _, err := a.Acquire(ctx); err != nil || !held {
		t.Fatalf("a: %v, %v", held, err)
	}
	if held, left, err := b.Acquire(ctx); err != nil || held || left <= 0 || left > time.Minute {
		t.Errorf("b: %v, %v left, %v; want to wait for a's lease", held, left, err)
	}
	if ok, err := b.Renew(ctx); err != nil || ok {
		t.Errorf("b renewed a's lease: %v, %v", ok, err)
	}
	if err := b.Release(ctx); err != nil {
		t.Error(err)
	}
	if ok, err := a.Renew(ctx); err != nil || !ok {
		t.Errorf("a's lease is gone after b's release: %v, %v", ok, err)
	}
	if err := a.Release(ctx); err != nil {
		t.Error(err)
	}
	if held, _, err := b.Acquire(ctx); err != nil || !held {
		t.Errorf("b, after a's release: %v, %v", held, err)
	}
}

func TestWorkEndsWhenTheLeaseIsLost(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	t.Cleanup(func() { rdb.Close() })
	a := &lease.Lease{Redis: rdb, Key: testkit.Name(t), ID: "a", TTL: 100 * time.Millisecond}
	if held, _, err := a.Acquire(t.Context()); err != nil || !held {
		t.Fatalf("acquire: %v, %v", held, err)
	}
	reason := a.Hold(t.Context(), func(ctx context.Context) {
		rdb.Set(ctx, a.Key, "b", time.Minute)
		<-ctx.Done()
	})
	if !errors.Is(reason, lease.ErrLost) {
		t.Errorf("reason %v", reason)
	}
	if by := rdb.Get(t.Context(), a.Key).Val(); by != "b" {
		t.Errorf("the lease of b is %q", by)
	}
}
