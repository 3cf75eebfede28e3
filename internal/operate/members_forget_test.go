package operate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/rooms"
	"rankcache/wire"
	"rankcache/writer"
)

// noClasses are the tiers of a writer without classes, whose boards are in Redis alone.
type noClasses struct{}

func (noClasses) File() *rooms.File                                { return &rooms.File{} }
func (noClasses) Boards(rooms.Mode) []rankcache.BoardID            { return nil }
func (noClasses) Mode(rankcache.BoardID, string) (mode rooms.Mode) { return mode }

// TestMembersForget: a dry run changes nothing; then the member is on no board that is not closed, and each board and
// place that was not reached is told.
func TestMembersForget(t *testing.T) {
	addr := testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	n := wire.DefaultNames()
	w, err := writer.New(writer.Options{Redis: client, Names: n, Tiers: noClasses{}, Kafka: map[string]string{"bootstrap.servers": "unused:1"}})
	must(t, err)
	port := httptest.NewServer(w.Handler())
	t.Cleanup(port.Close)
	for i, b := range []string{"b1", "b2", "b3"} {
		for _, m := range []string{"u-77", "u-1"} {
			resp, err := http.Post(port.URL+"/v1/scores", "application/json", strings.NewReader(fmt.Sprintf(`{"order":"%s%d","board":%q,"member":%q,"op":"incr","delta":1}`, m, i, b, m)))
			must(t, err)
			if resp.Body.Close(); resp.StatusCode != 200 {
				t.Fatal(resp.Status)
			}
		}
	}
	meta, err := wire.ParseMeta(client.Get(t.Context(), n.MetaKey("b3")).Val())
	must(t, err)
	meta.Life = wire.LifeClosed
	must(t, client.Set(t.Context(), n.MetaKey("b3"), wire.AppendMeta(nil, &meta), 0).Err())
	run := func(redisAddr, scores string, args ...string) (r forgetReport, text string, err error) {
		var out, progress bytes.Buffer
		err = cli.Run(t.Context(), NewMembersCommand(), append([]string{"forget", "--member", "u-77", "--redis", "redis://" + redisAddr, "--scores", scores}, args...), &out, &progress)
		_ = json.NewDecoder(bytes.NewReader(out.Bytes())).Decode(&r) // of -o json
		return r, out.String(), err
	}
	writerAt := strings.TrimPrefix(port.URL, "http://")
	on := func() (boards string) {
		for _, b := range []string{"b1", "b2", "b3"} {
			boards += fmt.Sprint(client.ZScore(t.Context(), b, "u-77").Val(), client.ZScore(t.Context(), b, "u-1").Val(), " ")
		}
		return boards
	}
	if _, text, err := run(addr, writerAt, "--reason", "request 17"); err != nil || strings.Count(text, "  has it") != 3 || !strings.Contains(text, "Nothing was changed") || on() != "1 1 1 1 1 1 " {
		t.Errorf("dry run: %v, %s\n%s", err, on(), text)
	}
	if r, text, err := run(addr, "127.0.0.1:1", "--reason", "request 17", "--yes", "-o", "json"); cli.ExitCode(err) != cli.ExitDiffers || len(r.Boards) != 3 || r.Boards[0].Is != "failed" || on() != "1 1 1 1 1 1 " {
		t.Errorf("no writer: %v, %s\n%s", err, on(), text)
	}
	for i := range 2 { // to repeat it does no harm
		r, text, err := run(addr, writerAt, "--reason", "request 17", "--yes", "-o", "json")
		var is []string
		for _, b := range r.Boards {
			is = append(is, string(b.Board)+" "+b.Is)
		}
		want := []string{"b1 forgotten, b2 forgotten, b3 closed", "b3 closed"}[i]
		if err != nil || strings.Join(is, ", ") != want || on() != "0 1 0 1 1 1 " || r.Places[0].Count != 1 || !strings.Contains(r.Boards[len(r.Boards)-1].Detail, "for ever") {
			t.Errorf("run %d: %v, %s\n%s", i, err, on(), text)
		}
	}
	if r, text, err := run("127.0.0.1:1", writerAt, "--reason", "request 17", "--yes", "-o", "json"); cli.ExitCode(err) != cli.ExitDiffers || !r.Places[0].Failed || !strings.Contains(err.Error(), "not be reached") {
		t.Errorf("no Redis: %v\n%s", err, text)
	}
	for _, soon := range []bool{true, false} { // it is the reader's turn only after the answer
		must(t, client.FlushDB(t.Context()).Err())
		must(t, client.ZAdd(t.Context(), "b4", redis.Z{Member: "u-77"}).Err())
		slow := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if soon {
				client.ZRem(r.Context(), "b4", "u-77")
			}
			fmt.Fprint(rw, `{"results":[{"problem":{"code":"not_yet","title":"Not yet"}}]}`)
		}))
		r, text, err := run(addr, strings.TrimPrefix(slow.URL, "http://"), "--reason", "request 17", "--yes", "-o", "json")
		if slow.Close(); len(r.Boards) != 1 || r.Boards[0].Is != map[bool]string{true: "forgotten", false: "accepted"}[soon] || (err == nil) != soon {
			t.Errorf("soon %v: %v\n%s", soon, err, text)
		}
	}
	inLedger(t, client, w, n, func(args ...string) (r forgetReport, text string, err error) {
		return run(addr, writerAt, append(args, "--reason", "request 17", "-o", "json")...)
	})
	if _, _, err := run(addr, writerAt); cli.ExitCode(err) != cli.ExitUsage {
		t.Error("no reason:", err)
	}
}

