package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// forget runs rankcache members forget, and tells of each board what has become of the member.
func forget(t *testing.T, member string, args ...string) (is map[rankcache.BoardID]string, text string, err error) {
	t.Helper()
	var out bytes.Buffer
	args = append([]string{"members", "forget", "--member", member, "--reason", "request 17", "--yes", "-o", "json"}, args...)
	err = cli.Run(t.Context(), NewCommand(), args, &out, io.Discard)
	var r struct {
		Boards []struct {
			Board rankcache.BoardID
			Is    string
		}
	}
	_ = json.Unmarshal(out.Bytes(), &r) // of bad flags there is none
	is = make(map[rankcache.BoardID]string)
	for _, b := range r.Boards {
		is[b.Board] = b.Is
	}
	return is, out.String(), err
}

// forgotten repeats it until it is done, as an operator would, and wants one thing of a board that has the member.
func forgotten(t *testing.T, board rankcache.BoardID, want, member string, args ...string) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		is, text, err := forget(t, member, args...)
		if err == nil && is[board] != want && is[board] != "" { // without it an earlier run has done it
			err = fmt.Errorf("%s is %q, want %q: %s", board, is[board], want, text)
		}
		return err
	})
}

// checked wants all boards of a ledger to be proved, beside Redis and each change, too.
func checked(t *testing.T, database string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if err := cli.Run(t.Context(), NewCommand(), append([]string{"ledger", "check", "--deep", "--database", database}, args...), &out, io.Discard); err != nil || !strings.HasSuffix(out.String(), " 0 not proved\n") {
		t.Errorf("ledger check: %v\n%s", err, out.String())
	}
}

func migrated(t *testing.T, database string) {
	t.Helper()
	must(t, cli.Run(t.Context(), NewCommand(), []string{"ledger", "migrate", "--database", database}, io.Discard, io.Discard))
}

// rowsOf returns the rows of a question as texts.
func rowsOf(t *testing.T, database, question string) (all string) {
	t.Helper()
	rows, err := testkit.SQL(t, database).QueryContext(t.Context(), question)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		must(t, rows.Scan(&text))
		all += text + " "
	}
	must(t, rows.Err())
	return strings.TrimSpace(all)
}

// TestForgetWhileABoardCloses: one member is forgotten while the board is open, one between the controller's mark and its
// close, one after the final. The ledger is down until then, and has it all the same: the final is of those that were there.
func TestForgetWhileABoardCloses(t *testing.T) {
	t.Parallel()
	database := testkit.Database(t, "postgres")
	migrated(t, database)
	e := newEnding(t, 1, "--database", database, "--finals", "file://"+t.TempDir())
	e.ahead.Store(-int64(time.Hour)) // no board is due
	file, err := os.ReadFile(e.rooms)
	must(t, err)
	must(t, os.WriteFile(e.rooms, bytes.ReplaceAll(file, []byte("grace: 1s"), []byte("grace: 20s")), 0o600)) // in which all is posted
	redisAt := "redis://" + e.redis.Options().Addr
	args := []string{"--redis", redisAt, "--database", database, "--scores", e.writer.Listeners.Addr("scores")}
	board := e.postTogether("early", "between", "m1", "paid", "m2")
	life := func() wire.Life {
		m, err := wire.ParseMeta(e.redis.Get(t.Context(), wire.DefaultNames().MetaKey(board)).Val())
		must(t, err)
		return m.Life
	}
	reaches := func(want wire.Life) {
		t.Helper()
		e.eventually(fmt.Sprint("boards have no life ", want), func() int { return int(want) - int(life()) })
	}

	forgotten(t, board, "forgotten", "early", args...)
	if life() != wire.LifeOpen {
		t.Error("the board is closing too early")
	}
	e.ahead.Store(0)
	reaches(wire.LifeClosing)
	forgotten(t, board, "forgotten", "between", args...)
	if life() != wire.LifeClosing {
		t.Error("the board was closed without the ledger")
	}
	startListening(t, "ledger", "--http", "127.0.0.1:0", "--database", database, "--topic-ledger", e.name+"-ledger", "--topic-finals", e.name+"-finals", "--ledger-group", e.name,
		"--kafka", e.kafka, "--redis", redisAt)
	reaches(wire.LifeFinal)
	for range 2 {
		forgotten(t, board, "closed", "paid", args...)
	}
	if members := strings.Join(e.redis.ZRangeArgs(t.Context(), redis.ZRangeArgs{Key: string(board), Start: 0, Stop: -1, Rev: true}).Val(), " "); members != "m2 paid m1" {
		t.Errorf("Redis has %s", members)
	}
	if final := rowsOf(t, database, "SELECT member FROM rank_final WHERE board = '"+string(board)+"' ORDER BY raw DESC"); final != "m2 paid m1" {
		t.Errorf("the final has %s", final)
	}
	testkit.Eventually(t, time.Minute, func() error {
		if later := rowsOf(t, database, "SELECT member FROM rank_forget WHERE board = '"+string(board)+"' ORDER BY member"); later != "between early paid" {
			return errors.New("to be forgotten in the books: " + later)
		}
		return nil
	})
	checked(t, database, "--redis", redisAt)
}

