package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/apitest"
	"rankcache/sidecar"
	"rankcache/wire"
)

// TestFinalsOfEndedBoards: what was posted for a period that is over is in the finals of
// its boards: in SQL, in files and on the topic, with the scores that were shown.
func TestFinalsOfEndedBoards(t *testing.T) {
	t.Parallel()
	database := testkit.Database(t, "postgres")
	e := newEnding(t, 2, "--database", database, "--finals", "file://"+t.TempDir())
	l := startListening(t, "ledger", "--http", "127.0.0.1:0", "--database", database, "--topic-ledger", e.name+"-ledger", "--topic-finals", e.name+"-finals", "--ledger-group", e.name,
		"--kafka", e.kafka, "--redis", "redis://"+e.redis.Options().Addr)
	boards := map[rankcache.BoardID]bool{}
	for i := range 3 {
		status, answer := e.post(fmt.Sprintf(`{"order":"o%d","class":"gift","dims":{"zone":"1"},"member":"m%d","op":"incr","delta":1,"data":"car","at":%d}`, i, i, time.Now().UnixMilli()))
		var u struct {
			Board rankcache.BoardID
			Score float64
		}
		if err := json.Unmarshal([]byte(answer), &u); status != http.StatusOK || err != nil || u.Score != 1 {
			t.Fatalf("%d %s, %v", status, answer, err)
		}
		boards[u.Board] = true
	}
	wholes := map[rankcache.BoardID]int{} // members of split boards
	for i := range 12 {
		status, answer := e.post(fmt.Sprintf(`{"order":"w%d","class":"wide","member":"w%02d","op":"incr","delta":5,"at":%d}`, i, i, time.Now().UnixMilli()))
		var u struct{ Board rankcache.BoardID }
		if err := json.Unmarshal([]byte(answer), &u); status != http.StatusOK || err != nil {
			t.Fatalf("%d %s, %v", status, answer, err)
		}
		whole, _, _ := class.CutShard(u.Board)
		boards[u.Board] = true
		wholes[whole]++
	}
	names, members, tag := wire.DefaultNames(), 0, ""
	for b := range boards {
		e.eventually("boards are not final", func() int {
			m, err := wire.ParseMeta(e.redis.Get(t.Context(), names.MetaKey(b)).Val())
			must(t, err)
			return int(wire.LifeFinal) - int(m.Life)
		})
	}
	maps.DeleteFunc(boards, func(b rankcache.BoardID, _ bool) bool { _, _, shard := class.CutShard(b); return shard })
	for _, r := range testkit.Records(t, e.kafka, e.name+"-finals", len(boards)+len(wholes)) {
		var f struct {
			Board   rankcache.BoardID
			Tag     string
			Members int
			File    string
			Top     []struct {
				Score, Raw float64
				Data       string
			}
		}
		must(t, json.Unmarshal(r.Value, &f))
		if n, split := wholes[f.Board]; split { // once for all shards
			if f.Members != n || len(f.Top) != n || f.Top[0].Score != 5 {
				t.Errorf("%s: want %d members", r.Value, n)
			}
			delete(wholes, f.Board)
			continue
		}
		at, err := url.Parse(f.File)
		must(t, err)
		if _, err := os.Stat(at.Path); err != nil || !boards[f.Board] || f.Top[0].Score != 1 || f.Top[0].Raw <= 1 || f.Top[0].Data != "car" {
			t.Errorf("%s: %v", r.Value, err)
		}
		delete(boards, f.Board)
		members += f.Members
		if tag == "" || f.Tag < tag {
			tag = f.Tag // of the first post
		}
	}
	doc, err := apitest.Load(sidecar.OpenAPI())
	must(t, err)
	for _, path := range []string{"/v1/classes/gift/finals", "/v1/classes/gift/finals/" + tag + "?zone=1", "/v1/members/m0/history"} {
		code, body := l.Get("http", path)
		if err := doc.Check(apitest.Exchange{Method: "GET", Target: path, Status: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}); err != nil || code != 200 || !strings.Contains(body, tag) || strings.Contains(body, `"score":1.`) {
			t.Errorf("%s: %d %s: %v", path, code, body, err)
		}
	}
	rows := 0
	must(t, testkit.SQL(t, database).QueryRowContext(t.Context(), "SELECT count(*) FROM rank_final").Scan(&rows))
	if members != 3 || rows != 15 {
		t.Errorf("%d members in records, %d rows, want 3 and 15", members, rows)
	}
	for _, table := range []string{"rank_final", "rank_score", "rank_log"} {
		must(t, testkit.SQL(t, database).QueryRowContext(t.Context(), "SELECT count(*) FROM "+table+" WHERE score = 1 AND raw > 1 AND raw < 2 AND data = 'car'").Scan(&rows))
		if rows != 3 {
			t.Errorf("%s has %d rows with the score that is shown and the raw one, want 3", table, rows)
		}
	}
}
