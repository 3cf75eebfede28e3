package run

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/testkit"
)

// TestAWriterStartsWithForeignKeys: a writer that finds a sorted set where the rooms set at run time
// should be, or where a board's meta should be, takes the posts of all other boards; and none that
// would write to its own keys.
func TestAWriterStartsWithForeignKeys(t *testing.T) {
	cache, name := testkit.Redis(t), testkit.Name(t)
	client := redis.NewClient(&redis.Options{Addr: cache})
	defer client.Close()
	for _, key := range []string{name + "-rooms", "{" + name + "-bad}:meta"} {
		must(t, client.ZAdd(t.Context(), key, redis.Z{Member: "m", Score: 1}).Err())
	}
	w, err := NewWriter([]string{"--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--drain", "0s", "--redis", "redis://" + cache, "--kafka", testkit.Kfake(t).Addr(),
		"--key-rooms", name + "-rooms", "--group", name, "--command-partitions", "1"}, nil, slog.New(slog.DiscardHandler))
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	defer func() {
		stop()
		must(t, <-ended)
	}()
	post := func(board string) string {
		answer, err := http.Post("http://"+w.Listeners.Addr("scores")+"/v1/scores", "application/json",
			strings.NewReader(fmt.Sprintf(`{"order":"o","board":%q,"member":"m","op":"incr","delta":1}`, board)))
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return fmt.Sprint(answer.StatusCode, string(body), err)
	}
	testkit.Eventually(t, time.Minute, func() error {
		if got := post(name + "-good"); !strings.HasPrefix(got, "200") {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	for board, want := range map[string]string{name + "-bad": `409{"title":"Key of the board holds something else"`, name + "-rooms": `400{"title":"Bad argument"`, "rankcache:rooms": `400{"title":"Bad argument"`} {
		if got := post(board); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", board, got, want)
		}
	}
}
