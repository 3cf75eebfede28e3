package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/testkit"
	"rankcache/wire"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestRun prints a page and standings of a board in a real Redis.
func TestRun(t *testing.T) {
	addr, board := testkit.Redis(t), testkit.Name(t)
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	members := []redis.Z{{Score: 30, Member: "ann"}, {Score: 50, Member: "bob"}, {Score: 40, Member: "cyd"}}
	if err := client.ZAdd(t.Context(), board, members...).Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ member, want string }{
		{"ann", "ann has rank 3 with 30"},
		{"zoe", "zoe is not on the board"},
	} {
		var out strings.Builder
		if err := run(t.Context(), []string{"-redis", "redis://" + addr, "-limit", "2", board, c.member}, &out); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(strings.Fields(out.String()), " ")
		want := board + ", 3 members, from redis 1 bob 50 2 cyd 40 " + c.want
		if got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
}

// TestRunShowsScoresOfAClass: of boards that rank ties the whole score is printed, as the rooms file tells it.
func TestRunShowsScoresOfAClass(t *testing.T) {
	addr, board := testkit.Redis(t), testkit.Name(t)
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	if err := client.ZAdd(t.Context(), board, redis.Z{Score: wire.TieScore(10, 1, false), Member: "ann"}).Err(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	if err := os.WriteFile(file, []byte("classes:\n- {name: race, board: \""+board+"\", period: none, ties: first}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := run(t.Context(), []string{"-redis", "redis://" + addr, "-rooms", file, board, "ann"}, &out)
	got := strings.Join(strings.Fields(out.String()), " ")
	if want := board + ", 1 members, from redis 1 ann 10 ann has rank 1 with 10"; err != nil || got != want {
		t.Errorf("%v, printed %q, want %q", err, got, want)
	}
}

// TestRunErrors checks that a wrong call and an unreachable Redis are errors.
func TestRunErrors(t *testing.T) {
	for _, args := range [][]string{{}, {"1_2_3", "ann", "bob"}, {"-redis", "nowhere", "1_2_3"}, {"-redis", "redis://127.0.0.1:1", "1_2_3"}, {"-rooms", "/nowhere", "1_2_3"}} {
		var out strings.Builder
		if err := run(t.Context(), args, &out); err == nil {
			t.Errorf("%q printed %q and returned no error", args, out.String())
		}
	}
}
