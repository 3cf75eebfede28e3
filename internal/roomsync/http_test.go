package roomsync_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/roomsync"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// problems writes an error as "code argument".
func problems(w http.ResponseWriter, code, argument, _ string) {
	w.WriteHeader(400)
	w.Write([]byte(code + " " + argument))
}

func request(f *roomsync.Follower, method, target, body string) (int, string) {
	h := roomsync.NewHandler(f, problems)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rooms", h.Get)
	mux.HandleFunc("POST /rooms", h.Post)
	mux.HandleFunc("DELETE /rooms", h.Delete)
	mux.HandleFunc("POST /rooms/bypass", h.PostBypass)
	mux.HandleFunc("DELETE /rooms/bypass", h.DeleteBypass)
	mux.HandleFunc("GET /classes", h.GetClasses)
	mux.HandleFunc("PUT /classes", h.PutClasses)
	mux.HandleFunc("DELETE /classes", h.DeleteClasses)
	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, httptest.NewRequest(method, target, strings.NewReader(body)))
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

func TestHandler(t *testing.T) {
	hash := newShared()
	f := newFollower(roomsync.Config{File: writeFile(t, "rooms: [{uid: \"88\", mode: hot, boards: [\"a\"]}]"), Origin: &running{}, Shared: hash})
	must(t, f.Load())
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"POST", "/rooms", `{"uid":"89","mode":"super-hot","boards":["b"]}`, 200,
			`{"uid":"89","mode":"super-hot","boards":["b"],"source":"dynamic","overridden":false}`},
		{"POST", "/rooms", `{"uid":"88","mode":"blocked"}`, 200,
			`{"uid":"88","mode":"blocked","boards":[],"source":"dynamic","overridden":true}`},
		{"POST", "/rooms", `{"match":"9_*","mode":"blocked"}`, 200,
			`{"match":"9_*","mode":"blocked","source":"dynamic","overridden":false}`},
		{"POST", "/rooms", `{"match":"9_[","mode":"hot"}`, 400, `bad_argument body`},
		{"POST", "/rooms", `{"match":"9_*","mode":"blocked","ttl":1}`, 400, `bad_argument body`},
		{"POST", "/rooms", strings.Repeat(" ", rooms.MaxEntry+1), 400, `body_too_large`},
		{"DELETE", "/rooms?match=9_*", "", 204, ``},
		{"DELETE", "/rooms?match=9_*", "", 400, `unknown_room`},
		{"DELETE", "/rooms", "", 400, `bad_argument uid`},
		{"DELETE", "/rooms?uid=1&match=2", "", 400, `bad_argument uid`},
	} {
		if status, body := request(f, c.method, c.target, c.body); status != c.status || body != c.want {
			t.Errorf("%s %s %.60s: %d %s, want %d %s", c.method, c.target, c.body, status, body, c.status, c.want)
		}
	}
	var got struct {
		Rooms   []roomsync.RoomRow
		Boards  []roomsync.RuleRow
		File    roomsync.FileStatus
		Dynamic roomsync.DynamicStatus
	}
	_, body := request(f, "GET", "/rooms", "")
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rooms) != 3 || got.Rooms[0].Source != "file" || len(got.Boards) != 0 || !strings.Contains(body, `"boards":[]`) ||
		got.Dynamic.Key != "the:hash" || got.Dynamic.Entries != 2 || got.File.Rooms != 1 {
		t.Errorf("%s", body)
	}
	hash.fail(errRedis)
	if status, body := request(f, "POST", "/rooms", `{"match":"c","mode":"hot"}`); status != 400 || body != "origin_unavailable" {
		t.Errorf("Redis is down: %d %s", status, body)
	}
}

// A real Redis: the hash, one with too many fields, and a key of another type.
func TestHash(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	ctx, key := t.Context(), testkit.Name(t)
	h := roomsync.NewHash(client, key, 5*time.Second)
	if got, err := h.Entries(ctx); err != nil || len(got) != 0 {
		t.Errorf("no hash: %v, %v", got, err)
	}
	must(t, h.Put(ctx, "a", "1"))
	if got, err := h.Entries(ctx); err != nil || len(got) != 1 || got["a"] != "1" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, want := range []bool{true, false} {
		if found, err := h.Remove(ctx, "a"); err != nil || found != want {
			t.Errorf("removed %v, %v, want %v", found, err, want)
		}
	}
	for i := range roomsync.MaxDynamic + 3*roomsync.MaxBypasses + 1 {
		must(t, h.Put(ctx, strings.Repeat("x", i), ""))
	}
	if _, err := h.Entries(ctx); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too many: %v", err)
	}
	must(t, client.Del(ctx, key).Err())
	must(t, client.Set(ctx, key, "x", 0).Err())
	if _, err := h.Entries(ctx); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("a string: %v", err)
	}
}
