package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/wire"
)

// compared answers a comparison of the board with its last line, and how many lines came before.
func compared(t *testing.T, c *boardComparer, id rankcache.BoardID) (last compareLine, before int) {
	t.Helper()
	mux, w := http.NewServeMux(), httptest.NewRecorder()
	mux.HandleFunc("POST /boards/{board}/compare", c.serve)
	mux.ServeHTTP(w, httptest.NewRequest("POST", "/boards/"+string(id)+"/compare", nil))
	for lines := json.NewDecoder(w.Body); lines.More(); before++ {
		last = compareLine{}
		must(t, lines.Decode(&last))
	}
	return last, before - 1
}

func TestCompareFindsEachDifference(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	id, boards := rankcache.BoardID(testkit.Name(t)), localboard.NewBoards()
	c := &boardComparer{boards: boards, origin: origin.New(client, wire.DefaultNames()), shards: func(rankcache.BoardID) int { return 0 }}
	if last, _ := compared(t, c, id); last.Error != errNotOpen.Error() {
		t.Errorf("a board that is not open: %+v", last)
	}

	const members = 6000
	board, pipe := boards.Create(id), client.Pipeline()
	entries := make([]rankcache.Entry, members)
	for i := range entries {
		entries[i] = rankcache.Entry{Member: fmt.Sprint("m", i), Score: float64(i)}
		pipe.ZAdd(t.Context(), string(id), redis.Z{Member: entries[i].Member, Score: entries[i].Score})
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	must(t, board.Load(members, entries))
	board.Publish()
	boards.Open(id)
	if last, before := compared(t, c, id); !last.Done || last.Differences != nil || last.Compared < members || last.Members != members || before < 2 {
		t.Errorf("equal boards: %+v after %d lines", last, before)
	}

	must(t, client.ZAdd(t.Context(), string(id), redis.Z{Member: "m17", Score: 1e6}, redis.Z{Member: "only there", Score: 5}).Err())
	must(t, client.ZRem(t.Context(), string(id), "m18", "m19").Err())
	last, _ := compared(t, c, id)
	got := map[string]string{}
	for _, d := range last.Differences {
		text, _ := json.Marshal([]*float64{d.Here, d.Redis})
		got[d.Member] = string(text)
	}
	want := map[string]string{"m17": "[17,1000000]", "m18": "[18,null]", "m19": "[19,null]", "only there": "[null,5]"}
	if diff := cmp.Diff(want, got); diff != "" || !last.Done {
		t.Errorf("differences: %+v\n%s", last, diff)
	}
}

// TestCompareSplit: the shards of a split board are compared as one board.
func TestCompareSplit(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	id, boards := rankcache.BoardID(testkit.Name(t)), localboard.NewBoards()
	c := &boardComparer{boards: boards, origin: origin.New(client, wire.DefaultNames()), shards: func(b rankcache.BoardID) int {
		if b == id {
			return 2
		}
		return 0
	}}
	for shard := range 2 {
		of := class.ShardID(id, shard)
		board := boards.Create(of)
		must(t, board.Load(1, []rankcache.Entry{{Member: fmt.Sprint("m", shard), Score: 5}}))
		board.Publish()
		if last, _ := compared(t, c, id); last.Error == "" {
			t.Errorf("shard %d is not open: %+v", shard, last)
		}
		boards.Open(of)
		must(t, client.ZAdd(t.Context(), string(of), redis.Z{Member: fmt.Sprint("m", shard), Score: 5 + float64(shard)}).Err())
	}
	if last, _ := compared(t, c, id); !last.Done || last.Members != 2 || last.Compared != 2 || len(last.Differences) != 1 || last.Differences[0].Member != "m1" {
		t.Errorf("%+v", last)
	}
}