// postTogether posts one point for the first member, two for the second and so on, in one board.
func (e *ending) postTogether(members ...string) (board rankcache.BoardID) {
	e.t.Helper()
	e.eventually("posts are late", func() int {
		at := time.Now().UnixMilli()
		for i, m := range members {
			status, answer := e.post(fmt.Sprintf(`{"order":"%s%d","class":"gift","dims":{"zone":"1"},"member":%q,"op":"incr","delta":%d,"at":%d}`, m, at, m, i+1, at))
			if status == http.StatusUnprocessableEntity {
				return 1
			}
			var u struct{ Board rankcache.BoardID }
			if err := json.Unmarshal([]byte(answer), &u); status != http.StatusOK || err != nil {
				e.t.Fatalf("%d %s, %v", status, answer, err)
			}
			board = u.Board
		}
		return 0
	})
	return board
}

// forgetBoards are boards of two classes with a ledger, one of which splits them.
const forgetBoards = "classes:\n- {name: narrow, board: %q, period: none, ledger: true, ops: [incr]}\n- {name: wide, board: %q, period: none, ledger: true, shards: 4, ops: [incr]}\n"

// TestForgetOnACluster: boards on several masters forget a member by two writers at once, of which only one reads the commands;
// repeats of earlier orders do not bring it back. The ledger is started afterwards.
func TestForgetOnACluster(t *testing.T) {
	t.Parallel()
	addrs, topic, database := testkit.RedisCluster(t), testkit.Name(t), testkit.Database(t, testkit.SQLKinds[0])
	at := addrs[0] + "?addr=" + strings.Join(addrs[1:], "&addr=")
	more := []string{"--redis-mode", "cluster", "--topic-ledger", topic, "--ledger-partitions", "1"}
	h := newFixtureOn(t, at, more...)
	h.writeRooms(t, fmt.Sprintf(forgetBoards, topic+":{zone}", topic+"-wide:{zone}"))
	second := *h
	group := h.common[slices.Index(h.common, "--topic-commands")+1]
	second.writer = startListening(t, slices.Concat([]string{"write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--group", group}, h.common, more)...)
	who := topic + "-who"
	boards := make(map[rankcache.BoardID]bool)
	orders := make(map[string]rankcache.BoardID)
	for i := range 12 {
		for _, member := range []string{who, "m1", "m2"} {
			class := []string{"narrow", "wide"}[i%2]
			order := fmt.Sprintf(`{"order":"%s%d","class":%q,"dims":{"zone":"z%d"},"member":%q,"op":"incr","delta":%d,"at":%d}`, member, i, class, i, member, i+1, time.Now().UnixMilli())
			if b := postUntil(t, []*fixture{h, &second}[i/2%2], order); member == who {
				boards[b], orders[order] = true, b
			}
		}
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Protocol: 2})
	t.Cleanup(func() { client.Close() })
	has := func() (n int) {
		for b := range boards {
			if err := client.ZScore(t.Context(), string(b), who).Err(); err == nil {
				n++
			} else if !errors.Is(err, redis.Nil) {
				t.Error(err)
			}
		}
		return n
	}
	if has() != 12 {
		t.Fatalf("the member is on %d boards", has())
	}
	by := func(w *fixture) []string {
		return []string{"--redis", "redis://" + at, "--redis-mode", "cluster", "--redis-timeout", "2s", "--scores", w.writer.Addr("scores")}
	}
	var both sync.WaitGroup
	for _, w := range []*fixture{h, &second} {
		both.Go(func() {
			if is, _, err := forget(t, who, by(w)...); err != nil { // a busy machine may not answer in time
				t.Log(is, err)
			}
		})
	}
	both.Wait()
	for _, w := range []*fixture{h, &second} {
		forgotten(t, "", "", who, by(w)...)
	}
	for order, b := range orders {
		if again := postUntil(t, &second, order); again != b || has() != 0 {
			t.Fatalf("%d boards have the member after a repeat on %s", has(), b)
		}
	}
	migrated(t, database)
	startListening(t, slices.Concat([]string{"ledger", "--http", "127.0.0.1:0", "--database", database, "--redis-mode", "cluster", "--topic-ledger", topic, "--ledger-group", topic}, h.common)...)
	testkit.Eventually(t, time.Minute, func() error {
		if n := rowsOf(t, database, "SELECT count(*) FROM rank_forget WHERE member = '"+who+"'"); n != "12" {
			return fmt.Errorf("%s boards of 12 are to be forgotten in the books", n)
		}
		return nil
	})
	checked(t, database, "--redis", "redis://"+at, "--redis-mode", "cluster", "--redis-timeout", "2s")
}

