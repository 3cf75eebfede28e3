package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	manifests = "../../k8s"
	committed = "../../chart"
)

func TestCommittedChartIsTheGenerated(t *testing.T) {
	files, err := generate(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(committed, name)); err != nil || string(got) != want {
			t.Errorf("%s is not what the manifests give (%v): run make chart", name, err)
		}
	}
	templates, err := os.ReadDir(filepath.Join(committed, "templates"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range templates {
		if files["templates/"+f.Name()] == "" {
			t.Errorf("%s is not made from the manifests: run make chart", f.Name())
		}
	}
}

// render is "helm template" with values; it returns the objects by kind and name.
func render(t *testing.T, c *chart.Chart, values map[string]any) (map[string]any, error) {
	t.Helper()
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "rankcache", Namespace: "shop"}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]any{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, one := range strings.Split(text, "\n---\n") {
			addObject(t, objects, one)
		}
	}
	return objects, nil
}

func addObject(t *testing.T, objects map[string]any, text string) {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	if object == nil {
		return
	}
	key := object["kind"].(string) + " " + object["metadata"].(map[string]any)["name"].(string)
	if objects[key] != nil {
		t.Errorf("%s is made twice", key)
	}
	objects[key] = object
}

func load(t *testing.T, dir string) *chart.Chart {
	t.Helper()
	c, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// everything turns all parts on.
func everything() map[string]any {
	values := map[string]any{"image": map[string]any{"tag": "dev"}}
	for _, p := range parts[2:] {
		values[p.key()] = map[string]any{"enabled": true}
	}
	values["writer"] = map[string]any{"enabled": true, "scores": true}
	return values
}

// TestHelmRendersWhatKustomizeBuilds: object by object, but for what only one of the two can do.
func TestHelmRendersWhatKustomizeBuilds(t *testing.T) {
	got, err := render(t, load(t, committed), everything())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	for _, p := range parts {
		built, err := build(manifests, p.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range built {
			if p.name != "sidecar" {
				addObject(t, want, asHelm(r.MustYaml()))
			}
		}
	}
	for key, object := range want {
		removeChecksum(got[key])
		if !reflect.DeepEqual(got[key], object) {
			t.Errorf("%s\nhelm:      %v\nkustomize: %v", key, got[key], object)
		}
	}
	if len(got) != len(want) || len(want) < 12 {
		t.Errorf("helm makes %d objects, kustomize %d", len(got), len(want))
	}
}

// asHelm: kustomize names a ConfigMap by its content, Helm has an annotation for that; images have a tag from the chart.
func asHelm(text string) string {
	for line := range strings.Lines(text) {
		name, hashed := strings.CutPrefix(strings.TrimSpace(line), "name: rankcache-")
		if hashed && len(name) == 10 && !strings.ContainsAny(name, "aeiou-") {
			text = strings.ReplaceAll(text, "rankcache-"+name, "rankcache")
		}
	}
	return strings.ReplaceAll(text, "image: rankcache\n", "image: rankcache:dev\n")
}

func removeChecksum(object any) {
	o, _ := object.(map[string]any)
	if o["kind"] == "Deployment" || o["kind"] == "DaemonSet" {
		delete(o["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any), "annotations")
	}
}

// TestAppsChartIncludesTheSidecar renders an app's chart that depends on this one, as README.md shows it.
func TestAppsChartIncludesTheSidecar(t *testing.T) {
	app := load(t, "testdata/app")
	app.AddDependency(load(t, committed))
	got, err := render(t, app, map[string]any{"rankcache": map[string]any{"secret": "own", "poller": map[string]any{"enabled": true}}})
	if err != nil {
		t.Fatal(err)
	}
	pod := got["Deployment app"].(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	container, err := yaml.Marshal(pod["initContainers"])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"restartPolicy: Always", "RANKCACHE_HOT_SOURCE", "name: own", "/startupz"} {
		if !strings.Contains(string(container), want) {
			t.Errorf("the app's sidecar has no %q:\n%s", want, container)
		}
	}
	if len(pod["volumes"].([]any)) != 4 || got["Deployment rankcache-poller"] == nil {
		t.Errorf("volumes %v", pod["volumes"])
	}
}

// TestPodsHaveWhatTheOperatorAdds: each Deployment of the chart, and the sidecar what is its own.
func TestPodsHaveWhatTheOperatorAdds(t *testing.T) {
	values := everything()
	values["image"] = map[string]any{"pullPolicy": "Always"}
	values["imagePullSecrets"] = []any{map[string]any{"name": "registry"}}
	values["serviceAccountName"] = "shop"
	env := []any{map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}}
	for _, key := range []string{"writer", "controller", "keep", "poller", "ledger", "reconcile", "node"} {
		values[key] = map[string]any{"enabled": true, "env": env, "nodeSelector": map[string]any{"disk": "fast"},
			"tolerations": []any{map[string]any{"key": "spot"}}, "affinity": map[string]any{"podAffinity": map[string]any{}}}
	}
	got, err := render(t, load(t, committed), values)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for key, object := range got {
		if !strings.HasPrefix(key, "Deployment") && !strings.HasPrefix(key, "DaemonSet") {
			continue
		}
		seen++
		text, err := yaml.Marshal(object.(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)["spec"])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"imagePullPolicy: Always", "imagePullSecrets:\n- name: registry", "serviceAccountName: shop", "nodeSelector:\n  disk: fast",
			"tolerations:\n- key: spot", "affinity:\n  podAffinity: {}", "name: HTTPS_PROXY", "name: RANKCACHE_REDIS"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q:\n%s", key, want, text)
			}
		}
	}
	if seen != 7 {
		t.Errorf("%d Deployments and DaemonSets", seen)
	}
}

// TestWritersArePostedToIfTheOperatorSaysSo: without, the writer has neither the port, nor a token, nor a Service.
func TestWritersArePostedToIfTheOperatorSaysSo(t *testing.T) {
	for _, scores := range []bool{true, false} {
		got, err := render(t, load(t, committed), map[string]any{"writer": map[string]any{"scores": scores}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(got["Deployment rankcache-writer"])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"containerPort: 8973", "RANKCACHE_WRITE_TOKEN", `:8973`} {
			if strings.Contains(string(text), want) != scores {
				t.Errorf("scores %t, but %q:\n%s", scores, want, text)
			}
		}
		if (got["Service rankcache-writer"] != nil) != scores {
			t.Errorf("scores %t: the Service is %v", scores, got["Service rankcache-writer"])
		}
	}
}

// TestRegionThatOnlyReads: its sidecars have the setting, new ones roll out with it, and nothing that writes to Redis runs.
func TestRegionThatOnlyReads(t *testing.T) {
	values := map[string]any{"node": map[string]any{"enabled": true}, "settings": "kafka: kafka-2:9092\n"}
	settings := func() (text, checksum string) {
		t.Helper()
		got, err := render(t, load(t, committed), values)
		if err != nil {
			t.Fatal(err)
		}
		pod := got["DaemonSet rankcache-node"].(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)
		return got["ConfigMap rankcache"].(map[string]any)["data"].(map[string]any)["rankcache.yaml"].(string),
			pod["metadata"].(map[string]any)["annotations"].(map[string]any)["checksum/settings"].(string)
	}
	text, before := settings()
	if strings.Contains(text, "redis-role") {
		t.Errorf("the settings of a writing region:\n%s", text)
	}
	values["redisRole"] = "replica"
	off := map[string]any{"enabled": false}
	for _, writes := range []string{"writer", "controller", "keep", "poller"} {
		for _, other := range []string{"writer", "controller", "keep", "poller"} {
			values[other] = off
		}
		values[writes] = map[string]any{"enabled": true}
		if _, err := render(t, load(t, committed), values); err == nil || !strings.Contains(err.Error(), "set "+writes+".enabled to false") {
			t.Errorf("with %s: %v", writes, err)
		}
		values[writes] = off
	}
	text, after := settings()
	var file map[string]any
	if err := yaml.Unmarshal([]byte(text), &file); err != nil || !reflect.DeepEqual(file, map[string]any{"kafka": "kafka-2:9092", "redis-role": "replica"}) {
		t.Errorf("the settings (%v):\n%s", err, text)
	}
	if before == after {
		t.Error("pods are not rolled out by another role")
	}
}

// TestNodeServiceOfOlderClusters: its readers get their own node's sidecar, or none.
func TestNodeServiceOfOlderClusters(t *testing.T) {
	for local, want := range map[bool]map[string]any{false: {"trafficDistribution": "PreferSameNode"}, true: {"internalTrafficPolicy": "Local"}} {
		got, err := render(t, load(t, committed), map[string]any{"node": map[string]any{"enabled": true, "local": local}})
		if err != nil {
			t.Fatal(err)
		}
		spec := got["Service rankcache-node"].(map[string]any)["spec"].(map[string]any)
		delete(spec, "selector")
		delete(spec, "ports")
		if !reflect.DeepEqual(spec, want) {
			t.Errorf("local %t: %v, want %v", local, spec, want)
		}
	}
}

// TestNotesSayHowToGoOn in every shape of the release.
func TestNotesSayHowToGoOn(t *testing.T) {
	c := load(t, committed)
	for want, writer := range map[string]map[string]any{
		"topic update_rank":                    {},
		"rankcache-writer.shop:8973/v1/scores": {"scores": true},
		"/rankcache doctor":                    {"enabled": false},
	} {
		all, err := chartutil.ToRenderValues(c, map[string]any{"writer": writer}, chartutil.ReleaseOptions{Name: "rankcache", Namespace: "shop"}, chartutil.DefaultCapabilities)
		if err != nil {
			t.Fatal(err)
		}
		files, err := engine.Render(c, all)
		if err != nil {
			t.Fatal(err)
		}
		if notes := files["rankcache/templates/NOTES.txt"]; !strings.Contains(notes, want) {
			t.Errorf("no %q in:\n%s", want, notes)
		}
	}
}

func TestUnknownValuesAreRefused(t *testing.T) {
	for _, values := range []map[string]any{
		{"writers": map[string]any{}},
		{"writer": map[string]any{"replica": 3}},
		{"writer": map[string]any{"replicas": "three"}},
		{"writer": map[string]any{"scores": "yes"}},
		{"writer": map[string]any{"tolerations": map[string]any{"key": "a list is wanted"}}},
		{"imagePullSecrets": []any{"a name alone"}},
		{"redisRole": "slave"},
		{"rooms": map[string]any{"rooms": "not a file"}},
		{"rooms": "room:\n  - uid: \"7\"\n"},
		{"rooms": "kafka: kafka:9092\n"}, // the settings
		{"rooms": "rooms.yaml"},          // --set in place of --set-file
	} {
		if _, err := render(t, load(t, committed), values); err == nil || !strings.Contains(err.Error(), "schema") {
			t.Errorf("%v: %v", values, err)
		}
	}
}

// TestRoomsReachTheConfigMapAsTheyAre: a parser of YAML between the two would turn the board 1_2_3 into 123.
func TestRoomsReachTheConfigMapAsTheyAre(t *testing.T) {
	rooms := "rooms:\n  - uid: \"7\" # comment\n    boards: [1_2_3]\n"
	got, err := render(t, load(t, committed), map[string]any{"rooms": rooms})
	if err != nil {
		t.Fatal(err)
	}
	data := got["ConfigMap rankcache-rooms"].(map[string]any)["data"].(map[string]any)["rooms.yaml"]
	if strings.TrimSpace(data.(string)) != strings.TrimSpace(rooms) {
		t.Errorf("%q", data)
	}
}
