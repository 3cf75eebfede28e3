package check

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/kustomize/api/resmap"
)

// TestWritersPollersAndControllersOutliveANode: there are two of each, not together where that can be
// helped, and a drain of nodes takes one after the other, but is never held up.
func TestWritersAndPollersOutliveANode(t *testing.T) {
	built := build(t, k8s+"/overlays/everything")
	for _, name := range []string{"rankcache-writer", "rankcache-poller", "rankcache-controller", "rankcache-keep", "rankcache-ledger"} {
		w := deployment(t, built, name)
		if w.Spec.Replicas < 2 {
			t.Errorf("%s has %d replicas", name, w.Spec.Replicas)
		}
		pod := w.Spec.Template
		keys := map[string]bool{}
		for _, c := range pod.Spec.TopologySpreadConstraints {
			keys[c.TopologyKey] = true
			if c.MaxSkew != 1 || c.WhenUnsatisfiable != "ScheduleAnyway" || !c.LabelSelector.finds(pod.Metadata) {
				t.Errorf("%s: the spread %+v is not of its pods, or keeps them from running", name, c)
			}
		}
		if !keys["kubernetes.io/hostname"] || !keys["topology.kubernetes.io/zone"] {
			t.Errorf("%s is spread over %v only", name, keys)
		}
		found := 0
		for _, b := range budgets(t, built) {
			if !b.Spec.Selector.finds(pod.Metadata) {
				continue
			}
			found++
			if b.Spec.MaxUnavailable != float64(1) || b.Spec.MinAvailable != nil {
				t.Errorf("%s: budget %+v, want maxUnavailable 1", name, b)
			}
		}
		if found != 1 { // an eviction of pods with two budgets is refused
			t.Errorf("%s has %d disruption budgets, want one", name, found)
		}
	}
}

// finds reports whether the selector names labels, and the pod has them.
func (s labelSelector) finds(pod meta) bool {
	for key, value := range s.MatchLabels {
		if pod.Labels[key] != value {
			return false
		}
	}
	return len(s.MatchLabels) > 0
}

func budgets(t *testing.T, built resmap.ResMap) (all []disruptionBudget) {
	t.Helper()
	for _, r := range built.Resources() {
		if r.GetKind() != "PodDisruptionBudget" {
			continue
		}
		data, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var b disruptionBudget
		if err := json.Unmarshal(data, &b); err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}
