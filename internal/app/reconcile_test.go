package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
	"rankcache/ledger/reconcile"
	"rankcache/wire"
)

// TestReconcilePostsWhatIsMissing: an order that only the books have goes through the writer into Redis and the ledger, once;
// what differs otherwise stays as it is. Running on finds the same.
func TestReconcilePostsWhatIsMissing(t *testing.T) {
	t.Parallel()
	topic := testkit.Name(t)
	h := newFixture(t, "--topic-ledger", topic, "--ledger-partitions", "2")
	h.give(t, h.small, 1)
	at := time.Now().Add(-2 * time.Minute).UnixMilli()
	order := func(id, board string, delta int) string {
		return fmt.Sprintf(`{"order":%q,"board":%q,"member":"m","op":"incr","delta":%d,"at":%d}`, id, board, delta, at)
	}
	postOrder(t, h, order("both", string(h.star), 5))
	postOrder(t, h, order("other", string(h.star), 5))
	postOrder(t, h, order("extra", string(h.star), 5))

	database, books := testkit.Database(t, testkit.SQLKinds[len(testkit.SQLKinds)-1]), testkit.Database(t, "postgres")
	db := testkit.SQL(t, books)
	for _, text := range []string{"CREATE TABLE gifts (id text, board text, sender text, amount bigint, sent timestamptz)",
		fmt.Sprintf("INSERT INTO gifts SELECT id, '%s', 'm', amount, to_timestamp(%d / 1000.0) FROM (VALUES ('both', 5), ('other', 6), ('lost', 7)) v (id, amount)", h.star, at)} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	query := filepath.Join(t.TempDir(), "books.sql")
	must(t, os.WriteFile(query, []byte(`SELECT id AS order_id, board, sender AS member, 'incr' AS op, amount AS number, (extract(epoch FROM sent) * 1000)::bigint AS at
FROM gifts WHERE sent >= to_timestamp($1::bigint / 1000.0) AND sent < to_timestamp($2::bigint / 1000.0);
`), 0o600))
	startListening(t, append([]string{"ledger", "--http", "127.0.0.1:0", "--database", database, "--topic-ledger", topic, "--ledger-group", testkit.Name(t)}, h.common...)...)
	args := append([]string{"reconcile", "--database", database, "--books", books, "--books-query-file", query, "--topic-ledger", topic,
		"--group", h.common[slices.Index(h.common, "--topic-commands")+1]}, h.common...)
	once := func(more ...string) (r reconcile.Report) {
		t.Helper()
		var out bytes.Buffer
		err := cli.Run(t.Context(), NewCommand(), append(slices.Concat(args, more), "--once", "-o", "json"), &out, io.Discard)
		if exit, ok := errors.AsType[*cli.ExitError](err); !ok || exit.Code != cli.ExitDiffers {
			t.Fatalf("reconcile: %v\n%s", err, out.String())
		}
		must(t, json.Unmarshal(out.Bytes(), &r))
		return r
	}
	testkit.Eventually(t, time.Minute, func() error { // the ledger makes its tables
		return cli.Run(t.Context(), NewCommand(), []string{"ledger", "check", "--database", database}, io.Discard, io.Discard)
	})
	want := map[string]int{reconcile.Missing: 1, reconcile.Different: 1, reconcile.Extra: 1, reconcile.Bad: 0}
	for i, more := range [][]string{{"--dry-run"}, {}} {
		if r := once(more...); fmt.Sprint(r.Counts) != fmt.Sprint(want) || r.Posted != i {
			t.Errorf("%v: %+v", more, r)
		}
	}
	testkit.Eventually(t, time.Minute, func() error {
		if r := once(); r.Counts[reconcile.Missing] != 0 || r.Counts[reconcile.Different] != 1 || r.Counts[reconcile.Extra] != 1 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	if score := h.redis(t).ZScore(t.Context(), wire.DefaultNames().BoardKey(h.star), "m").Val(); score != 22 {
		t.Errorf("m has %v, want 5 + 5 + 5 + 7", score)
	}
	running := startListening(t, append(args, "--health", "127.0.0.1:0")...)
	testkit.Eventually(t, time.Minute, func() error {
		_, body := running.Get("health", "/metrics")
		return errors.Join(contains(body, `rankcache_reconcile_differences{kind="different"} 1`), contains(body, `rankcache_reconcile_differences{kind="missing"} 0`))
	})
	running.becomesReady("reconcile")
}
