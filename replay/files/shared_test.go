package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/objects"
	"rankcache/replay"
)

const sampleName = "update_cache_1_2.3/1_2:3.board"

func topicOf(rankcache.BoardID) string { return "update_cache_1_2.3" }

func sharedIn(t *testing.T, o Objects) *Shared {
	t.Helper()
	s, err := NewShared(o, topicOf, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bucketOf returns the bucket of a server.
func bucketOf(t *testing.T, h http.Handler) *objects.Store {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o, err := objects.Open(strings.Replace(server.URL, "http://", "s3://key:hush@", 1) + "/boards/of/us?tls=false&region=eu-1")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// newBucket returns an empty bucket, and its objects.
func newBucket(t *testing.T) (*objects.Store, *s3mem.Backend) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("boards"); err != nil {
		t.Fatal(err)
	}
	return bucketOf(t, gofakes3.New(backend).Server()), backend
}

func (s *Shared) wantLoads(t *testing.T, kind string, want float64) {
	t.Helper()
	if n := testutil.ToFloat64(s.metrics.loads.WithLabelValues(kind)); n != want {
		t.Errorf("%s counted %v times, want %v", kind, n, want)
	}
}

func TestSharedSnapshot(t *testing.T) {
	bucket, backend := newBucket(t)
	folder, err := objects.Open("file://" + t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Objects{"bucket": bucket, "folder": folder} {
		t.Run(name, func(t *testing.T) {
			s := sharedIn(t, o)
			if _, _, err := s.Load("1_2:3"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("none saved yet: %v", err)
			}
			s.wantLoads(t, "absent", 1)
			snap, entries := sample(30_000)
			for _, n := range []int{30_000, 63} { // the second replaces the first
				snap.Members, snap.Seq = n, snap.Seq+1
				if err := s.Save(snap, inPieces(entries[:n])); err != nil {
					t.Fatal(err)
				}
			}
			entries = entries[:63]
			got, back, err := s.Load(snap.Board)
			if d := cmp.Diff(snap, got) + cmp.Diff(entries, back); d != "" || err != nil {
				t.Errorf("%v %.400s", err, d)
			}
			head, mean, err := s.ReadHeader(snap.Board)
			if d := cmp.Diff(snap, head); d != "" || err != nil || mean < 7 || mean > 400 {
				t.Errorf("header: %v, ids of %d bytes, %.400s", err, mean, d)
			}
			older := snap
			older.Seq--
			if _, back, err = s.LoadNewer(t.Context(), snap.Board, &older); err != nil || len(back) != 63 {
				t.Errorf("newer than a file: %v", err)
			}
			if _, _, err = s.LoadNewer(t.Context(), snap.Board, &snap); !errors.Is(err, replay.ErrOlder) {
				t.Errorf("as new as a file: %v", err)
			}
			s.wantLoads(t, "older", 1)
			s.wantLoads(t, "ok", 2)
		})
	}
	if _, err := backend.HeadObject("boards", "of/us/"+sampleName); err != nil {
		t.Errorf("the object has another name: %v", err)
	}
}

// Whatever is wrong with a snapshot is counted by kind, and it is not used. Those of other boards are.
func TestSharedSnapshotThatCannotBeUsed(t *testing.T) {
	good := encoded(t, 50)
	otherVersion := slices.Clone(good)
	otherVersion[len(magic)] = versionData + 1
	turned := slices.Clone(good)
	turned[len(turned)/2] ^= 1
	snap, entries := sample(1)
	snap.Board = "other"
	var foreign bytes.Buffer
	if err := encode(&foreign, &snap, inPieces(entries)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kind   string
		object []byte
	}{
		"cut":             {"cut", good[:len(good)-3]},
		"bit turned":      {"corrupt", turned},
		"another board's": {"foreign", foreign.Bytes()},
		"no snapshot":     {"foreign", []byte("something else, long enough to be read")},
		"another version": {"version", otherVersion},
		"2^28 members":    {"cut", claiming(t, maxMembers)},
		"more members":    {"corrupt", claiming(t, 49)},
	} {
		t.Run(name, func(t *testing.T) {
			bucket, _ := newBucket(t)
			if _, err := bucket.Put(t.Context(), sampleName, c.object); err != nil {
				t.Fatal(err)
			}
			s := sharedIn(t, bucket)
			if _, entries, err := s.Load("1_2:3"); err == nil || entries != nil {
				t.Errorf("%d members, %v", len(entries), err)
			}
			s.wantLoads(t, c.kind, 1)
			if s.off.Load() != nil {
				t.Error("the store is left alone because of one object")
			}
		})
	}
}

// claiming returns a file of 50 members whose header, with all its checksums right, tells another number.
func claiming(t *testing.T, members int) []byte {
	t.Helper()
	snap, _ := sample(50)
	snap.Members = members
	var file bytes.Buffer
	e := &encoder{out: bufio.NewWriter(&file)}
	e.header(&snap)
	_, entries := sample(50)
	for i := range entries {
		e.add(&entries[i])
	}
	if err := e.finish(50); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// A store that fails is asked once, not once for each of many boards, and asked again a minute later.
func TestStoreThatFails(t *testing.T) {
	head := encoded(t, 50)
	for name, c := range map[string]struct {
		kind string
		http.HandlerFunc
	}{
		"403":       {"denied", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }},
		"no bucket": {"failed", gofakes3.New(s3mem.New()).Server().ServeHTTP},
		"no length": {"failed", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT")
			w.Write(head[:40])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}},
		"503": {"failed", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			s := sharedIn(t, bucketOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); c.ServeHTTP(w, r) })))
			if _, _, err := s.Load("1_2:3"); err == nil || errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "hush") {
				t.Error(err)
			}
			s.wantLoads(t, c.kind, 1)
			n := asked.Load()
			if _, _, err := s.Load("1_2:3"); !errors.Is(err, errOff) || asked.Load() != n {
				t.Errorf("asked again: %v", err)
			}
			s.wantLoads(t, "off", 1)
			s.off.Store(new(time.Now()))
			if _, _, err := s.Load("1_2:3"); errors.Is(err, errOff) || asked.Load() == n {
				t.Errorf("not asked a minute later: %v", err)
			}
		})
	}
}

