package check

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/resmap"
)

// buildNode builds the settings with a sidecar a node, and further components.
func buildNode(t *testing.T, further ...string) resmap.ResMap {
	t.Helper()
	dir := t.TempDir()
	text := "resources: [" + relative(t, dir, k8s+"/config") + "]\ncomponents: [" + relative(t, dir, k8s+"/components/node")
	for _, c := range further {
		text += ", " + relative(t, dir, k8s+"/components/"+c)
	}
	if err := os.WriteFile(dir+"/kustomization.yaml", []byte(text+"]\nimages: [{name: rankcache, newTag: dev}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return build(t, dir)
}

// specOf returns the spec of an object.
func specOf(t *testing.T, built resmap.ResMap, kind, name string) (spec map[string]any) {
	t.Helper()
	for _, r := range built.Resources() {
		if r.GetKind() != kind || r.GetName() != name {
			continue
		}
		data, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var o struct{ Spec map[string]any }
		if err := json.Unmarshal(data, &o); err != nil {
			t.Fatal(err)
		}
		return o.Spec
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

func TestNodeFitsItsSchemas(t *testing.T) {
	for version, built := range map[string]resmap.ResMap{"1.30": buildNode(t, "network-policy"), "1.29": buildNode(t, "node-local", "network-policy")} {
		s := newSchemas(t, version)
		for _, r := range built.Resources() {
			if err := s.validate(t, r); err != nil {
				t.Errorf("%s on Kubernetes %s: %v", r.CurId(), version, err)
			}
		}
	}
}

// A node's next sidecar is ready before the one before ends, which drains for less than it is given.
func TestNodeIsReplacedWithoutAGap(t *testing.T) {
	built := buildNode(t)
	want := map[string]any{"maxSurge": float64(1), "maxUnavailable": float64(0)}
	strategy := specOf(t, built, "DaemonSet", "rankcache-node")["updateStrategy"].(map[string]any)
	if !reflect.DeepEqual(strategy["rollingUpdate"], want) || strategy["type"] != "RollingUpdate" {
		t.Errorf("strategy %v", strategy)
	}
	w := workloadOf(t, built, "DaemonSet", "rankcache-node")
	c := find(w.Spec.Template.Spec.Containers, "rankcache")
	c.check(t, "node")
	if args := strings.Join(c.Args, " "); !strings.Contains(args, "--drain=20s") || *w.Spec.Template.Spec.TerminationGracePeriodSeconds <= drainSeconds {
		t.Errorf("%s of %d s", args, *w.Spec.Template.Spec.TerminationGracePeriodSeconds)
	}
}

// The Service finds the pods, and prefers or takes those of the caller's node.
func TestNodeService(t *testing.T) {
	for key, built := range map[string]resmap.ResMap{"trafficDistribution: PreferSameNode": buildNode(t), "internalTrafficPolicy: Local": buildNode(t, "node-local")} {
		spec := specOf(t, built, "Service", "rankcache-node")
		field, value, _ := strings.Cut(key, ": ")
		labels := workloadOf(t, built, "DaemonSet", "rankcache-node").Spec.Template.Metadata.Labels
		for name, want := range spec["selector"].(map[string]any) {
			if labels[name] != want {
				t.Errorf("the Service wants %s %v, its pods have %v", name, want, labels)
			}
		}
		if spec[field] != value || len(spec) != 3 {
			t.Errorf("want %s: %v", key, spec)
		}
	}
}

// The data port has no login: only pods that are named reach it.
func TestNodePolicyNamesTheApps(t *testing.T) {
	spec := specOf(t, buildNode(t), "NetworkPolicy", "rankcache-node")
	for _, one := range spec["ingress"].([]any) {
		rule := one.(map[string]any)
		from, _ := rule["from"].([]any)
		if len(from) == 0 {
			t.Fatalf("open to all: %v", rule)
		}
		if rule["ports"].([]any)[0].(map[string]any)["port"] != float64(8970) {
			continue
		}
		want := []any{map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"rankcache": "reader"}}}}
		if !reflect.DeepEqual(from, want) {
			t.Errorf("readers %v, want %v", from, want)
		}
	}
	labels := workloadOf(t, buildNode(t), "DaemonSet", "rankcache-node").Spec.Template.Metadata.Labels
	if labels["rankcache"] != spec["podSelector"].(map[string]any)["matchLabels"].(map[string]any)["rankcache"] {
		t.Errorf("the policy is of other pods: %v", spec["podSelector"])
	}
}
