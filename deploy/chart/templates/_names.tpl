{{- define "rankcache.image" -}}
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
