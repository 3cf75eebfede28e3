package check

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const k8s = "../k8s"

// own is an overlay of the operator's.
var own = flag.String("dir", "", "`folder` of a kustomization of your own that is checked as ours are")

// kustomizations are what people apply.
func kustomizations(t *testing.T) []string {
	t.Helper()
	overlays, err := filepath.Glob(k8s + "/overlays/*")
	if err != nil || len(overlays) < 2 {
		t.Fatalf("overlays: %v, %v", overlays, err)
	}
	if *own != "" {
		overlays = append(overlays, *own)
	}
	return append(overlays, k8s+"/base", "testdata/own-app")
}

// build is kubectl kustomize.
func build(t *testing.T, dir string) resmap.ResMap {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("kustomize %s: %v", dir, err)
	}
	if built.Size() == 0 {
		t.Fatalf("kustomize %s gives nothing", dir)
	}
	return built
}

// buildWith builds the base with one more component.
func buildWith(t *testing.T, component string) resmap.ResMap {
	t.Helper()
	return buildText(t, k8s+"/base", component, "")
}

// buildText builds a folder of resources with a component and the further lines of a text.
func buildText(t *testing.T, resources, component, more string) resmap.ResMap {
	t.Helper()
	dir := t.TempDir()
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" +
		"resources: [" + relative(t, dir, resources) + "]\ncomponents: [" + relative(t, dir, component) + "]\n" + more
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return build(t, dir)
}

func relative(t *testing.T, from, to string) string {
	t.Helper()
	to, err := filepath.Abs(to)
	if err == nil {
		to, err = filepath.Rel(from, to)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestEveryComponentAddsSomethingToTheBase(t *testing.T) {
	components, err := filepath.Glob(k8s + "/components/*")
	if err != nil {
		t.Fatal(err)
	}
	base, err := build(t, k8s+"/base").AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range components {
		if name := filepath.Base(component); name == "sidecar" || name == "node-local" {
			continue // the base has the one, and the other changes components/node
		}
		text, err := buildWith(t, component).AsYaml()
		if err != nil || string(text) == string(base) {
			t.Errorf("%s changes nothing (%v)", component, err)
		}
	}
}

// The name of the settings changes with their content, the name of the rooms
// does not: pods that run shall see new rooms, not be replaced for them.
func TestNamesOfTheConfigMaps(t *testing.T) {
	names := map[string]bool{}
	for _, r := range build(t, k8s+"/base").Resources() {
		if r.GetKind() == "ConfigMap" {
			names[r.GetName()] = true
		}
	}
	hashed := false
	for name := range names {
		hashed = hashed || strings.HasPrefix(name, "rankcache-") && name != "rankcache-rooms"
	}
	if !names["rankcache-rooms"] || names["rankcache"] || !hashed {
		t.Errorf("ConfigMaps %v, want rankcache-rooms as it is and rankcache-<hash>", names)
	}
}
