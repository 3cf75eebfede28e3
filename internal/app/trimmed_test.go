package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/proto/rankcache/v1"
)

// TestTrimmedMembers: who is beyond the best two of a board has a score and no rank, in all
// forms, whether the board is whole in memory or in Redis.
func TestTrimmedMembers(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.writeRooms(t, fmt.Sprintf(`
classes:
- {name: big, board: %q, period: none, ops: [incr], trim: 2, ties: first, mode: super-hot}
- {name: small, board: %q, period: none, ops: [incr], trim: 2, ties: first}
`, h.star, h.small))
	testkit.Eventually(t, 30*time.Second, func() error { // the writer has read the file, and its producer is up
		return posted(h.writer, "scores", "/v1/scores", `{"class":"big","member":"m9","op":"incr","delta":0,"order":"a"}`, 200, `"member":"m9"`)
	})
	h.give(t, h.star, 4) // m0 has 1 point, m3 has 4
	h.give(t, h.small, 4)
	s := h.serve(t, "--rpc", "127.0.0.1:0")
	s.WaitReady(time.Minute)
	conn, err := grpc.NewClient(s.Addr("rpc"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, board := range []rankcache.BoardID{h.star, h.small} {
		path := "/v1/boards/" + string(board)
		const row = `"rank":null,"member":"m1","score":2`
		get := func(path, want string) {
			t.Helper()
			if code, body := s.Get("data", path); code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s: %d %s, want %s", path, code, body, want)
			}
		}
		get(path+"/members/m2", `"rank":2,"member":"m2","score":3`)
		get(path+"/members/m1", row)
		get(path+"/members/m1?around=1", row+`,"neighbours":[]`)
		get(path+"/top?me=m1", `"me":{`+row)
		get("/v1/scores/m1?board="+string(board), `{"member":"m1","score":2,"rank":0,"user_info":{`)
		if err := posted(s, "data", "/compat/getScore", fmt.Sprintf(`{"rank_name":%q,"rank_item":"m1"}`, board), 200, `"score":2,"rank":0}`); err != nil {
			t.Error(err)
		}
		if err := posted(s, "data", path+"/members:batch", `{"members":["m1","nobody"]}`, 200, `{`+row+`},{"rank":null,"member":"nobody","score":null}`); err != nil {
			t.Error(err)
		}
		var one rankcachev1.GetStandingResponse
		err := conn.Invoke(t.Context(), "/rankcache.v1.Boards/GetStanding", &rankcachev1.GetStandingRequest{Address: &rankcachev1.Address{Board: string(board)}, Member: "m1"}, &one)
		if want := (&rankcachev1.Row{Member: "m1", Score: proto.Float64(2)}); err != nil || !proto.Equal(one.Standing, want) {
			t.Errorf("%v, %v", &one, err)
		}
	}
}
