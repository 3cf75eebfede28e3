package httpapi

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
)

// TestGeneratedClientReads generates a Python client from the document and reads
// from a server with it.
func TestGeneratedClientReads(t *testing.T) {
	python := testkit.PythonClient(t)
	dir := t.TempDir()
	generateClient(t, python, dir)
	s := start(t, newEnv(), Config{})
	program, err := filepath.Abs("testdata/client.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, program, "http://"+s.tcp)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	row := func(i int) any {
		return []any{float64(i + 1), fixture.Member(i), fixture.ScoreAt(917, 57000, i)}
	}
	want := map[string]any{
		"total":      57000.0,
		"entries":    []any{row(1), row(2), row(3)},
		"me":         []any{row(901)},
		"own":        []any{row(4)},
		"neighbours": []any{row(3), row(4), row(5)},
		"members":    []any{row(7), []any{nil, "nobody", nil}},
		"whole":      []any{row(3), row(4), row(5), 1.0},
		"shut":       []any{"shut", "blocked"},
		"refused":    []any{400.0, "bad_argument", "limit"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the client read (-want +got):\n%s", diff)
	}
}

var warning = regexp.MustCompile(`(?m)^(?:WARNING|ERROR) parsing (\S+ \S+)`)

// generateClient makes the module "generated" in dir.
func generateClient(t *testing.T, python, dir string) {
	t.Helper()
	document, config := filepath.Join(dir, "openapi.yaml"), filepath.Join(dir, "config.yaml")
	for file, text := range map[string]string{document: sidecar.OpenAPI(), config: "post_hooks: []\n"} { // no formatting
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), python, "-m", "openapi_python_client", "generate", "--meta", "none",
		"--path", document, "--config", config, "--output-path", filepath.Join(dir, "generated")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var lost []string
	for _, m := range warning.FindAllStringSubmatch(string(out), -1) {
		lost = append(lost, m[1])
	}
	slices.Sort(lost)
	if want := []string{"GET /assets/{name}", "GET /openapi.yaml"}; !slices.Equal(lost, want) { // types that it has no form for
		t.Errorf("the generator left out parts of %q, want only of %q:\n%s", lost, want, out)
	}
}
