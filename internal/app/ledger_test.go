package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// TestLedgerKeepsWhatIsPosted: what a writer has answered is in both kinds of database, and
// the ledger's own check finds what is not.
func TestLedgerKeepsWhatIsPosted(t *testing.T) {
	t.Parallel()
	topic := testkit.Name(t)
	h := newFixture(t, "--topic-ledger", topic, "--ledger-partitions", "2")
	h.give(t, h.star, 3)
	h.give(t, h.small, 2)
	rows := 5 // with those that are given in the first database's turn
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			url := testkit.Database(t, kind)
			l := startListening(t, append([]string{"ledger", "--http", "127.0.0.1:0", "--database", url, "--topic-ledger", topic, "--ledger-group", testkit.Name(t)}, h.common...)...)
			testkit.Eventually(t, time.Minute, func() error {
				_, body := l.Get("http", "/status")
				return contains(body, fmt.Sprintf(`"behind":0,"rows":%d,`, rows))
			})
			if code, body := l.Get("http", "/readyz"); code != http.StatusOK {
				t.Errorf("/readyz: %d %s", code, body)
			}
			var out bytes.Buffer
			must(t, cli.Run(t.Context(), NewCommand(), []string{"ledger", "check", "--database", url}, &out, io.Discard))
			if out.String() != "2 boards, 0 not proved\n" {
				t.Errorf("ledger check prints %q", out.String())
			}
			checked := make(chan error, 1)
			go func() {
				checked <- cli.Run(t.Context(), NewCommand(), []string{"ledger", "check", "--database", url, "--redis", "redis://" + testkit.Redis(t), "--deep"}, &out, io.Discard)
			}()
			for under := true; under; { // load
				select {
				case err := <-checked:
					if under = false; err != nil {
						t.Errorf("ledger check beside Redis: %v\n%s", err, out.String())
					}
				default:
					h.give(t, h.star, 1)
					rows++
				}
			}
			spoil(t, url, string(h.star))
			err := cli.Run(t.Context(), NewCommand(), []string{"ledger", "check", "--database", url, "-o", "json"}, &out, io.Discard)
			if exit, ok := errors.AsType[*cli.ExitError](err); !ok || exit.Code != cli.ExitDiffers || !strings.Contains(out.String(), `"missing": 1`) {
				t.Errorf("ledger check after a row was deleted: %v\n%s", err, out.String())
			}
		})
	}
}

// spoil deletes a row by hand.
func spoil(t *testing.T, url, board string) {
	t.Helper()
	db := testkit.SQL(t, url)
	if _, err := db.ExecContext(t.Context(), "DELETE FROM rank_log WHERE seq = 2 AND board = '"+board+"'"); err != nil {
		t.Fatal(err)
	}
}

func postOrder(t *testing.T, h *fixture, body string) string {
	t.Helper()
	resp, err := http.Post(h.writer.URL("scores", "/v1/scores"), "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// No error of the database tells its password.
func TestDatabasePasswordIsNotTold(t *testing.T) {
	for _, url := range []string{"postgres://u:hush@127.0.0.1:1/d", "mysql://u:hush@127.0.0.1:1/d", "postgres://u:hush@127.0.0.1:x/d", "hush", "postgres://u:hush@h/d?sslmode=hush",
		"mysql://u:hush@h/d?timeout=hush", "mysql://u:hu%zzsh@h/d", "oracle://u:hush@h/d"} {
		var out bytes.Buffer
		err := cli.Run(t.Context(), NewCommand(), []string{"ledger", "migrate", "--database", url}, &out, &out)
		if err == nil || strings.Contains(err.Error()+out.String(), "hu") {
			t.Errorf("%v %s", err, out.String())
		}
	}
}

func TestLedgerFlagsAreChecked(t *testing.T) {
	for _, args := range [][]string{{"--ledger-keep-class", "c=x"}, {"--ledger-keep-class", "c=-1h"}, {"--ledger-keep", "-1h"}, {"--database", "file:x"}, {"--http", "x"}} {
		err := cli.Run(t.Context(), NewCommand(), append([]string{"ledger"}, args...), io.Discard, io.Discard)
		if cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
}
