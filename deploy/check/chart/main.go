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
	files["values.yaml"], files["templates/_names.tpl"] = text, names
	files["values.schema.json"], err = schemaOf(text)
	return files, err
}

// names are the templates that the generated ones call.
const names = `{{- define "rankcache.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* A digest of the settings: as a pod's annotation it rolls the pods out when they change. */}}
{{- define "rankcache.checksum" -}}
{{ .Values.settings | sha256sum }}
{{- end }}
`
