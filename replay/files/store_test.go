package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/replay"
)

// sample returns a header with its members, whose ids are of all lengths.
func sample(members int) (replay.Saved, []rankcache.Entry) {
	entries := make([]rankcache.Entry, members)
	for i := range entries {
		id := fmt.Sprint(1_000_000 + i)
		if i%1000 == 7 {
			id += strings.Repeat("x", i%20_000)
		}
		entries[i] = rankcache.Entry{Member: id, Score: float64(members-i) / 3}
	}
	at := time.Unix(1_760_000_000, 123)
	return replay.Saved{Board: "1_2:3", Total: "seq", State: rankcache.State{Run: 5, Seq: 917, Sum: 77, HasSum: true}, Members: members, TakenAt: at, CurrentAt: at.Add(-time.Second),
		Topic: "update_cache_1_2.3", TopicID: "3xnQ", Offsets: []int64{5, 0, 1 << 40}}, entries
}

// inPieces gives the entries as a board does.
func inPieces(entries []rankcache.Entry) iter.Seq[[]rankcache.Entry] {
	return slices.Chunk(entries, 63)
}

func encoded(t testing.TB, members int) []byte {
	t.Helper()
	snap, entries := sample(members)
	var file bytes.Buffer
	if err := encode(&file, &snap, inPieces(entries)); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestLoadReturnsWhatWasSaved(t *testing.T) {
	for _, members := range []int{0, 1, 63, 30_000} {
		s, err := New(filepath.Join(t.TempDir(), "made", "by", "it"), nil)
		if err != nil {
			t.Fatal(err)
		}
		snap, entries := sample(members)
		if err := s.Save(snap, inPieces(entries)); err != nil {
			t.Fatal(err)
		}
		got, back, err := s.Load(snap.Board)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(snap, got) + cmp.Diff(entries, back); d != "" {
			t.Errorf("%d members: %.400s", members, d)
		}
	}
}

func TestUnknownTimesStayUnknown(t *testing.T) {
	snap, entries := sample(1)
	snap.CurrentAt = time.Time{}
	var file bytes.Buffer
	if err := encode(&file, &snap, inPieces(entries)); err != nil {
		t.Fatal(err)
	}
	if got, _, err := decode(&file, int64(file.Len()), "1_2:3", nil); err != nil || !got.CurrentAt.IsZero() {
		t.Errorf("%v, %v", got.CurrentAt, err)
	}
}

// Every file that is cut, and every one with a bit turned, is refused.
func TestDamageIsFound(t *testing.T) {
	file := encoded(t, 200)
	for n := range file {
		if _, _, err := decode(bytes.NewReader(file[:n]), int64(n), "1_2:3", nil); !errors.Is(err, ErrTruncated) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(file), err)
		}
	}
	for n := range 8 * len(file) {
		bad := slices.Clone(file)
		bad[n/8] ^= 1 << (n % 8)
		if _, _, err := decode(bytes.NewReader(bad), int64(len(bad)), "1_2:3", nil); err == nil {
			t.Fatalf("bit %d turned: not noticed", n)
		}
	}
	longer := append(slices.Clone(file), 0)
	if _, _, err := decode(bytes.NewReader(longer), int64(len(longer)), "1_2:3", nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte too much: %v", err)
	}
}

