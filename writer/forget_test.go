package writer

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/rooms"
	"rankcache/wire"
)

// forget posts a forget of boards, of which each answers with an update or the code of a problem.
func (h *fixture) forget(t *testing.T, member string, boards ...rankcache.BoardID) (is []string) {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"member": member, "reason": "request 17", "boards": boards, "lists": true})
	req := httptest.NewRequest(http.MethodPost, ForgetPath, strings.NewReader(string(body)))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	h.Handler().ServeHTTP(rec, req)
	var answer struct {
		Results []struct {
			Result  struct{ Board, Member, Op string }
			Problem struct{ Code string }
		}
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || len(answer.Results) != len(boards) {
		t.Fatalf("%d %v: %s", rec.Code, err, rec.Body)
	}
	for i, a := range answer.Results {
		if a.Result.Op != "" && (a.Result.Op != "forget" || a.Result.Member != member || !strings.HasPrefix(a.Result.Board, string(boards[i]))) {
			t.Errorf("%s: %+v", boards[i], a)
		}
		is = append(is, a.Result.Op+a.Problem.Code)
	}
	return is
}

// traces returns the keys of a board that have a member by its id.
func (h *fixture) traces(t *testing.T, b rankcache.BoardID, member string) (keys []string) {
	t.Helper()
	n := h.opts.Names
	if h.client.ZScore(t.Context(), n.BoardKey(b), member).Err() == nil {
		keys = append(keys, n.BoardKey(b))
	}
	for _, c := range wire.Companions() {
		if h.client.HExists(t.Context(), n.CompanionKey(b, c), member).Val() {
			keys = append(keys, n.CompanionKey(b, c))
		}
	}
	if h.client.Exists(t.Context(), n.LadderKey(b)).Val() != 0 {
		keys = append(keys, n.LadderKey(b))
	}
	return keys
}

// TestForget: whatever the class, the member goes with all that the board's keys have of it, and nobody else; a copy that
// follows the updates has the same members, its sum too. A guard does not count it. Who comes back is somebody new.
func TestForget(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{
		"plain": "", "up": "ops: [incr]", "trimmed": "ops: [incr], trim: 2", "best": "ops: [best], order: asc", "data": "data: true", "ties": "ties: first",
		"guard": "ops: [incr], guard: {changes: 1/1h, gain: 100/1h, members: 3, action: refuse}", "guarded trim": "ops: [incr], trim: 2, guard: {changes: 1/1h}", "hidden": "ops: [incr]", "split": "ops: [incr], shards: 3",
	} {
		t.Run(name, func(t *testing.T) {
			prefix := lastPart(testkit.Name(t))
			file, err := rooms.Parse(fmt.Appendf(nil, "classes:\n  - {name: c, board: \"%s:{zone}\", period: none, %s}\n", prefix, settings))
			must(t, err)
			h := quiet(t, func(o *Options) { o.Tiers = tiers{file: file} })
			h.board = rankcache.BoardID(prefix + ":7")
			changes := map[rankcache.BoardID]*localboard.Board{}
			apply := func(command string) *job {
				done := h.posts.doAll(t.Context(), []json.RawMessage{[]byte(command)})[0]
				if must(t, done.err); changes[done.Board] == nil {
					changes[done.Board] = localboard.New(done.Board)
				}
				applyLocally(t, changes[done.Board], done.job)
				return done.job
			}
			command := func(order, member string, n float64) string {
				switch name {
				case "best":
					return h.opCommand("best", order, member, "score", n)
				case "data":
					return fmt.Sprintf(`{"order":%q,"board":%q,"member":%q,"op":"incr","delta":%v,"data":"d-%s"}`, order, h.board, member, n, member)
				}
				return h.opCommand("incr", order, member, "delta", n)
			}
			for i, member := range []string{"a", "b", "c"} {
				apply(command("o"+member, member, float64(10*i+10)))
			}
			its := apply(command("oa", "a", 10)).Board // a repeat
			if name == "hidden" {
				h.moved(t, "hide", "a")
			}
			must(t, h.client.Set(t.Context(), h.opts.Names.LadderKey(its), "ladder", 0).Err())
			if len(h.traces(t, its, "a")) < 2 {
				t.Fatal("the board has nothing of the member")
			}
			before := h.client.ZRange(t.Context(), string(its), 0, -1).Val()
			equal(t, "forget", h.forget(t, "a", h.board), []string{"forget"})
			equal(t, "traces", h.traces(t, its, "a"), []string(nil))
			equal(t, "others", strings.Join(h.client.ZRange(t.Context(), string(its), 0, -1).Val(), " "), strings.Join(strings.Fields(strings.Replace(" "+strings.Join(before, " ")+" ", " a ", " ", 1)), " "))
			equal(t, "again", h.forget(t, "a", h.board), []string{"forget"})
			equal(t, "never there", h.forget(t, "nobody", h.board), []string{"forget"})
			if of := *h; name != "data" {
				of.board = its
				of.checkSum(t)
			}
			if name == "hidden" { // the copy has not followed the hide
				return
			}
			last, err := h.do(t.Context(), []byte(command("oa2", "a", 5)))
			must(t, err)
			equal(t, "somebody new", []any{last.Update.Form.Shown(last.Update.Score), last.Update.Hiding.Hidden}, []any{5.0, false})
			equal(t, "data", last.Update.Data, map[bool]string{true: "d-a"}[name == "data"])
		})
	}
}

