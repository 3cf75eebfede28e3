package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rankcache"
)

func sampleTops(n int) (tops []HotTop) {
	at := time.Unix(1_760_000_000, 123)
	for i := range n {
		top := &rankcache.Top{Board: rankcache.BoardID(fmt.Sprint("b:", i)), State: rankcache.State{Run: 5, Seq: uint64(i), Sum: 7, HasSum: i%2 == 0}, Members: 1000 + i, Life: rankcache.LifeClosed, PublishedAt: at}
		if !top.HasSum {
			top.Sum = 0
		}
		for m := range i % rankcache.MaxTop {
			top.Entries = append(top.Entries, rankcache.Entry{Member: fmt.Sprint("member", m), Score: -float64(m) / 3})
		}
		if i%3 == 1 && len(top.Entries) > 0 {
			top.Data = top.Data.With("member0", "a car")
		}
		tops = append(tops, HotTop{top, at.Add(time.Duration(i))})
	}
	return tops
}

var sameData = cmp.Comparer(func(a, b *rankcache.Data) bool { return a.Len() == b.Len() && a.Of("member0") == b.Of("member0") })

func encodedTops(t testing.TB, n int) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := encodeTops(&file, sampleTops(n)); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestTopsAreLoadedAsSaved(t *testing.T) {
	s, err := New(filepath.Join(t.TempDir(), "made"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.LoadTops(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for _, n := range []int{1200, 3, 0} { // each replaces the one before
		if err := s.SaveTops(sampleTops(n)); err != nil {
			t.Fatal(err)
		}
		got, err := s.LoadTops()
		if diff := cmp.Diff(sampleTops(n), got, cmpopts.IgnoreUnexported(rankcache.Top{}), sameData); err != nil || diff != "" {
			t.Errorf("%d pages: %v\n%.1000s", n, err, diff)
		}
	}
	if err := s.Sweep(nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LoadTops(); err != nil {
		t.Errorf("after a sweep: %v", err)
	}
}

func TestDamagedTopsAreNotUsed(t *testing.T) {
	whole := encodedTops(t, 5)
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 0x40
		for _, data := range [][]byte{whole[:i], flipped} {
			if tops, err := decodeTops(bytes.NewReader(data)); err == nil {
				t.Fatalf("byte %d of %d: %d pages", i, len(data), len(tops))
			}
		}
	}
	dir := t.TempDir()
	s, _ := New(dir, nil)
	if err := os.WriteFile(filepath.Join(dir, topsFile), whole[:9], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LoadTops(); !errors.Is(err, ErrTruncated) {
		t.Errorf("a file that is cut: %v", err)
	}
}

func FuzzDecodeTops(f *testing.F) {
	f.Add(encodedTops(f, 3))
	f.Add([]byte(topsMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		tops, err := decodeTops(bytes.NewReader(data))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := encodeTops(&again, tops); err != nil {
			t.Fatal(err)
		}
		if back, err := decodeTops(&again); err != nil || len(back) != len(tops) {
			t.Errorf("%d pages, read back %d, %v", len(tops), len(back), err)
		}
	})
}
