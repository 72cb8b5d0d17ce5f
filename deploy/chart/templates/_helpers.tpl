{{/* Prefix of the names of all objects in the namespace of the release. */}}
{{- define "sandlot.fullname" -}}
{{ .Values.fullnameOverride | default "sandlot" }}
{{- end }}

{{- define "sandlot.labels" -}}
app.kubernetes.io/name: {{ .root.Values.nameOverride | default "sandlot" }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sandlot.podLabels" -}}
{{ include "sandlot.labels" . }}
{{- with (index .root.Values .component).podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A changed Secret changes the checksum, so the next upgrade restarts the pods. `helm template` omits the checksum. */}}
{{- define "sandlot.podAnnotations" -}}
kubectl.kubernetes.io/default-container: {{ .component }}
{{- with (lookup "v1" "Secret" .root.Release.Namespace .root.Values.secretName).data }}
checksum/secret: {{ toJson . | sha256sum }}
{{- end }}
{{- with (index .root.Values .component).podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sandlot.selector" -}}
app.kubernetes.io/name: {{ .root.Values.nameOverride | default "sandlot" }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{/* Name of an image. If global.imageRegistry is set, it replaces the registry in the name. */}}
{{- define "sandlot.registry" -}}
{{- $parts := splitList "/" .image }}
{{- if not .root.Values.global.imageRegistry }}{{ .image }}
{{- else }}
{{- if and (gt (len $parts) 1) (regexMatch "[.:]|^localhost$" (first $parts)) }}{{ $parts = rest $parts }}{{ end }}
{{- prepend $parts .root.Values.global.imageRegistry | join "/" }}
{{- end }}
{{- end }}

{{- define "sandlot.image" -}}
{{ include "sandlot.registry" (dict "root" . "image" .Values.image.repository) }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Meets the pod security standard `restricted`, together with sandlot.containerSecurity. */}}
{{- define "sandlot.podSecurity" -}}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .user }}
  runAsGroup: {{ .user }}
  fsGroup: {{ .user }}
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "sandlot.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "sandlot.ofSecret" -}}
- name: {{ .name }}
  valueFrom: {secretKeyRef: {name: {{ .root.Values.secretName }}, key: {{ get .root.Values.secretKeys .name | default .name }}}}
{{- end }}

{{- define "sandlot.databaseUrl" -}}
{{ if .Values.quickstart.enabled }}postgresql://sandlot:$(DATABASE_PASSWORD)@{{ include "sandlot.fullname" . }}-postgres:5432/sandlot{{ else }}{{ .Values.database.url }}{{ end }}
{{- end }}

{{- define "sandlot.redisUrl" -}}
{{ if .Values.quickstart.enabled }}redis://:$(REDIS_PASSWORD)@{{ include "sandlot.fullname" . }}-redis:6379{{ else }}{{ .Values.redis.url }}{{ end }}
{{- end }}

{{/* Environment variable with a URL, preceded by the variable with the URL's password, if any. */}}
{{- define "sandlot.urlEnv" -}}
{{- if .url }}
{{- if contains (printf "$(%s)" .password) .url }}
{{ include "sandlot.ofSecret" (dict "root" .root "name" .password) }}
{{- end }}
- {name: {{ .name }}, value: {{ .url | quote }}}
{{- else }}
{{ include "sandlot.ofSecret" (dict "root" .root "name" .name) }}
{{- end }}
{{- end }}

{{- define "sandlot.databaseEnv" -}}
{{- if .Values.caConfigMap -}}
- {name: NODE_EXTRA_CA_CERTS, value: /etc/ssl/sandlot/ca.crt}
{{ end }}
{{- include "sandlot.urlEnv" (dict "root" . "name" "DATABASE_URL" "password" "DATABASE_PASSWORD" "url" (include "sandlot.databaseUrl" .)) | trim }}
{{- end }}

{{- define "sandlot.caMount" -}}
{{- if .Values.caConfigMap }}
volumeMounts:
  - {name: ca, mountPath: /etc/ssl/sandlot, readOnly: true}
{{- end }}
{{- end }}