// TestForgetIsADeleteToOthers: a sidecar gets a delete, in sequence, with the sum of those that stay.
func TestForgetIsADeleteToOthers(t *testing.T) {
	t.Parallel()
	h := quiet(t, nil)
	local := localboard.New(h.board)
	r := rules{trim: 2}
	for i, m := range []string{"a", "b", "c"} {
		applyLocally(t, local, h.applyOne(t, r, Command{Member: m, Op: wire.OpIncr, Number: float64(i + 1), OrderID: "o" + m}))
	}
	applyLocally(t, local, h.applyOne(t, r, Command{Member: "c", Op: wire.OpForget, OrderID: "f", Reason: "x"}))
	local.Publish()
	same(t, "copy", rankcache.One(t.Context(), local, rankcache.Query{Limit: 9}).Entries, h.ranking(t))
	h.checkSum(t)
	u := wire.Update{Board: h.board, Member: "c", Op: wire.OpForget, Run: 7, Seq: 5, HasSum: true, OrderID: "f", At: 1}
	if text := string(wire.AppendUpdate(nil, &u)); !strings.Contains(text, `"v":2`) || !strings.Contains(text, `"op":"delete"`) {
		t.Error(text)
	}
}

// TestForgetHasARightOfItsOwn: a post of scores forgets nobody, nor does a token of classes without the right; a closed
// board tells so; nothing that is refused, nor the log, has the member.
func TestForgetHasARightOfItsOwn(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	h := quiet(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	h.do1(t, h.opCommand("incr", "o1", "who-is-it", "delta", 5))
	h.checkRefused(t, fmt.Sprintf(`{"order":"o2","board":%q,"member":"who-is-it","op":"forget","reason":"x"}`, h.board), "op")
	h.checkRefused(t, fmt.Sprintf(`{"order":"o3","board":%q,"member":"forgotten:0123456789ABCDEF","op":"incr","delta":1}`, h.board), "member")
	body := fmt.Sprintf(`{"member":"who-is-it","reason":"x","boards":[%q]}`, h.board)
	for classes, want := range map[string]int{"c": 403, "": 403, "c " + ForgetRight: 200} {
		req := httptest.NewRequest(http.MethodPost, ForgetPath, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		h.Handler().ServeHTTP(rec, req.WithContext(AllowClasses(req.Context(), strings.Fields(classes))))
		if rec.Code != want {
			t.Errorf("%q: %d %s", classes, rec.Code, rec.Body)
		}
	}
	equal(t, "board", h.scores(t), map[string]float64{})
	m := h.meta(t)
	m.Life = wire.LifeClosed
	must(t, h.client.Set(t.Context(), h.opts.Names.MetaKey(h.board), wire.AppendMeta(nil, &m), 0).Err())
	equal(t, "closed", h.forget(t, "who-is-it", h.board), []string{"ended"})
	equal(t, "not a board", h.forget(t, "who-is-it", "a b"), []string{"bad_argument"})
	c := &Command{Board: h.board, Member: "who-is-it", Op: wire.OpForget}
	if record := h.refusedMessage(refusals["ended"], c, []byte(`{"member":"who-is-it"}`), commandSource{}); strings.Contains(string(record.value), "who-is-it") {
		t.Errorf("%s", record.value)
	}
	if text := log.String(); strings.Contains(text, "who-is-it") || !strings.Contains(text, "member forgotten") {
		t.Error(text)
	}
	for _, bad := range []string{`{"member":"","reason":"x","boards":["b"]}`, `{"member":"m","reason":"x","boards":[]}`, `{"member":"m","boards":["b"],"all":true}`} {
		req := httptest.NewRequest(http.MethodPost, ForgetPath, strings.NewReader(bad))
		req.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		if h.Handler().ServeHTTP(rec, req); rec.Code != 400 {
			t.Errorf("%s: %d %s", bad, rec.Code, rec.Body)
		}
	}
}

// TestForgottenInTheLog: boards of durable classes forget again when Redis is emptied, or comes back as it was before; the
// record has the key of the member's other commands, and what these feed and roll keeps its own. Two writers.
func TestForgottenInTheLog(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *durableFixture, *servers.Redis){
		"emptied": func(t *testing.T, d *durableFixture, _ *servers.Redis) { must(t, d.client.FlushAll(t.Context()).Err()) },
		"as it was": func(t *testing.T, _ *durableFixture, r *servers.Redis) {
			must(t, r.Kill())
			must(t, r.Restart(t.Context()))
		},
	} {
		for _, class := range []string{"gift", "laps", "fans"} {
			t.Run(name+" "+class, func(t *testing.T) {
				t.Parallel()
				r := testkit.StartRedis(t, servers.RedisOptions{})
				d := newDurable(t, r, testkit.Kfake(t).Addr())
				d.choose(class)
				d.fixture.posts.time = testTimeout
				d.run(t)
				d.restarted(t).run(t)
				d.fixture.post(t, d.gift("day", 1))
				d.post(t, 20)
				d.awaitWhole(t)
				must(t, d.client.Save(t.Context()).Err())
				boards := []rankcache.BoardID{d.board}
				for _, key := range d.client.Keys(t.Context(), "day*:"+d.zone+":????????").Val() {
					boards = append(boards, rankcache.BoardID(key))
				}
				if len(boards) < 4 { // the day's, and two that roll
					t.Fatal(boards)
				}
				equal(t, "forget", strings.Join(d.forget(t, "m1", boards...), " "), strings.TrimSpace(strings.Repeat("forget ", len(boards))))
				delete(d.want, "m1")
				d.awaitWhole(t)
				for _, b := range boards {
					equal(t, string(b), d.traces(t, b, "m1"), []string(nil))
				}
				lose(t, d, r)
				d.awaitWhole(t)
				d.checkOnce(t)
				if d.post(t, 1); class == "fans" { // of m0
					equal(t, "the guild has its points", d.client.ZScore(t.Context(), "guilds:"+d.zone, "g1").Val() > 0, true)
				}
			})
		}
	}
}
