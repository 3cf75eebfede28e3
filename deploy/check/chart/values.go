package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// valuesFile gathers the entries of values.yaml that come from the manifests.
type valuesFile struct {
	entries strings.Builder
	pending []string // lines of the part that is being made
}

// set notes a value of a part, with the manifest's comments.
func (v *valuesFile) set(name string, value *yaml.Node) {
	text, err := yaml.NewRNode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Value: name}, yaml.CopyYNode(value),
	}}).String()
	if err != nil {
		panic(err) // a node that was just read
	}
	v.pending = append(v.pending, indented(text))
}

// add ends the part's entry.
func (v *valuesFile) add(p part) {
	fmt.Fprintf(&v.entries, "\n# %s.\n%s:\n", p.comment, p.key())
	if p.name != "sidecar" {
		fmt.Fprintf(&v.entries, "  enabled: %t\n", p.enabled)
	}
	v.entries.WriteString(strings.Join(v.pending, "") + p.more)
	switch {
	case len(v.pending) == 0:
	case p.name == "sidecar":
		v.entries.WriteString(ofContainers)
	default:
		v.entries.WriteString(ofContainers + ofPods)
	}
	v.pending = nil
}

// text is the whole file.
func (v *valuesFile) text(k8s string) (string, error) {
	settings, err := os.ReadFile(filepath.Join(k8s, "config/rankcache.yaml")) // #nosec G304 -- a folder of the source tree
	if err != nil {
		return "", err
	}
	rooms, err := os.ReadFile(filepath.Join(k8s, "config/rooms.yaml")) // #nosec G304 -- a folder of the source tree
	if err != nil {
		return "", err
	}
	return general +
		"\n# The file rankcache.yaml: --set-file settings=rankcache.yaml\nsettings: |\n" + indented(string(settings)) +
		"\n# The file rooms.yaml: --set-file rooms=rooms.yaml\nrooms: |\n" + indented(string(rooms)) + v.entries.String(), nil
}

// What containers and pods have besides, in Kubernetes's own form.
const (
	ofContainers = "  env: []\n"
	ofPods       = "  nodeSelector: {}\n  tolerations: []\n  affinity: {}\n"
)

const general = `# Made by "make chart" from deploy/k8s. Change it there.

image:
  repository: rankcache # a PLACEHOLDER: where your cluster finds the image that deploy/Dockerfile builds
  tag: "" # the chart's appVersion
  pullPolicy: "" # Kubernetes's default

# As Kubernetes has it: [{name: registry}]. The pods of your app have their own.
imagePullSecrets: []

# Of the pods beside apps. They call no Kubernetes API and get no token.
serviceAccountName: ""

# The Secret with redis-url, and if you want redis-read-url, admin-token, write-token, tencent-secret-id and tencent-secret-key.
secret: rankcache

# replica: a region that only reads, beside a replica of the writing region's Redis (docs/REGIONS.md). Turn writer and controller off there.
redisRole: master

# The Secret with the ledger's database-url.
ledgerSecret: rankcache-ledger

# The Secret with the database-url of your own books, and the query.
booksSecret: rankcache-books

# Where your people read the folder docs of the version that runs: a PLACEHOLDER. Alerts link to its runbooks.
runbooks: https://docs.example.com/rankcache/dev

# The namespace of Prometheus, which the network policy lets in.
monitoringNamespace: monitoring

# The port of the app beside a sidecar, which the network policy opens.
appPort: 8080
`

func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			out.WriteString("  ")
		}
		out.WriteString(line)
	}
	return out.String()
}