// slowObjects never end: the first bytes come at once, and then so many a second.
type slowObjects struct {
	head  []byte
	size  int64
	every time.Duration
}

func (o slowObjects) Put(ctx context.Context, _ string, _ []byte) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func (o slowObjects) Get(ctx context.Context, _ string) (io.ReadCloser, int64, error) {
	return io.NopCloser(io.MultiReader(bytes.NewReader(o.head), endless{ctx, o.every})), o.size, nil
}

type endless struct {
	ctx   context.Context
	every time.Duration
}

func (e endless) Read(p []byte) (int, error) {
	select {
	case <-e.ctx.Done():
		return 0, e.ctx.Err()
	case <-time.After(e.every):
		return copy(p, make([]byte, len(p))), nil
	}
}

// A bucket that is slow, or sends without an end, holds nobody longer than 10 s.
func TestSlowStore(t *testing.T) {
	block := binary.LittleEndian.AppendUint32(claiming(t, maxMembers)[:headerLen(t)], blockBytes) // a block that does not come
	for name, o := range map[string]slowObjects{
		"nothing comes":    {nil, 5000, time.Hour},
		"a trickle":        {block, maxMembers * minMemberBytes, 3 * time.Second},
		"less than 10 s":   {encoded(t, 50)[:100], 5000, 9 * time.Second},
		"of a longer time": {encoded(t, 50)[:100], 5000, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sharedIn(t, o)
				begin := time.Now()
				if _, _, err := s.Load("1_2:3"); err == nil || time.Since(begin) > sharedWait {
					t.Errorf("%v after %v", err, time.Since(begin))
				}
				if o.every > sharedWait {
					s.wantLoads(t, "slow", 1)
				}
				snap, entries := sample(50)
				begin = time.Now()
				if err := s.Save(snap, inPieces(entries)); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > sharedWait {
					t.Errorf("save: %v after %v", err, time.Since(begin))
				}
			})
		})
	}
}

// headerLen returns the length of the header of the sample's file.
func headerLen(t *testing.T) int {
	t.Helper()
	return len(magic) + 8 + int(binary.LittleEndian.Uint32(claiming(t, maxMembers)[len(magic)+4:])) + crc32.Size
}

// A bucket that is full keeps what it has.
func TestFullBucket(t *testing.T) {
	_, backend := newBucket(t)
	var full atomic.Bool
	inner := gofakes3.New(backend).Server()
	s := sharedIn(t, bucketOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && full.Load() {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusInsufficientStorage)
			return
		}
		inner.ServeHTTP(w, r)
	})))
	snap, entries := sample(50)
	if err := s.Save(snap, inPieces(entries)); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	snap.Seq++
	if err := s.Save(snap, inPieces(entries)); err == nil || !strings.Contains(err.Error(), strconv.Itoa(http.StatusInsufficientStorage)) {
		t.Errorf("saved: %v", err)
	}
	if got, _, err := s.Load(snap.Board); err != nil || got.Seq != snap.Seq-1 {
		t.Errorf("%+v, %v", got, err)
	}
}
