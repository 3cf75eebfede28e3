package main

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// template returns the part's template, and adds its entry to values.yaml.
func (p part) template(built []*resource.Resource, values *valuesFile) (string, error) {
	if len(built) == 0 {
		return "", fmt.Errorf("kustomize gives nothing")
	}
	switch p.name {
	case "config":
		return configMaps, nil
	case "sidecar":
		return p.sidecar(built[0], values)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "{{- if .Values.%s.enabled }}\n", p.key())
	for i, r := range built {
		if i > 0 {
			text.WriteString("---\n")
		}
		one, err := p.resource(r, values)
		if err != nil {
			return "", err
		}
		text.WriteString(one)
	}
	text.WriteString("{{- end }}\n")
	values.add(p)
	return text.String(), nil
}

// configMaps are the settings and the rooms.
const configMaps = `apiVersion: v1
kind: ConfigMap
metadata:
  name: rankcache
data:
  rankcache.yaml: |
    {{- .Values.settings | nindent 4 }}
{{- include "rankcache.region" . }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: rankcache-rooms
data:
  rooms.yaml: |
    {{- .Values.rooms | nindent 4 }}
`

// resource returns one Kubernetes object with its values taken out.
func (p part) resource(r *resource.Resource, values *valuesFile) (string, error) {
	node := &r.RNode
	if r.GetKind() == "Deployment" || r.GetKind() == "DaemonSet" {
		if err := p.pods(node, values); err != nil {
			return "", err
		}
	}
	text, err := node.String()
	if err != nil {
		return "", err
	}
	if text = p.expressions(text); p.name == "writer" && r.GetKind() == "Service" {
		text = "{{- if .Values.writer.scores }}\n" + text + "{{- end }}\n"
	}
	return text, nil
}

// pods notes resources, and the replicas of a Deployment, as values, and puts marks in their place.
func (p part) pods(node *yaml.RNode, values *valuesFile) error {
	replicas, err := node.Pipe(yaml.Lookup("spec", "replicas"))
	if err != nil {
		return err
	}
	if replicas != nil {
		values.set("replicas", replicas.Document())
		if err := node.PipeE(yaml.Lookup("spec"), yaml.SetField("replicas", yaml.NewStringRNode("__REPLICAS__"))); err != nil {
			return err
		}
	}
	containers, err := node.Pipe(yaml.Lookup("spec", "template", "spec", "containers", "0"))
	if err != nil {
		return err
	}
	if err := p.takeResources(containers, values); err != nil {
		return err
	}
	return node.PipeE(yaml.LookupCreate(yaml.MappingNode, "spec", "template", "metadata", "annotations"),
		yaml.SetField("checksum/settings", yaml.NewStringRNode("__CHECKSUM__")))
}

func (p part) takeResources(container *yaml.RNode, values *valuesFile) error {
	resources, err := container.Pipe(yaml.Lookup("resources"))
	if err != nil {
		return err
	}
	values.set("resources", resources.Document())
	return container.PipeE(yaml.SetField("resources", yaml.NewStringRNode("__RESOURCES__")))
}

// sidecar returns the named templates for an app's chart: the container, and the volumes.
func (p part) sidecar(r *resource.Resource, values *valuesFile) (string, error) {
	container, err := r.Pipe(yaml.Lookup("spec", "template", "spec", "initContainers", "0"))
	if err != nil {
		return "", err
	}
	if err := p.takeResources(container, values); err != nil {
		return "", err
	}
	volumes, err := r.Pipe(yaml.Lookup("spec", "template", "spec", "volumes"))
	if err != nil {
		return "", err
	}
	one := yaml.NewListRNode()
	if err := one.PipeE(yaml.Append(container.YNode())); err != nil {
		return "", err
	}
	values.add(p)
	return "{{- define \"rankcache.sidecar\" -}}\n" + p.expressions(one.MustString()) + "{{- end }}\n\n" +
		"{{- define \"rankcache.volumes\" -}}\n" + p.expressions(volumes.MustString()) + "{{- end }}\n", nil
}