// inLedger: boards that the ledger has alone are found; closed ones it forgets later, and open ones, where the member is
// on the board no more, by a command as others. A database that can't be asked is told.
func inLedger(t *testing.T, client *redis.Client, w *writer.Writer, n wire.Names, run func(args ...string) (forgetReport, string, error)) {
	url := testkit.Database(t, testkit.SQLKinds[0])
	store, err := ledger.Open(url, nil)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	must(t, store.Migrate(t.Context()))
	db, err := ledger.OpenSQL(url, nil)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	_, err = db.Exec("INSERT INTO rank_score (board, member, run, seq) VALUES ('b5', 'u-77', 1, 1), ('b6', 'u-77', 1, 2), ('old', 'u-77', 1, 3), ('b5', 'u-1', 1, 4)")
	must(t, err)
	must(t, client.FlushDB(t.Context()).Err())
	for _, b := range []string{"b5", "b6"} {
		rec := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodPost, "/v1/scores", strings.NewReader(fmt.Sprintf(`{"order":"x","board":%q,"member":"u-1","op":"incr","delta":1}`, b)))
		req.Header.Set("Content-Type", "application/json")
		if w.Handler().ServeHTTP(rec, req); rec.Code != 200 {
			t.Fatal(rec.Body)
		}
	}
	meta, err := wire.ParseMeta(client.Get(t.Context(), n.MetaKey("b6")).Val())
	must(t, err)
	meta.Life = wire.LifeClosed
	must(t, client.Set(t.Context(), n.MetaKey("b6"), wire.AppendMeta(nil, &meta), 0).Err())
	later := func() (boards string) {
		rows, err := db.Query("SELECT board, seq FROM rank_forget WHERE member = 'u-77' ORDER BY board")
		must(t, err)
		defer rows.Close()
		for rows.Next() {
			var board string
			var seq int
			must(t, rows.Scan(&board, &seq))
			boards += fmt.Sprint(board, " ", seq, ", ")
		}
		return boards
	}
	for _, yes := range []bool{false, true, true} {
		args, want, booked := []string{"--database", url}, "b5 has it, b6 has it, old has it, ", ""
		if yes {
			args, want, booked = append(args, "--yes"), "b5 forgotten, b6 closed, old closed, ", "b6 2, old 3, "
		}
		r, text, err := run(args...)
		is := ""
		for _, b := range r.Boards {
			is += string(b.Board) + " " + b.Is + ", "
		}
		if err != nil || is != want || later() != booked {
			t.Errorf("%v: %v, %s, %s\n%s", yes, err, is, later(), text)
		}
	}
	if r, text, err := run("--database", "postgres://u@127.0.0.1:1/x", "--yes"); cli.ExitCode(err) != cli.ExitDiffers || len(r.Boards) == 0 || r.Boards[0].Is != "failed" {
		t.Errorf("no database: %v\n%s", err, text)
	}
}
