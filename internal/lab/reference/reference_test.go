package reference

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"rankcache/internal/cli"
)

// print runs one of the sub-commands.
func print(t *testing.T, name string, to io.Writer, args ...string) error {
	return cli.Run(t.Context(), NewCommand(), append([]string{name}, args...), to, to)
}

func TestReferencesAreUpToDate(t *testing.T) {
	for _, cmd := range NewCommand().Commands() {
		name := cmd.Name()
		if name == "lab" {
			continue // its root is rankcache-lab, which has the test
		}
		var want bytes.Buffer
		if err := print(t, name, &want); err != nil {
			t.Fatal(err)
		}
		file := "../../../docs/" + strings.ToUpper(name) + ".md"
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s is not what the code generates (%v): run make docs and commit it", file, err)
		}
		if bytes.Contains(want.Bytes(), []byte("| unknown |")) {
			t.Errorf("%s: a metric's type is not known", file)
		}
	}
}

func TestCommandPagesAreUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := print(t, "commands", io.Discard, "--pages", dir); err != nil {
		t.Fatal(err)
	}
	want, got := os.DirFS(dir), os.DirFS("../../../docs/commands")
	made, _ := fs.Glob(want, "*.md")
	committed, err := fs.Glob(got, "*")
	if err != nil || !slices.Equal(made, committed) || len(made) < 10 {
		t.Fatalf("docs/commands has %v, the code makes %v (%v): run make docs and commit it", committed, made, err)
	}
	for _, name := range made {
		text, _ := fs.ReadFile(got, name)
		if page, _ := fs.ReadFile(want, name); !bytes.Equal(text, page) {
			t.Errorf("docs/commands/%s is not what the code generates: run make docs and commit it", name)
		}
	}
}

// What is described must be what is served, type included.
func TestMetricsAreDescribedAsTheyAreServed(t *testing.T) {
	all, err := allMetrics()
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range all {
		name, r := process.Command, process.Registry
		described := map[string]string{}
		for _, d := range describeAll(process.Registered) {
			described[d.name] = d.kind
			if d.help == "" || strings.Contains(d.name, "{") {
				t.Errorf("%s: %s has no help, or was not taken apart", name, d.name)
			}
		}
		served, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range served {
			if !strings.HasPrefix(family.GetName(), "rankcache_") {
				continue
			}
			if want := strings.ToLower(family.GetType().String()); described[family.GetName()] != want {
				t.Errorf("%s: %s is described as %q and served as %q", name, family.GetName(), described[family.GetName()], want)
			}
		}
		lint(t, name, r)
	}
}

// lint holds the metrics that have series against Prometheus's conventions.
func lint(t *testing.T, name string, from prometheus.Gatherer) {
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "rankcache_") {
			t.Errorf("%s: %s: %s", name, p.Metric, p.Text)
		}
	}
}