// expressions turns marks and known values into expressions of Helm's templates.
func (p part) expressions(text string) string {
	text = strings.ReplaceAll(text, "{{", `{{ "{{" }}`) // what alerts and dashboards fill in themselves
	for _, c := range changes {
		text = c.what.ReplaceAllString(text, strings.ReplaceAll(c.with, "KEY", p.key()))
	}
	return resources.ReplaceAllStringFunc(text, func(line string) string {
		indent := strings.Index(line, "r")
		return fmt.Sprintf("%sresources:\n%s  {{- toYaml .Values.%s.resources | nindent %d }}", line[:indent], line[:indent], p.key(), indent+2)
	})
}

var resources = regexp.MustCompile(` *resources: __RESOURCES__`)

// changes from what kustomize builds to what Helm fills in.
var changes = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`( *)image: rankcache\n`), "${1}image: {{ include \"rankcache.image\" . }}\n$1{{- with .Values.image.pullPolicy }}\n${1}imagePullPolicy: {{ . }}\n$1{{- end }}\n"},
	{regexp.MustCompile(`( *)enableServiceLinks: false\n`), "$0$1{{- with include \"rankcache.pod\" (list . .Values.KEY) | trim }}\n$1{{- . | nindent 6 }}\n$1{{- end }}\n"},
	{regexp.MustCompile(`(?m)^        env:\n`), "$0        {{- with .Values.KEY.env }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n"},
	{regexp.MustCompile(`(?m)^  env:\n`), "$0  {{- with .Values.KEY.env }}\n  {{- toYaml . | nindent 2 }}\n  {{- end }}\n"},
	{regexp.MustCompile(`  trafficDistribution: PreferSameNode.*\n`), "  {{- if .Values.KEY.local }}\n  internalTrafficPolicy: Local\n  {{- else }}\n$0  {{- end }}\n"},
	{regexp.MustCompile(`  strategy:\n.*\n`), "  strategy:\n    {{- toYaml .Values.KEY.strategy | nindent 4 }}\n"},
	{regexp.MustCompile(`(name: RANKCACHE_SCORES).*\n( *value:) ":8973"`), "$1\n$2 {{ ternary \":8973\" \"\" .Values.KEY.scores | quote }}"},
	{regexp.MustCompile(`( *)- name: RANKCACHE_WRITE_TOKEN\n(?: +.*\n){4}`), "$1{{- if .Values.KEY.scores }}\n$0$1{{- end }}\n"},
	{regexp.MustCompile(`( *)- name: scores\n +containerPort: 8973\n`), "$1{{- if .Values.KEY.scores }}\n$0$1{{- end }}\n"},
	{regexp.MustCompile(`__REPLICAS__`), `{{ .Values.KEY.replicas }}`},
	{regexp.MustCompile(`__CHECKSUM__`), `{{ include "rankcache.checksum" . }}`},
	{regexp.MustCompile(`(secretKeyRef:\n +name:) rankcache\n`), "$1 {{ .Values.secret }}\n"},
	{regexp.MustCompile(`secretName: rankcache-ledger\n`), "secretName: {{ .Values.ledgerSecret }}\n"},
	{regexp.MustCompile(`secretName: rankcache-books\n`), "secretName: {{ .Values.booksSecret }}\n"},
	{regexp.MustCompile(`(configMap:\n +name: rankcache)-[a-z0-9]{10}\n`), "$1\n"},
	{regexp.MustCompile(`kubernetes.io/metadata.name: monitoring`), `kubernetes.io/metadata.name: {{ .Values.monitoringNamespace }}`},
	{regexp.MustCompile(`- port: 8080\n`), "- port: {{ .Values.appPort }}\n"},
	{regexp.MustCompile(`https://docs\.example\.com/rankcache/dev`), `{{ trimSuffix "/RUNBOOKS.md" .Values.runbooks }}`}, // values of earlier charts end in that
	{regexp.MustCompile(`( *)- name: RANKCACHE_HOT_SOURCE\n +value: none\n`), "$1{{- if .Values.poller.enabled }}\n$0$1{{- end }}\n"},
}
