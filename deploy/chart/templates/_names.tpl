{{- define "rankcache.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* A digest of the settings: as a pod's annotation it rolls the pods out when they change. */}}
{{- define "rankcache.checksum" -}}
{{ .Values.settings | sha256sum }}
{{- end }}
