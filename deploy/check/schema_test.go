package check

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// schemaModule is a Go module whose files are schemas. It is fetched as go build
// would fetch it, held against its checksum, and not compiled.
type schemaModule struct{ path, version, sum string }

var (
	// The API of Kubernetes 1.23 to 1.30, as servers publish it.
	kubernetesSchemas = schemaModule{"sigs.k8s.io/kubectl-validate", "v0.0.4", "h1:tGKuv0awYHn11Cb6KPsZKxUmHgavF46K3NvVH0Nse9U="}
	// The definitions of PodMonitor and PrometheusRule.
	operatorSchemas = schemaModule{"github.com/prometheus-operator/prometheus-operator", "v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="}
)

// dir returns where the module's files are.
func (m schemaModule) dir(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", m.path+"@"+m.version)
	cmd.Dir = t.TempDir() // outside of every module: no go.mod is touched
	out, err := cmd.Output()
	var got struct{ Dir, Sum, Error string }
	if json.Unmarshal(out, &got) != nil || err != nil || got.Error != "" {
		t.Fatalf("fetch %s: %v %s; check that the module proxy can be reached", m.path, err, got.Error)
	}
	if got.Sum != m.sum {
		t.Fatalf("%s %s has the sum %s, want %s", m.path, m.version, got.Sum, m.sum)
	}
	return got.Dir
}

// schemas validates objects for one version of Kubernetes.
type schemas struct {
	version  string
	compiler *jsonschema.Compiler
	loaded   map[string]map[string]string // file: kind to place in it
	dirs     func() (kubernetes, operator string)
}

func newSchemas(t *testing.T, version string) *schemas {
	return &schemas{version, jsonschema.NewCompiler(), map[string]map[string]string{}, sync.OnceValues(func() (string, string) {
		return kubernetesSchemas.dir(t), operatorSchemas.dir(t)
	})}
}

// validate returns what is wrong with an object, nil if nothing is.
func (s *schemas) validate(t *testing.T, r *resource.Resource) error {
	t.Helper()
	data, err := r.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	object, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if r.GetKind() == "Rollout" { // not Kubernetes's own; its pods are
		object = map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "template": dig(object, "spec", "template")}
	}
	schema, err := s.compiler.Compile(s.place(t, r))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(object)
}

// place returns the URL of the schema of an object.
func (s *schemas) place(t *testing.T, r *resource.Resource) string {
	t.Helper()
	kubernetes, operator := s.dirs()
	gvk := r.GetGvk()
	if gvk.Kind == "Rollout" {
		gvk = resid.NewGvk("", "v1", "PodTemplate")
	}
	if gvk.Group == "monitoring.coreos.com" {
		name := "monitoring.coreos.com_" + strings.ToLower(gvk.Kind) + "s.yaml"
		return s.load(t, filepath.Join(operator, "example/prometheus-operator-crd", name), gvk.Kind)
	}
	group := "api"
	if gvk.Group != "" {
		group = "apis/" + gvk.Group
	}
	return s.load(t, filepath.Join(kubernetes, "pkg/openapiclient/builtins", s.version, group, gvk.Version+".json"), gvk.Kind)
}

func (s *schemas) load(t *testing.T, file, kind string) string {
	t.Helper()
	if s.loaded[file] == nil {
		kinds, doc := readSchemas(t, file)
		closeObjects(doc)
		if err := s.compiler.AddResource("file://"+file, doc); err != nil {
			t.Fatal(err)
		}
		s.loaded[file] = kinds
	}
	at := s.loaded[file][kind]
	if at == "" {
		t.Fatalf("Kubernetes %s has no %s in %s", s.version, kind, file)
	}
	return "file://" + file + "#" + at
}

// readSchemas reads an OpenAPI document or a CustomResourceDefinition and returns
// where the kinds are in it.
func readSchemas(t *testing.T, file string) (kinds map[string]string, doc any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil && strings.HasSuffix(file, ".yaml") {
		var node yaml.Node
		if err = yaml.Unmarshal(data, &node); err == nil {
			data, err = yaml.NewRNode(&node).MarshalJSON()
		}
	}
	if err == nil {
		doc, err = jsonschema.UnmarshalJSON(bytes.NewReader(data))
	}
	if err != nil {
		t.Fatal(err)
	}
	kinds = map[string]string{}
	if kind, ok := dig(doc, "spec", "names", "kind").(string); ok {
		kinds[kind] = "/spec/versions/0/schema/openAPIV3Schema"
	}
	all, _ := dig(doc, "components", "schemas").(map[string]any)
	for name, schema := range all {
		of, _ := dig(schema, "x-kubernetes-group-version-kind").([]any)
		if len(of) == 1 { // more: what many kinds share, such as DeleteOptions
			kinds[dig(of[0], "kind").(string)] = "/components/schemas/" + name
		}
	}
	return kinds, doc
}

func dig(v any, path ...string) any {
	for _, step := range path {
		m, _ := v.(map[string]any)
		v = m[step]
	}
	return v
}

// closeObjects makes unknown fields an error, as kubectl apply does: a schema
// with properties has no others.
func closeObjects(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			closeObjects(item)
		}
	case map[string]any:
		for _, item := range v {
			closeObjects(item)
		}
		_, named := v["properties"].(map[string]any)
		_, declared := v["additionalProperties"]
		if open, _ := v["x-kubernetes-preserve-unknown-fields"].(bool); named && v["type"] == "object" && !declared && !open {
			v["additionalProperties"] = false
		}
	}
}

func TestManifestsFitTheirSchemas(t *testing.T) {
	for _, version := range []string{"1.29", "1.30"} {
		s := newSchemas(t, version)
		for _, dir := range kustomizations(t) {
			for _, r := range build(t, dir).Resources() {
				if err := s.validate(t, r); err != nil {
					t.Errorf("%s: %s on Kubernetes %s: %v", dir, r.CurId(), version, err)
				}
			}
		}
	}
}

// Native sidecars are in the API since 1.28, where they are switched off.
func TestOldClustersTakeTheirOverlayAndNotTheBase(t *testing.T) {
	s := newSchemas(t, "1.25")
	for _, r := range build(t, k8s+"/overlays/pre-1.29").Resources() {
		if err := s.validate(t, r); err != nil {
			t.Errorf("%s: %v", r.CurId(), err)
		}
	}
	refused := false
	for _, r := range build(t, k8s+"/base").Resources() {
		err := s.validate(t, r)
		refused = refused || err != nil && strings.Contains(err.Error(), "restartPolicy")
	}
	if !refused {
		t.Error("Kubernetes 1.25 takes a native sidecar: is the validation strict?")
	}
}
