package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

// TestFinalsOnTheDataPort: boards of ended periods that Redis does not have are answered from their finals, on each way in, by class
// and by id, and never as empty.
func TestFinalsOnTheDataPort(t *testing.T) {
	t.Parallel()
	name := strings.ToLower(strings.NewReplacer("_", "-", "/", "-").Replace(testkit.Name(t)))
	h := newFixture(t)
	h.writeRooms(t, "classes:\n- {name: paid, board: \""+name+":{zone}:{period}\", period: day, ledger: true, score: integer, ids: {act: 7, rank: 3}}\n"+
		"- {name: wide, board: \""+name+"-wide:{period}\", period: day, ledger: true, shards: 16}\n"+
		"- {name: plain, board: \""+name+"-plain:{period}\", period: day}\n")
	database := testkit.Database(t, "postgres")
	store, err := ledger.Open(database, nil)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	must(t, store.Migrate(t.Context()))
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	yesterday := day.Format("20060102")
	for _, tag := range []string{yesterday, "20200101"} {
		f := &ledger.Final{MadeAt: 1, Final: wire.Final{Board: rankcache.BoardID(name + ":7:" + tag), Class: "paid", Dims: map[string]string{"zone": "7"}, Tag: tag,
			State: rankcache.State{Run: 1, Seq: 9, Sum: 3, HasSum: true}, Members: 3, Form: rankcache.ScoreInteger, Top: []rankcache.Entry{{Member: "m1", Score: 20}, {Member: "m2", Score: 10}}}}
		must(t, store.SaveFinal(t.Context(), f))
	}
	wide := &ledger.Final{MadeAt: 1, Final: wire.Final{Board: rankcache.BoardID(name + "-wide:20200101"), Class: "wide", Dims: map[string]string{}, Tag: "20200101",
		State: rankcache.State{Run: 1, Seq: 9, Sum: 3, HasSum: true}, Members: 3, Top: []rankcache.Entry{{Member: "m2", Score: 10}, {Member: "m1", Score: 10}}}}
	must(t, store.SaveFinal(t.Context(), wide))
	l := startListening(t, append([]string{"ledger", "--http", "127.0.0.1:0", "--serve-reads", "--database", database, "--topic-ledger", name, "--ledger-group", name}, h.common...)...)
	testkit.CreateTopic(t, testkit.Kafka(t), name, 1, nil)
	s := h.serve(t, "--ledger-url", l.URL("http", ""), "--rpc", "127.0.0.1:0", "--resp", "127.0.0.1:0")
	s.WaitReady(time.Minute)
	testkit.Eventually(t, time.Minute, func() error {
		code, body := l.Get("http", "/v1/reads")
		if code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	for _, c := range []struct {
		path string
		code int
		want string
	}{
		{"/v1/classes/paid/top?zone=7&limit=2&at=" + yesterday, 200, `"source":"final"`},
		{"/v1/classes/paid/top?zone=7&limit=2&at=previous", 200, `"entries":[{"rank":1,"member":"m1","score":20},{"rank":2,"member":"m2","score":10}]`},
		{"/v1/classes/paid/top?zone=7&limit=2&at=previous", 200, `"locked":"final"`},
		{"/v1/classes/paid/top?zone=7&limit=2&at=20200101", 200, `"source":"final"`},
		{"/v1/classes/paid/top?zone=7&limit=2&at=20200101", 200, `"state":"gone"`},
		{"/v1/classes/paid/top?zone=7&at=20200101&limit=2&me=m2", 200, `"me":{"rank":2,"member":"m2","score":10`},
		{"/v1/classes/paid/top?zone=7&at=20200101&limit=1&me=m3", 200, `"me_error":"not_kept"`},
		{"/v1/classes/paid/top?zone=7&at=20200101&limit=3", 404, `"code":"not_kept"`},
		{"/v1/classes/paid/members/m1?zone=7&at=20200101", 200, `"rank":1`},
		{"/v1/classes/paid/members/m3?zone=7&at=20200101", 404, `"code":"not_kept"`},
		{"/v1/boards/" + name + ":7:20200101/top?limit=2", 200, `"source":"final"`},
		{"/v1/boards/" + name + ":7:20200101/members/m3", 404, `"code":"not_kept"`},
		{"/v1/classes/paid/top?zone=7&at=20200102", 404, `"code":"unknown_period"`},
		{"/v1/boards/" + name + ":7:20200102/top", 404, `"code":"unknown_period"`},
		{"/v1/classes/paid/top?zone=8&at=previous", 200, `"entries":[]`},
		{"/v1/classes/paid/top?zone=7&at=20991231", 200, `"source":"redis"`},
		{"/v1/classes/paid/top?zone=7&at=20201350", 400, `"argument":"at"`},
		{"/v1/classes/wide/top?limit=2&at=20200101", 200, `"source":"final","seq":9,"total":3`},
		{"/v1/classes/wide/top?limit=2&at=20200101", 200, `"entries":[{"rank":1,"member":"m2","score":10},{"rank":2,"member":"m1","score":10}]`},
		{"/v1/classes/wide/top?limit=1&at=20200101&me=m1", 200, `"rank":2,"member":"m1","score":10`},
		{"/v1/classes/wide/members/m1?at=20200101", 200, `"rank":2`},
		{"/v1/classes/wide/members/m3?at=20200101", 404, `"code":"not_kept"`},
		{"/v1/classes/wide/top?at=20200102", 404, `"code":"unknown_period"`},
		{"/v1/classes/wide/top?at=previous", 200, `"entries":[]`},
		{"/v1/boards/" + name + "-wide:20200101/top?limit=2", 200, `"source":"final"`},
		{"/v1/classes/plain/top?at=20200101", 404, `"code":"unknown_period"`},
		{"/v1/boards/" + name + "-plain:20200101/top", 200, `"source":"redis"`},
		{"/v1/classes/paid/top?zone=7", 200, `"source":"redis"`},
	} {
		testkit.Eventually(t, 30*time.Second, func() error { // 503: a busy Redis, or ledger
			if code, body := s.Get("data", c.path); code != c.code || !strings.Contains(body, c.want) {
				return fmt.Errorf("%s: %d %s; want %d with %s", c.path, code, body, c.code, c.want)
			}
			return nil
		})
	}
	must(t, cmp.Or(
		posted(s, "data", "/v1/boards:batch", `{"boards":[{"board":"`+name+`:7:20200101","limit":1}]}`, 200, `"source":"final"`),
		posted(s, "data", "/compat/rank/list", fmt.Sprintf(`{"actId":7,"rankObj":{"rankId":3,"objId":"7"},"t_time":%d,"limit":2}`, day.Unix()), 200, `"member_id":"m1"`)))
	for _, c := range [][3]string{
		{"GetTop", `{"address":{"class":"paid","dimensions":{"zone":"7"},"at":"20200101"},"limit":2}`, `"source":"final"`},
		{"GetTop", `{"address":{"class":"paid","dimensions":{"zone":"7"},"at":"20200101"},"limit":2}`, `"state":"gone"`},
		{"GetStanding", `{"address":{"class":"paid","dimensions":{"zone":"7"},"at":"20200101"},"member":"m3"}`, `"code":"not_kept"`},
		{"GetTop", `{"address":{"class":"paid","dimensions":{"zone":"7"},"at":"20200102"}}`, `"code":"unknown_period"`}} {
		resp, err := http.Post(s.URL("rpc", "/rankcache.v1.Boards/"+c[0]), "application/json", strings.NewReader(c[1]))
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(body), c[2]) {
			t.Errorf("%s %s: %s, %v; want %s", c[0], c[1], body, err, c[2])
		}
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr("resp"), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { client.Close() })
	if rows, err := client.ZRangeArgs(context.Background(), redis.ZRangeArgs{Key: name + ":7:20200101", Start: 0, Stop: 9, Rev: true}).Result(); err != nil || !slices.Equal(rows, []string{}) {
		t.Errorf("RESP: %v, %v: want what Redis has", rows, err)
	}
	l.Signal(syscall.SIGTERM)
	_ = l.Wait(time.Minute)
	if code, body := s.Get("data", "/v1/classes/paid/top?zone=9&at=previous"); code != http.StatusServiceUnavailable {
		t.Errorf("without the ledger: %d %s", code, body)
	}
}
