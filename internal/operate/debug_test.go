package operate

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rankcache/internal/cli"
	"rankcache/sidecar/adminapi"
)

// The health port of a process without an admin port answers a part of the bundle; the file
// errors.txt names the rest.
func TestBundleOfAHealthPort(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1") })
	health := httptest.NewServer(adminapi.Health(adminapi.NewReadiness(func() (bool, string) { return true, "" }, nil), metrics))
	defer health.Close()
	var out bytes.Buffer
	args := []string{"debug", "bundle", "-o", "-", "--admin", strings.TrimPrefix(health.URL, "http://")}
	if err := cli.Run(t.Context(), NewCommand(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for from := tar.NewReader(&out); ; {
		h, err := from.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		body, err := io.ReadAll(from)
		must(t, err)
		files[strings.TrimPrefix(h.Name, "rankcache/")] = string(body)
	}
	if files["metrics.txt"] != "up 1" || !strings.Contains(files["errors.txt"], "status.json: ") {
		t.Errorf("got %q", files)
	}
}