// Two blocks in the other order are good each, and not together.
func TestBlocksInTheWrongPlaceAreFound(t *testing.T) {
	file := encoded(t, 30_000)
	at := len(magic) + 8 + int(binary.LittleEndian.Uint32(file[len(magic)+4:])) + 4
	length := func(at int) int { return 4 + int(binary.LittleEndian.Uint32(file[at:])) + 4 }
	second := at + length(at)
	end := second + length(second)
	swapped := slices.Concat(file[:at], file[second:end], file[at:second], file[end:])
	if _, _, err := decode(bytes.NewReader(swapped), int64(len(swapped)), "1_2:3", nil); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

func TestWhatIsRefusedHasAKind(t *testing.T) {
	good := encoded(t, 50)
	otherVersion := slices.Clone(good)
	otherVersion[len(magic)] = versionData + 1
	turned := slices.Clone(good)
	turned[len(turned)/2] ^= 1
	for name, c := range map[string]struct {
		file  []byte
		want  error
		aside bool
	}{
		"absent":  {nil, fs.ErrNotExist, false},
		"cut":     {good[:len(good)-3], ErrTruncated, true},
		"corrupt": {turned, ErrCorrupt, true},
		"foreign": {[]byte("something else, long enough to be read"), ErrForeign, false},
		"version": {otherVersion, ErrVersion, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(t.TempDir(), prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			if c.file != nil {
				writeFile(t, s.path("1_2:3"), c.file)
			}
			if _, _, err := s.Load("1_2:3"); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if n := testutil.ToFloat64(s.metrics.loads.WithLabelValues(name)); n != 1 {
				t.Errorf("counted %v times", n)
			}
			if _, err := os.Stat(s.path("1_2:3") + badEnding); (err == nil) != c.aside {
				t.Errorf("moved aside: %v, want %v", err == nil, c.aside)
			}
		})
	}
	t.Run("another board's", func(t *testing.T) {
		s, _ := New(t.TempDir(), nil)
		writeFile(t, s.path("5"), good)
		if _, _, err := s.Load("5"); !errors.Is(err, ErrForeign) {
			t.Error(err)
		}
	})
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A save that fails at whatever byte leaves the file before and nothing else.
func TestFailedSaveLeavesTheFileBefore(t *testing.T) {
	dir := t.TempDir()
	s, _ := New(dir, nil)
	snap, entries := sample(5000)
	if err := s.Save(snap, inPieces(entries)); err != nil {
		t.Fatal(err)
	}
	snap.Seq++
	if err := s.Save(snap, inPieces(entries[1:])); err == nil {
		t.Fatal("fewer members than announced were saved")
	}
	if got, _, err := s.Load(snap.Board); err != nil || got.Seq != snap.Seq-1 {
		t.Errorf("%+v, %v", got, err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
	if n := testutil.ToFloat64(s.metrics.saves.WithLabelValues("failed")); n != 1 {
		t.Errorf("%v failures counted", n)
	}
}

// shortDisk takes so many bytes.
type shortDisk int

func (d *shortDisk) Write(p []byte) (int, error) {
	if *d -= shortDisk(len(p)); *d < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func TestFullDiskIsSaid(t *testing.T) {
	snap, entries := sample(5000)
	for space := shortDisk(0); space < 50_000; space += 7_000 {
		disk := space
		if err := encode(&disk, &snap, inPieces(entries)); err == nil {
			t.Errorf("%d bytes were enough", space)
		}
	}
}

func TestFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, nil)
	s, err := New(filepath.Join(file, "in-it"), nil)
	if err != nil {
		t.Fatal(err)
	}
	snap, entries := sample(1)
	if err := s.Save(snap, inPieces(entries)); err == nil {
		t.Error("saved where nothing can be")
	}
	if _, _, err := s.Load(snap.Board); err == nil {
		t.Error("loaded from where nothing can be")
	}
}

func TestSweep(t *testing.T) {
	s, _ := New(t.TempDir(), nil)
	if err := (&Store{dir: s.dir + "/none"}).Sweep(nil, 0); err != nil {
		t.Error("no folder:", err)
	}
	old, now := time.Now().Add(-2*time.Hour), time.Now()
	for name, written := range map[string]time.Time{"kept.board": old, "gone.board": old, "going.board": now,
		"gone.123.tmp": old, "kept.7.tmp": now, "kept.board.bad": old, "notes.txt": old} {
		writeFile(t, filepath.Join(s.dir, name), nil)
		if err := os.Chtimes(filepath.Join(s.dir, name), written, written); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sweep([]rankcache.BoardID{"kept"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if d := cmp.Diff([]string{"going.board", "kept.7.tmp", "kept.board", "notes.txt"}, files); d != "" {
		t.Error(d)
	}
}

// A load during concurrent saves returns one of the files, whole.
func TestSavesAtOnce(t *testing.T) {
	s, _ := New(t.TempDir(), nil)
	var all sync.WaitGroup
	for i := range 4 {
		snap, entries := sample(500 * (i + 1))
		if err := s.Save(snap, inPieces(entries)); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			all.Go(func() {
				if err := s.Save(snap, inPieces(entries)); err != nil {
					t.Error(err)
				}
				if _, _, err := s.Load(snap.Board); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
}

// What is read is what was written, or refused; nothing takes the process down,
// or more memory than the file explains.
func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, 0))
	f.Add(encoded(f, 3))
	f.Add(encoded(f, 3)[:40])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, file []byte) {
		resum(file)
		snap, entries, err := decode(bytes.NewReader(file), int64(len(file)), "1_2:3", nil)
		if err != nil {
			if kind(err) == "failed" {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		var again bytes.Buffer
		if err := encode(&again, &snap, inPieces(entries)); err != nil {
			t.Fatal(err)
		}
		got, back, err := decode(&again, int64(again.Len()), "1_2:3", nil)
		if d := cmp.Diff(snap, got) + cmp.Diff(entries, back); d != "" || err != nil {
			t.Error(d, err)
		}
	})
}

// resum puts right the checksums of a file, so that the fuzzer gets past them.
func resum(file []byte) {
	var sum uint32
	for at, next := 0, len(magic)+8; next <= len(file); {
		sum = crc32.Update(sum, castagnoli, file[at:next])
		n := int(min(binary.LittleEndian.Uint32(file[next-4:]), maxHeader))
		if n == 0 {
			n = 8
		}
		body := next + n
		if body+4 > len(file) {
			return
		}
		sum = crc32.Update(sum, castagnoli, file[next:body])
		binary.LittleEndian.PutUint32(file[body:], sum)
		at, next = body+4, body+8
	}
}

// 210,000 members: go test -run '^$' -bench . ./replay/files
func BenchmarkFile(b *testing.B) {
	snap, entries := sample(210_000)
	for i := range entries {
		entries[i].Member = fmt.Sprint(1_000_000 + i)
	}
	s, _ := New(b.TempDir(), nil)
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			if err := s.Save(snap, inPieces(entries)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("load", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := s.Load(snap.Board); err != nil {
				b.Fatal(err)
			}
		}
	})
	if info, err := os.Stat(s.path(snap.Board)); err == nil {
		b.Log(info.Size(), "bytes")
	}
}

func TestReadHeaderReturnsTheSize(t *testing.T) {
	s, err := New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, members := range []int{0, 1, 1000, 50_000} {
		entries := make([]rankcache.Entry, members)
		for i := range entries {
			entries[i] = rankcache.Entry{Member: fmt.Sprintf("%020d", i), Score: float64(-i)}
		}
		if err := s.Save(replay.Saved{Board: "b", Members: members, TakenAt: time.Now()}, inPieces(entries)); err != nil {
			t.Fatal(err)
		}
		snap, idBytes, err := s.ReadHeader("b")
		if err != nil || snap.Members != members {
			t.Errorf("%d members: %+v, %v", members, snap, err)
		}
		if members >= 1000 && (idBytes < 20 || idBytes > 22) {
			t.Errorf("%d members: ids of %d bytes, want 20", members, idBytes)
		}
	}
}

func TestReadHeaderOfABadFile(t *testing.T) {
	s, err := New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ReadHeader("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, _, err := s.ReadHeader("a b"); !errors.Is(err, rankcache.ErrBoard) {
		t.Errorf("no board: %v", err)
	}
	if err := os.WriteFile(s.path("b"), []byte("RANKLAST"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ReadHeader("b"); !errors.Is(err, ErrTruncated) {
		t.Errorf("cut: %v", err)
	}
	whole := encoded(t, 100)
	if err := os.WriteFile(s.path("b"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ReadHeader("b"); !errors.Is(err, ErrForeign) {
		t.Errorf("another board's: %v", err)
	}
	if err := os.WriteFile(s.path("1_2:3"), whole[:200], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ReadHeader("1_2:3"); !errors.Is(err, ErrTruncated) {
		t.Errorf("too short for its members: %v", err)
	}
}

// A process that was killed while it saved leaves a temporary file, which the next
// process removes before it reads or writes anything, however new it is.
func TestTemporaryFilesOfAKilledProcessAreRemoved(t *testing.T) {
	snap, entries := sample(1)
	for name, first := range map[string]func(*Store) error{
		"load": func(s *Store) error { _, _, err := s.Load("none"); return err },
		"save": func(s *Store) error { return s.Save(snap, inPieces(entries)) },
	} {
		s, _ := New(t.TempDir(), nil)
		temp, other := filepath.Join(s.dir, "1_2:3.123.tmp"), filepath.Join(s.dir, "notes.txt")
		writeFile(t, temp, []byte("RANKLAST"))
		writeFile(t, other, nil)
		if err := first(s); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if _, err := os.Stat(temp); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("first %s: the temporary file is still there: %v", name, err)
		}
		if _, err := os.Stat(other); err != nil {
			t.Errorf("first %s: another file is gone: %v", name, err)
		}
	}
}
