package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// reaching is a Reached on a Redis, and what it logs.
type reaching struct {
	*Reached
	t      *testing.T
	client *redis.Client
	log    bytes.Buffer
}

func newReaching(t *testing.T, addr string) *reaching {
	r := &reaching{t: t, client: redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})}
	t.Cleanup(func() { r.client.Close() })
	name := testkit.Name(t)
	value := &Value{Redis: r.client, Key: name, Written: name + ":written", Instance: "it", Timeout: time.Second}
	r.Reached = NewReached(value, slog.New(slog.NewTextHandler(&r.log, nil)))
	return r
}

// write has a keeper write at a time.
func (r *reaching) write(at time.Time) {
	r.t.Helper()
	if err := r.client.Set(r.t.Context(), r.value.Written, at.UnixMicro(), 0).Err(); err != nil {
		r.t.Fatal(err)
	}
}

// want looks once, and compares to the microsecond.
func (r *reaching) want(what string, at time.Time) {
	r.t.Helper()
	r.look(r.t.Context())
	if got := r.At(); got.IsZero() != at.IsZero() || got.UnixMicro() != at.UnixMicro() {
		r.t.Errorf("%s: reached %v, want %v", what, got, at)
	}
}

func (r *reaching) warned(what string, times int) {
	r.t.Helper()
	if n := strings.Count(r.log.String(), "WARN"); n != times {
		r.t.Errorf("%s: %d warnings, want %d:\n%s", what, n, times, &r.log)
	}
}

// TestReached follows a replica: it goes forward with its master, stands still with it, and goes back with one that has lost.
func TestReached(t *testing.T) {
	t.Parallel()
	r := newReaching(t, testkit.Redis(t))
	r.want("no keeper", time.Time{})
	r.want("still none", time.Time{})
	r.warned("no keeper", 1)
	begun := time.Now().Add(-time.Hour)
	r.write(begun)
	r.want("an hour behind", begun)
	r.want("the link is cut", begun)
	r.write(begun.Add(time.Minute))
	r.want("it goes on", begun.Add(time.Minute))
	r.write(begun.Add(30 * time.Second))
	r.want("its master has lost half a minute", begun.Add(30*time.Second))
	r.warned("ages are known", 1)
}

// TestReachedByTheKeepersOwnTime: what the keeper publishes is read.
func TestReachedByTheKeepersOwnTime(t *testing.T) {
	t.Parallel()
	r := newReaching(t, testkit.Redis(t))
	before := time.Now().Add(-time.Millisecond)
	if _, err := r.value.replace(t.Context(), "", []byte("states")); err != nil {
		t.Fatal(err)
	}
	r.look(t.Context())
	if at := r.At(); at.Before(before) || at.After(time.Now()) {
		t.Errorf("reached %v, published between %v and now", at, before)
	}
}

// TestReachedWhereTheClockIsBehind: nothing is younger than since its time was first seen, however often it is seen again.
func TestReachedWhereTheClockIsBehind(t *testing.T) {
	t.Parallel()
	r := newReaching(t, testkit.Redis(t))
	r.write(time.Now().Add(time.Hour))
	before := time.Now()
	r.look(t.Context())
	after, seen := time.Now(), r.At()
	if seen.Before(before) || seen.After(after) {
		t.Errorf("reached %v, seen between %v and %v", seen, before, after)
	}
	r.want("seen again", seen)
	r.warned("an hour ahead", 1)
}

// TestReachedIsUnknown where the value is none, or may not be read; a Redis that is away is where it was.
func TestReachedIsUnknown(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	r := newReaching(t, server.Addr())
	known := time.Now().Add(-time.Minute)
	for what, bad := range map[string]func() error{
		"deleted":  func() error { return r.client.Del(t.Context(), r.value.Written).Err() },
		"no time":  func() error { return r.client.Set(t.Context(), r.value.Written, "soon", 0).Err() },
		"too long": func() error { return r.client.Set(t.Context(), r.value.Written, strings.Repeat("9", 1<<10), 0).Err() },
		"a list": func() error {
			return errors.Join(r.client.Del(t.Context(), r.value.Written).Err(), r.client.RPush(t.Context(), r.value.Written, "1").Err())
		},
		"not by ACL": func() error { return r.client.Do(t.Context(), "ACL", "SETUSER", "default", "-getrange").Err() },
	} {
		r.write(known)
		r.want("known", known)
		if err := bad(); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", what, err))
		}
		r.want(what, time.Time{})
		if err := r.client.Do(t.Context(), "ACL", "SETUSER", "default", "+getrange").Err(); err != nil {
			t.Fatal(err)
		}
	}
	r.write(known)
	r.want("known again", known)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	r.want("Redis is away", known)
}
