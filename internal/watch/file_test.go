package watch

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFile: a change is taken, what is no good leaves the last in force and is told once, also after it was there.
func TestFile(t *testing.T) {
	var said bytes.Buffer
	path := filepath.Join(t.TempDir(), "f")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := New("--f", path, func(content []byte) (string, error) {
		if strings.HasPrefix(string(content), "half") {
			return "", errors.New("is half written")
		}
		return string(content), nil
	})
	f.LogTo(slog.New(slog.NewTextHandler(&said, nil)))
	if f.Load() == nil {
		t.Error("a file that is missing is read")
	}
	for _, c := range []struct {
		text, want string
		good       bool
	}{{"one", "one", true}, {"second", "second", true}, {"half of it", "second", false}, {"half", "second", false}, {"the third", "the third", true}} {
		write(c.text)
		if got := f.Get(); got != c.want || (f.Status().Error == "") != c.good {
			t.Errorf("%q: %q, %+v", c.text, got, f.Status())
		}
	}
	if n := strings.Count(said.String(), "half written"); n != 1 {
		t.Errorf("told %d times:\n%s", n, said.String())
	}
	os.Remove(path)
	if f.Get() != "the third" || f.Status().Error == "" || f.Status().Setting != "f" {
		t.Errorf("away: %+v", f.Status())
	}
}

// TestHalfWrittenCertificates: Go would take the first half of a file.
func TestHalfWrittenCertificates(t *testing.T) {
	whole, err := os.ReadFile("testdata/two.pem")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := parsePEM(whole); err != nil || c.Ends.Year() != 2126 {
		t.Errorf("%+v, %v", c, err)
	}
	for n := range len(whole) - 2 {
		if _, err := parsePEM(whole[:n]); err == nil && n != bytes.Index(whole, []byte("-----END CERTIFICATE-----"))+25 && !bytes.HasSuffix(whole[:n], []byte("-----END CERTIFICATE-----\n")) {
			t.Fatalf("%d of %d bytes are taken for whole", n, len(whole))
		}
	}
}
