package objects

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// stores are both kinds of store, empty, and the URLs of what they keep.
func stores(t *testing.T, test func(t *testing.T, s *Store, root string)) {
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir() + "/made/by it"
		test(t, open(t, "file://"+strings.ReplaceAll(dir, " ", "%20")), "file://"+strings.ReplaceAll(dir, " ", "%20")+"/")
	})
	t.Run("bucket", func(t *testing.T) {
		backend := s3mem.New()
		must(t, backend.CreateBucket("finals"))
		test(t, open(t, bucketAt(t, gofakes3.New(backend).Server())+"/finals/of/us?tls=false&region=eu-1"), "s3://finals/of/us/")
	})
}

// bucketAt returns the URL of a server that speaks S3.
func bucketAt(t *testing.T, h http.Handler) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http://", "s3://key:hush@", 1)
}

func open(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(url)
	must(t, err)
	return s
}

func TestStores(t *testing.T) {
	stores(t, func(t *testing.T, s *Store, root string) {
		const name = "a:b/c.1"
		wantNone := func() {
			t.Helper()
			if _, _, err := s.Get(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("an object that is not there: %v", err)
			}
		}
		wantNone()
		must(t, s.RemoveBelow(t.Context(), "a:b")) // nothing there
		for _, data := range []string{"first", "2", "the third one"} {
			at, err := s.Put(t.Context(), name, []byte(data))
			must(t, err)
			if at != root+name {
				t.Errorf("URL %s, want %s", at, root+name)
			}
			if got := read(t, s, name); got != data {
				t.Errorf("got %q, want %q", got, data)
			}
		}
		for _, other := range []string{"a:b/d", "a:bc/c.1", "a"} {
			_, err := s.Put(t.Context(), other+"/e", []byte(other))
			must(t, err)
		}
		must(t, s.RemoveBelow(t.Context(), "a:b"))
		wantNone()
		if got := read(t, s, "a:bc/c.1/e") + read(t, s, "a/e"); got != "a:bc/c.1a" {
			t.Errorf("others are %q now", got)
		}
		if _, _, err := s.Get(t.Context(), "a:b/d/e"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an object further below is there: %v", err)
		}
	})
}

func read(t *testing.T, s *Store, name string) string {
	t.Helper()
	body, size, err := s.Get(t.Context(), name)
	must(t, err)
	defer body.Close()
	data, err := io.ReadAll(body)
	must(t, err)
	if size != int64(len(data)) {
		t.Errorf("size %d of %d bytes", size, len(data))
	}
	return string(data)
}

// No name leads out of the store.
func TestBadNames(t *testing.T) {
	stores(t, func(t *testing.T, s *Store, _ string) {
		for _, name := range []string{"", "..", "a/../../b", "/a", "a/", "a//b", "./a", `a\..\b`, "a\x00"} {
			_, err := s.Put(t.Context(), name, nil)
			_, _, got := s.Get(t.Context(), name)
			if !errors.Is(err, errName) || !errors.Is(got, errName) || !errors.Is(s.RemoveBelow(t.Context(), name), errName) {
				t.Errorf("%q: %v, %v", name, err, got)
			}
		}
	})
}

// A bucket that is not there is another thing than an object that is not.
func TestNoBucket(t *testing.T) {
	s := open(t, bucketAt(t, gofakes3.New(s3mem.New()).Server())+"/none?tls=false&region=eu-1")
	_, put := s.Put(t.Context(), "a", nil)
	_, _, get := s.Get(t.Context(), "a")
	for what, err := range map[string]error{"put": put, "get": get, "remove": s.RemoveBelow(t.Context(), "a")} {
		if err == nil || errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRefusedUser(t *testing.T) {
	s := open(t, bucketAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))+"/boards?tls=false&region=eu-1")
	if _, _, err := s.Get(t.Context(), "a"); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
	if _, _, err := open(t, "file://"+dir).Get(t.Context(), "a"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was read: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, raw := range []string{"", "folder", "file:folder", "file://host/folder", "s3://key:hush@host", "s3:///bucket", "s3://key:hush@ho st/b", "http://hush/b", "s3://key:hush@host:x/b", "s3://k:hu%zzsh@h/b",
		"s3://key:hush@host/b/../other", "s3://key:hush@host/b/%2e%2e/other", "file:///a/.."} {
		if _, err := Open(raw); err == nil || strings.Contains(err.Error(), "hu") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// Who sends objects over the Internet without TLS is told.
func TestWarning(t *testing.T) {
	for host, warned := range map[string]bool{"minio": false, "minio.storage.svc": false, "minio.storage.svc.cluster.local:9000": false, "10.1.2.3:9000": false, "[::1]:9000": false, "localhost": false,
		"s3.example.com": true, "8.8.8.8:9000": true, "S3.EXAMPLE.COM.": true} {
		got := open(t, "s3://key:hush@"+host+"/b?tls=false").Warning()
		if (got != "") != warned || strings.Contains(got, "hush") {
			t.Errorf("%s: %q", host, got)
		}
		if got := open(t, "s3://key:hush@"+host+"/b").Warning(); got != "" {
			t.Errorf("%s with TLS: %q", host, got)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
