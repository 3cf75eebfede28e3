package keeper

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// readings is an Origin that does something while it reads.
type readings func()

func (r readings) Stamps(_ context.Context, boards []rankcache.BoardID) ([]rankcache.Stamp, error) {
	r()
	stamps := make([]rankcache.Stamp, len(boards))
	for i := range stamps {
		stamps[i].At = time.Now()
	}
	return stamps, nil
}

// TestKeyIsLostWhileItIsRead: what was read while there was no key is not published as if it had been read after a value that came
// and went meanwhile.
func TestKeyIsLostWhileItIsRead(t *testing.T) {
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t)})
	defer client.Close()
	value := &Value{Redis: client, Key: testkit.Name(t), Written: testkit.Name(t) + ":written", Instance: "it", Timeout: 5 * time.Second}
	publisher := func(read readings) *Publisher {
		p, err := New(value, read, nil, DefaultEvery, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	publish := func(p *Publisher) {
		t.Helper()
		if err := p.publish(ctx, []rankcache.BoardID{"b"}, DefaultEvery); err != nil {
			t.Error(err)
		}
	}
	want := func(boards int) {
		t.Helper()
		if s, err := value.States(ctx); s.Len() != boards { // without a value it is an error
			t.Errorf("%d boards, want %d (%v)", s.Len(), boards, err)
		}
	}
	other := publisher(func() {})
	slow := publisher(func() {
		for range 3 {
			publish(other)
		}
		client.Del(ctx, value.Key)
	})
	for range 3 {
		publish(slow)
		want(0)
	}
	for range 3 {
		publish(other)
	}
	want(1)
}
