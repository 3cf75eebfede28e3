{{- define "rankcache.sidecar" -}}
- name: rankcache
  image: {{ include "rankcache.image" . }}
  {{- with .Values.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  restartPolicy: Always # a native sidecar (Kubernetes 1.29): starts before the app and ends after it
  args:
  - serve
  - --config=/etc/rankcache/config/rankcache.yaml
  - --rooms=/etc/rankcache/rooms/rooms.yaml
  - --socket=/run/rankcache/data.sock
  - --snapshot-dir=/var/lib/rankcache
  - --drain-early # the kubelet stops a native sidecar when the app has ended
  env:
  {{- with .Values.sidecar.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if .Values.poller.enabled }}
  - name: RANKCACHE_HOT_SOURCE
    value: none
  {{- end }}
  - name: RANKCACHE_REDIS
    valueFrom:
      secretKeyRef:
        name: {{ .Values.secret }}
        key: redis-url
  - name: RANKCACHE_REDIS_READ
    valueFrom:
      secretKeyRef:
        name: {{ .Values.secret }}
        key: redis-read-url
        optional: true # of a replica, for small and hot boards: docs/REPLICAS.md
  - name: RANKCACHE_ADMIN_TOKEN
    valueFrom:
      secretKeyRef:
        name: {{ .Values.secret }}
        key: admin-token
        optional: true # without it nothing can be changed on the admin port
  - name: RANKCACHE_SNAPSHOTS # of a user that may only read
    valueFrom:
      secretKeyRef:
        name: {{ .Values.secret }}
        key: snapshots-url
        optional: true # without it a new pod reads the boards' logs from their beginning
  ports: # data and admin listen on loopback: kubectl port-forward reaches 8971
  - name: rankcache
    containerPort: 8972
  startupProbe: # the gate: the app starts once every super-hot board is open or given up to Redis
    httpGet:
      path: /startupz
      port: 8972
    periodSeconds: 2
    timeoutSeconds: 2
    failureThreshold: 300 # 10 minutes: more than --give-up-after and its share per update take
  readinessProbe: # latched: falls only when the sidecar stops
    httpGet:
      path: /readyz
      port: 8972
    periodSeconds: 2
    timeoutSeconds: 2
    failureThreshold: 3 # a busy node may lose an answer; a pod that ends leaves its Service without the probe
  livenessProbe: # checks only that the process answers; Redis and Kafka can't fail it
    httpGet:
      path: /livez
      port: 8972
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6 # a throttled pod is slow, not dead
  resources:
    {{- toYaml .Values.sidecar.resources | nindent 4 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
    seccompProfile:
      type: RuntimeDefault
  volumeMounts:
  - name: rankcache-config
    mountPath: /etc/rankcache/config
    readOnly: true
  - name: rankcache-rooms # the whole directory: a subPath would never see a change
    mountPath: /etc/rankcache/rooms
    readOnly: true
  - name: rankcache-run
    mountPath: /run/rankcache
  - name: rankcache-snapshots
    mountPath: /var/lib/rankcache
{{- end }}

{{- define "rankcache.volumes" -}}
- name: rankcache-config
  configMap:
    name: rankcache
- name: rankcache-rooms
  configMap:
    name: rankcache-rooms
- name: rankcache-run # the socket; an app that uses it mounts this too
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
- name: rankcache-snapshots # boards for the next start; outlives the container, not the pod
  emptyDir:
    sizeLimit: 1Gi # far above what boards in 512 MiB of memory can fill: a pod that exceeds it is evicted
{{- end }}
