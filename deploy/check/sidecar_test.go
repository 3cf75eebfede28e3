package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// TestSidecarJoinsAnyApp: an app's own init containers and volumes stay, and the
// sidecar starts first where kustomize can put it there.
func TestSidecarJoinsAnyApp(t *testing.T) {
	built := build(t, "testdata/own-app")
	for _, c := range []struct{ kind, name, initContainers string }{
		{"Deployment", "own", "[rankcache migrate]"},
		{"StatefulSet", "own-set", "[rankcache migrate]"},
		{"Rollout", "own-rollout", "[migrate rankcache]"},
		{"Rollout", "bare-rollout", "[rankcache]"},
		{"Deployment", "other", "[]"}, // not labelled
	} {
		w := workloadOf(t, built, c.kind, c.name)
		if order := fmt.Sprint(initContainers(w)); order != c.initContainers {
			t.Errorf("%s: init containers %s, want %s", c.name, order, c.initContainers)
			continue
		}
		if c.initContainers == "[]" {
			continue
		}
		labels := w.Spec.Template.Metadata.Labels
		if labels["rankcache"] != "sidecar" || c.name != "bare-rollout" && labels["app"] != c.name {
			t.Errorf("%s: labels %v", c.name, labels)
		}
		checkVolumes(t, w, c.name != "bare-rollout")
	}
	config, err := built.GetById(resid.NewResIdWithNamespace(resid.NewGvk("", "v1", "ConfigMap"), "rankcache-rooms", ""))
	if err != nil {
		t.Fatal(err)
	}
	if text := config.GetDataMap()["rooms.yaml"]; !strings.Contains(text, "own_board") {
		t.Errorf("the overlay's rooms are not used: %s", text)
	}
}

func initContainers(w workload) (names []string) {
	for _, c := range w.Spec.Template.Spec.InitContainers {
		names = append(names, c.Name)
	}
	return names
}

// checkVolumes wants all that the sidecar mounts, with settings under the name that
// their content gives them, and the app's own volume.
func checkVolumes(t *testing.T, w workload, own bool) {
	t.Helper()
	names := map[string]bool{}
	for _, v := range w.Spec.Template.Spec.Volumes {
		names[v.Name] = true
		if v.Name == "rankcache-config" && !strings.HasPrefix(v.ConfigMap.Name, "rankcache-") {
			t.Errorf("%s: the settings are read from %q, which is not the overlay's", w.Metadata.Name, v.ConfigMap.Name)
		}
	}
	for _, m := range find(w.Spec.Template.Spec.InitContainers, "rankcache").VolumeMounts {
		if !names[m.Name] {
			t.Errorf("%s: no volume %s", w.Metadata.Name, m.Name)
		}
	}
	if own && !names["data"] {
		t.Errorf("%s has lost its own volume: %v", w.Metadata.Name, names)
	}
}

// TestPollersFleetIsNotPolledBySidecars, whatever kind of workload they are in.
func TestPollersFleetIsNotPolledBySidecars(t *testing.T) {
	built := buildText(t, "testdata/own-app", k8s+"/components/poller", "")
	for kind, name := range map[string]string{"Deployment": "own", "StatefulSet": "own-set", "Rollout": "own-rollout"} {
		w := workloadOf(t, built, kind, name)
		c := find(w.Spec.Template.Spec.InitContainers, "rankcache")
		if !slices.ContainsFunc(c.Env, func(e envVar) bool { return e.Name == "RANKCACHE_HOT_SOURCE" && e.Value == "none" }) || len(c.Args) == 0 {
			t.Errorf("%s %s polls too: %+v", kind, name, c)
		}
	}
}

// TestEveryLabelFindsItsWorkload is what to run on an overlay of your own, with -dir.
func TestEveryLabelFindsItsWorkload(t *testing.T) {
	for _, dir := range kustomizations(t) {
		for _, fault := range withoutSidecar(t, build(t, dir)) {
			t.Errorf("%s: %s", dir, fault)
		}
	}
}

// withoutSidecar returns why pods that should have a sidecar have none. kustomize
// gives no error when a patch finds nothing to change.
func withoutSidecar(t *testing.T, built resmap.ResMap) (faults []string) {
	t.Helper()
	labelled := 0
	for _, w := range workloads(t, built) {
		pod := w.Spec.Template
		has := find(append(pod.Spec.InitContainers, pod.Spec.Containers...), "rankcache") != nil
		switch {
		case w.Metadata.Labels["rankcache"] == "sidecar" && has:
			labelled++
		case w.Metadata.Labels["rankcache"] == "sidecar":
			faults = append(faults, w.Kind+" "+w.Metadata.Name+" is labelled and has no sidecar: only Deployments, StatefulSets and Rollouts get one, of components/sidecar")
		case pod.Metadata.Labels["rankcache"] == "sidecar":
			faults = append(faults, w.Kind+" "+w.Metadata.Name+" has the label in its pod template only: put it into its own metadata")
		}
	}
	if labelled == 0 {
		faults = append(faults, `no Deployment, StatefulSet or Rollout is labelled "rankcache: sidecar"`)
	}
	return faults
}

func TestALabelThatMatchesNothingIsNoticed(t *testing.T) {
	const app = `apiVersion: apps/v1
kind: %s
metadata: {name: app, labels: {rankcache: %s}}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app, rankcache: %s}}
    spec:
      containers:
        - {name: app, image: "app:1"}
`
	for _, c := range []struct{ kind, label, podLabel, want string }{
		{"Deployment", "sidecars", "app", "no Deployment, StatefulSet"},
		{"DaemonSet", "sidecar", "app", "DaemonSet app is labelled"},
		{"Deployment", "app", "sidecar", "pod template only"},
		{"StatefulSet", "sidecar", "app", ""},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"app.yaml": fmt.Sprintf(app, c.kind, c.label, c.podLabel), "kustomization.yaml": "resources: [app.yaml]\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		faults := strings.Join(withoutSidecar(t, buildText(t, dir, k8s+"/components/sidecar", "")), "; ")
		if (faults == "") != (c.want == "") || !strings.Contains(faults, c.want) {
			t.Errorf("%+v: %q", c, faults)
		}
	}
}
