package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// part is one component of the manifests and one template of the chart.
type part struct {
	name    string // of the folder in components, and of its entry in values.yaml
	comment string // in values.yaml
	enabled bool   // by default
	more    string // further lines of the entry
}

// parts in the order of values.yaml. The config comes first, the sidecar is a template for charts of apps.
var parts = []part{
	{name: "config"},
	{name: "sidecar", comment: "The container beside the app, which the app's own chart includes: see README.md"},
	{name: "writer", comment: "Applies commands of the topic update_rank to Redis, and sends the updates", enabled: true, more: ofWriters},
	{name: "controller", comment: "Ends boards of classes after their period, and deletes topics of boards that are gone", enabled: true},
	{name: "keep", comment: "Reads Redis once for all sidecars: worth it from some ten pods on"},
	{name: "poller", comment: "Asks the cloud for hot keys, once for all sidecars"},
	{name: "ledger", comment: "Keeps every change of the classes with ledger: true in SQL; needs the Secret ledgerSecret"},
	{name: "reconcile", comment: "Compares the ledger with your own books; needs the Secrets ledgerSecret and booksSecret"},
	{name: "node", comment: "One sidecar a node in place of one a pod, with the policy that names its readers; docs/kubernetes/NODE.md compares them", more: ofNodes},
	{name: "network-policy", comment: "Allowed connections"},
	{name: "pod-monitor", comment: "Metrics, for the Prometheus operator"},
	{name: "alerts", comment: "Alerts, for the Prometheus operator"},
	{name: "dashboard", comment: "A dashboard, for a Grafana whose sidecar loads ConfigMaps labelled grafana_dashboard"},
}

const ofWriters = `  strategy: # RollingUpdate only between versions of which docs/kubernetes/PODS.md says so
    type: Recreate
  scores: false # POST /v1/scores on port 8973 of the Service rankcache-writer, with the Secret's write-token
`

const ofNodes = `  local: false # true for Kubernetes before 1.34: apps read from their own node's sidecar alone
`

// key is the part's name in values.yaml.
func (p part) key() string {
	first, second, found := strings.Cut(p.name, "-")
	if found {
		return first + strings.ToUpper(second[:1]) + second[1:]
	}
	return first
}

func (p part) file() string {
	if p.name == "sidecar" {
		return "_sidecar.tpl"
	}
	return p.name + ".yaml"
}

// build returns what a component adds to an app's manifests, or the two ConfigMaps for "config".
func build(k8s, component string) ([]*resource.Resource, error) {
	dir, err := os.MkdirTemp("", "chart")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	from, err := relative(dir, k8s)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("resources: [%s/config]\n", from)
	switch component {
	case "config":
	case "sidecar": // with the poller, as that changes a setting of it
		text = fmt.Sprintf("resources: [app.yaml]\ncomponents: [%[1]s/components/sidecar, %[1]s/components/poller]\n", from)
	case "writer": // with the port for posts, which is a value of it
		text += fmt.Sprintf("components: [%[1]s/components/writer, %[1]s/components/scores]\n", from)
	default:
		text += fmt.Sprintf("components: [%s/components/%s]\n", from, component)
	}
	for name, text := range map[string]string{"kustomization.yaml": text, "app.yaml": app} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	return chosen(built.Resources(), component), nil
}

// app gets the sidecar.
const app = `apiVersion: apps/v1
kind: Deployment
metadata: {name: app, labels: {rankcache: sidecar}}
spec: {template: {spec: {containers: [{name: app, image: app}]}}}
`

// chosen leaves out the ConfigMaps that each build contains besides the component's own resources.
func chosen(all []*resource.Resource, component string) []*resource.Resource {
	var own []*resource.Resource
	for _, r := range all {
		isConfig := r.GetKind() == "ConfigMap" && component != "dashboard" || r.GetKind() == "ConfigMap" && r.GetName() != "rankcache-dashboard"
		if component == "sidecar" && r.GetName() == "app" || component != "sidecar" && isConfig == (component == "config") {
			own = append(own, r)
		}
	}
	return own
}

func relative(from, to string) (string, error) {
	to, err := filepath.Abs(to)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}
