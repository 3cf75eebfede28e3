package rankcache

import (
	"sync"
	"testing"
)

// TestKept: each owner finds what it has kept itself, made once for all who come together.
func TestKept(t *testing.T) {
	var k Kept
	a, b := new(int), new(int)
	made := func(v string) func() any { return func() any { return &v } }
	first := k.By(a, made("a"))
	if other := k.By(b, made("b")); k.By(a, made("c")) != first || *first.(*string) != "a" || *other.(*string) != "b" {
		t.Errorf("%v, %v", first, other)
	}
	got := make([]any, 50)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = k.By("late", made("d")) })
	}
	all.Wait()
	for _, v := range got {
		if v != got[0] {
			t.Fatal("two values are kept for one owner")
		}
	}
	if k.By(a, made("c")) != first {
		t.Error("an owner's value was lost")
	}
	if n := testing.AllocsPerRun(100, func() { k.By(a, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFew: asking for everything keeps no more than MaxFew values, and the newest is among them.
func TestFew(t *testing.T) {
	var f Few[int, *int]
	for i := range 10 * MaxFew {
		first := f.Get(&i, func() *int { return &i })
		if n := len(*f.all.Load()); n > MaxFew || *first != i || f.Get(&i, func() *int { return nil }) != first {
			t.Fatalf("%d values, of %d: %v", n, i, first)
		}
	}
	key, made := -1, 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { f.Get(&key, func() *int { made++; return nil }) })
	}
	all.Wait()
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}