{{/* Volume mounts of a process: the CA certificates, if any, and the extra mounts from values.yaml. */}}
{{- define "sandlot.mounts" -}}
{{- include "sandlot.caMount" .root | default (ternary "volumeMounts:" "" (not (empty .extra))) }}
{{- with .extra }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "sandlot.volumes" -}}
{{- if or .root.Values.caConfigMap .extra }}
volumes:
{{- with .root.Values.caConfigMap }}
  - {name: ca, configMap: {name: {{ . }}}}
{{- end }}
{{- with .extra }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* Environment variables of the API and the workers. */}}
{{- define "sandlot.env" -}}
{{- $sandboxes := .Values.sandboxes }}
{{- $env := dict
  "SANDBOX_DRIVER" "kubernetes"
  "SANDBOX_NAMESPACE" $sandboxes.namespace
  "SANDBOX_IMAGE" $sandboxes.image
  "SANDBOX_IMAGES" ($sandboxes.images | join ",")
  "SANDBOX_EGRESS" $sandboxes.egress
  "SANDBOX_RUNTIME_CLASS" $sandboxes.runtimeClass
  "SANDBOX_HOST_USERS" (ternary "yes" "no" $sandboxes.hostUsers)
  "SANDBOX_PRIORITY_CLASS" $sandboxes.priorityClassName
  "SANDBOX_IMAGE_PULL_SECRETS" ($sandboxes.imagePullSecrets | join ",")
  "SANDBOX_DNS" ($sandboxes.dns | join ",")
  "SANDBOX_NETWORK_POLICIES" ($sandboxes.networkPolicies | join ",")
  "SANDBOX_CPU" $sandboxes.limits.cpu
  "SANDBOX_MEMORY" $sandboxes.limits.memory
  "SANDBOX_DISK" $sandboxes.limits.disk
  "SANDBOX_CPU_REQUEST" $sandboxes.requests.cpu
  "SANDBOX_MEMORY_REQUEST" $sandboxes.requests.memory
  "SANDBOX_DISK_REQUEST" $sandboxes.requests.disk
}}
{{- include "sandlot.databaseEnv" . }}
{{ include "sandlot.urlEnv" (dict "root" . "name" "REDIS_URL" "password" "REDIS_PASSWORD" "url" (include "sandlot.redisUrl" .)) | trim }}
- name: INTERNAL_HOST
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- range $name, $value := dict "NODE_SELECTOR" $sandboxes.nodeSelector "TOLERATIONS" $sandboxes.tolerations "AFFINITY" $sandboxes.affinity }}
{{- if $value }}
- {name: SANDBOX_{{ $name }}, value: {{ toJson $value | quote }}}
{{- end }}
{{- end }}
{{- range $name, $value := $env }}
{{- if $value }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}}
{{- end }}
{{- end }}

{{/* A new pod has started once its dependencies are available. After that, only liveness is probed, because a restart
     does not fix an outage of a dependency. */}}
{{- define "sandlot.startAndLife" -}}
startupProbe:
  httpGet: {path: /readyz, port: 9090}
  timeoutSeconds: 5
  periodSeconds: 2
  failureThreshold: 900
livenessProbe:
  httpGet: {path: /healthz, port: 9090}
  timeoutSeconds: 5
  periodSeconds: 10
  failureThreshold: 6
{{- end }}

{{- define "sandlot.spread" -}}
{{- with (index .root.Values .component).topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- else }}
topologySpreadConstraints:
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "sandlot.selector" $ | nindent 8 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "sandlot.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "sandlot.nodes" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* With quickstart, the database may not be migrated yet. The first pod migrates it, and the others wait. */}}
{{- define "sandlot.migrateFirst" -}}
{{- if .Values.quickstart.enabled }}
initContainers:
  {{- include "sandlot.migrateContainer" . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "sandlot.migrateContainer" -}}
- name: migrate
  image: {{ include "sandlot.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  {{- if .Values.quickstart.enabled }}
  # Waits inside the container. Kubernetes would delay the restart of a failed container by up to five minutes.
  args: [migrate, --wait, "600"]
  {{- else }}
  args: [migrate]
  {{- end }}
  env: {{- include "sandlot.databaseEnv" . | nindent 4 }}
  {{- with include "sandlot.caMount" . | trim }}{{ . | nindent 2 }}{{ end }}
  resources:
    requests: {cpu: 50m, memory: 128Mi}
    limits: {memory: 512Mi}
  {{- include "sandlot.containerSecurity" . | nindent 2 }}
{{- end }}

{{/* Converts a value to a CEL expression. dyn() lets the values of a CEL map or list have different types. */}}
{{- define "sandlot.cel" -}}
{{- if kindIs "map" . -}}
{ {{- range $index, $key := keys . | sortAlpha }}{{ if $index }}, {{ end }}{{ toJson $key }}: dyn({{ include "sandlot.cel" (index $ $key) }}){{ end -}} }
{{- else if kindIs "slice" . -}}
[{{- range $index, $item := . }}{{ if $index }}, {{ end }}dyn({{ include "sandlot.cel" $item }}){{ end -}}]
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end }}

{{- define "sandlot.sandboxLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sandlot.dns" -}}
- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
{{- end }}
