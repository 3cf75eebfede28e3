// Command chart writes deploy/chart, the Helm chart, from the manifests in deploy/k8s. The manifests are the only source:
// the chart's templates are what kustomize builds from them, with the values that an operator changes taken out.
//
//	go run ./chart ../k8s ../chart    in deploy/check; "make chart" does so
//
// Its tests compare the committed chart with a new one, and what Helm renders from it with what kustomize builds.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: chart <folder of the manifests> <folder of the chart>")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// write makes all files of the chart, and leaves what else is in the folder (Chart.yaml, README.md) alone.
func write(k8s, chart string) error {
	files, err := generate(k8s)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(chart, "templates")); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(chart, "templates"), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(chart, name), []byte(text), 0o644); err != nil { // #nosec G306 -- a file of the source tree
			return err
		}
	}
	return nil
}

// generate returns the chart's files by their names in its folder.
func generate(k8s string) (map[string]string, error) {
	files := map[string]string{}
	var values valuesFile
	for _, p := range parts {
		built, err := build(k8s, p.name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		text, err := p.template(built, &values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		files["templates/"+p.file()] = text
	}
	text, err := values.text(k8s)
	if err != nil {
		return nil, err
	}
	files["values.yaml"], files["templates/_names.tpl"], files["templates/NOTES.txt"] = text, names, notes
	files["values.schema.json"], err = schemaOf(text)
	return files, err
}

// names are the templates that the generated ones call.
const names = `{{- define "rankcache.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* A digest of the settings: as a pod's annotation it rolls the pods out when they change. */}}
{{- define "rankcache.checksum" -}}
{{ print .Values.settings (include "rankcache.region" .) | sha256sum }}
{{- end }}

{{/* The setting of a region that only reads, where nothing that writes to Redis may run. */}}
{{- define "rankcache.region" -}}
{{- if eq .Values.redisRole "replica" }}
    redis-role: replica
{{- range $name := list "writer" "controller" "keep" "poller" }}
{{- if (index $.Values $name).enabled }}
{{- fail (printf "redisRole is replica: set %s.enabled to false, as it writes to Redis (docs/REGIONS.md)" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* What a pod has besides: list . .Values.writer */}}
{{- define "rankcache.pod" -}}
{{- $all := (index . 0).Values }}
{{- range $name, $value := merge (pick (index . 1) "nodeSelector" "tolerations" "affinity") (pick $all "imagePullSecrets" "serviceAccountName") }}
{{- with $value }}
{{ dict $name . | toYaml }}
{{- end }}
{{- end }}
{{- end }}
`

// notes is what "helm install" prints.
const notes = `{{- if .Values.writer.enabled }}
Are the writers ready, and why not:
  kubectl -n {{ .Release.Namespace }} rollout status deployment/rankcache-writer
  kubectl -n {{ .Release.Namespace }} logs deployment/rankcache-writer --tail=20
{{- if .Values.writer.scores }}
Apps post to http://rankcache-writer.{{ .Release.Namespace }}:8973/v1/scores, with the write-token of the Secret {{ .Values.secret }}.
{{- else }}
Commands come from the topic update_rank; with writer.scores=true apps may post them, too.
{{- end }}
{{- end }}
The sidecar goes into your app's chart: deploy/chart/README.md. Check Redis, Kafka and rooms from a pod that has it:
  kubectl -n {{ .Release.Namespace }} exec YOUR-POD -c rankcache -- /rankcache doctor --config /etc/rankcache/config/rankcache.yaml --rooms /etc/rankcache/rooms/rooms.yaml
`
