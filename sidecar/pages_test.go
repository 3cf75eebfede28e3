package sidecar

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/sidecar/internal/fixture"
)

// TestPagesFollowTheTop: pages are the same for as long as the top is, and those of a
// new top are made from the ones before.
func TestPagesFollowTheTop(t *testing.T) {
	env := newEnv()
	r := env.reader()
	slot := r.NewSlot(func(previous any) any {
		n, _ := previous.(*int)
		next := new(int)
		if n != nil {
			*next = *n + 1
		}
		return next
	})
	pages := func(board rankcache.BoardID) *Pages {
		q := Query{Board: board}
		a, err := r.Top(t.Context(), q, 1)
		if err != nil {
			t.Fatal(err)
		}
		return r.Pages(&q, &a)
	}
	for _, board := range []rankcache.BoardID{"local", "hot"} {
		if first := pages(board); pages(board) != first || *first.Kept(slot).(*int) != 0 {
			t.Errorf("%s: the same top has other pages", board)
		}
	}
	if first := pages("any"); pages("any") == first {
		t.Error("two calls to Redis have the same pages")
	}
	env.Local.Publish(918)
	if n := *pages("local").Kept(slot).(*int); n != 1 {
		t.Errorf("the pages of the second top follow %d others, want 1", n)
	}
	if n := *pages("hot").Kept(slot).(*int); n != 0 {
		t.Errorf("those of another board follow %d", n)
	}
}

// TestPagesBySlot: a protocol finds what it kept itself, also one that came late.
func TestPagesBySlot(t *testing.T) {
	env := newEnv()
	r := env.reader()
	constant := func(s string) func(any) any { return func(any) any { return s } }
	a := r.NewSlot(constant("a"))
	q := Query{Board: "local"}
	answer, _ := r.Top(t.Context(), q, 1)
	first := r.Pages(&q, &answer)
	b := r.NewSlot(constant("b"))
	second := r.Pages(&q, &answer)
	if first.Kept(a) != "a" || second.Kept(a) != "a" || second.Kept(b) != "b" {
		t.Errorf("%v, %v", first.kept, second.kept)
	}
}

// TestPagesAreDroppedWithTheBoard: what was kept for a board that is not read here any
// more is freed, and so is what was kept for an older top.
func TestPagesAreDroppedWithTheBoard(t *testing.T) {
	env := newEnv()
	boards := fixture.Boards[Board]{"local": env.Local, "tiny": env.Tiny}
	cfg := env.config()
	cfg.Boards = boards
	r := readerOf(t, cfg)
	r.NewSlot(func(any) any { return new([1 << 10]byte) })
	kept := func(id rankcache.BoardID) weak.Pointer[rankcache.Top] {
		q := Query{Board: id}
		a, err := r.Top(t.Context(), q, 1)
		if err != nil {
			t.Fatal(err)
		}
		r.Pages(&q, &a)
		return weak.Make(a.top)
	}
	freed := func(what string, top weak.Pointer[rankcache.Top]) {
		t.Helper()
		testkit.Eventually(t, 20*time.Second, func() error {
			if runtime.GC(); top.Value() != nil {
				return fmt.Errorf("%s is still in memory", what)
			}
			return nil
		})
	}
	local, tiny, hot := kept("local"), kept("tiny"), kept("hot")
	env.Local.Publish(918)
	kept("local")
	freed("an older top", local)
	delete(boards, "tiny")
	env.Tiny.Head.Store(nil)
	env.Hot.Cool("hot")
	r.DropPages()
	freed("a board that was closed", tiny)
	freed("a board that is not hot any more", hot)
	if n := len(r.topCache.state.Load().boards); n != 1 {
		t.Errorf("%d boards have pages, want 1", n)
	}
}