// postUntil posts a command until it is answered, and returns its board.
func postUntil(t *testing.T, h *fixture, command string) (board rankcache.BoardID) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		var u struct{ Board rankcache.BoardID }
		answer := postOrder(t, h, command)
		if err := json.Unmarshal([]byte(answer), &u); err != nil || u.Board == "" {
			return fmt.Errorf("%s, %v", answer, err)
		}
		board = u.Board
		return nil
	})
	return board
}

// TestForgetWithoutRedis: Redis is down when the command is run, which changes nothing and tells what to check. Once it is
// back the command is repeated, which does no harm.
func TestForgetWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{Dir: t.TempDir(), Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	h := newFixtureOn(t, server.Addr(), "--topic-ledger", testkit.Name(t), "--ledger-partitions", "1")
	give := func(order string, b rankcache.BoardID, member string, n int) {
		t.Helper()
		postUntil(t, h, fmt.Sprintf(`{"order":%q,"board":%q,"member":%q,"op":"incr","delta":%d,"at":%d}`, order, b, member, n, time.Now().UnixMilli()))
	}
	give("o1", h.star, "who", 5)
	give("o2", h.small, "who", 5)
	give("o3", h.star, "m1", 3)
	args := []string{"--redis", "redis://" + server.Addr(), "--scores", h.writer.Addr("scores")}
	client := server.Client()
	defer client.Close()
	testkit.Eventually(t, time.Minute, func() error { // else Redis counts as damaged, and boards wait for the ledger
		for _, key := range client.Keys(t.Context(), "rankcache:applied:*").Val() {
			if at, ok := wire.ParsePosition(client.HGet(t.Context(), key, "0").Val()); ok && at.Next > 2 {
				return nil
			}
		}
		return errors.New("there is no position behind the posts")
	})
	must(t, server.Kill())
	is, text, err := forget(t, "who", args...)
	if cli.ExitCode(err) != cli.ExitDiffers || is[h.star] != "" || !strings.Contains(text, server.Addr()) || !strings.Contains(err.Error(), "check") {
		t.Errorf("without Redis: %v, %v\n%s", err, is, text)
	}
	must(t, server.Restart(t.Context()))
	members := func(b rankcache.BoardID) string {
		return strings.Join(client.ZRange(t.Context(), string(b), 0, -1).Val(), " ")
	}
	if members(h.star) != "m1 who" || members(h.small) != "who" {
		t.Errorf("a command that failed leaves %q and %q", members(h.star), members(h.small))
	}
	for range 2 {
		forgotten(t, h.star, "forgotten", "who", args...)
	}
	if members(h.star) != "m1" || members(h.small) != "" {
		t.Errorf("the boards have %q and %q", members(h.star), members(h.small))
	}
	give("o4", h.star, "who", 2)
	if score := client.ZScore(t.Context(), string(h.star), "who").Val(); score != 2 {
		t.Errorf("somebody new has %v", score)
	}
}
