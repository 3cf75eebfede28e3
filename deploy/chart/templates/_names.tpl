{{- define "rankcache.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* A digest of the settings: as a pod's annotation it rolls the pods out when they change. */}}
{{- define "rankcache.checksum" -}}
{{ .Values.settings | sha256sum }}
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
