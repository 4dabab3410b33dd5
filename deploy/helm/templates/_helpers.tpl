{{- define "federator.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end }}

{{- define "federator.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The labels that select the pods of one component. Call it with (list . "api"). */}}
{{- define "federator.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "federator.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "federator.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "federator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* A pod restarts with a new configuration, as federator.toml is read at the start. */}}
{{- define "federator.podAnnotations" -}}
checksum/config: {{ include (print .Template.BasePath "/config.yaml") . | sha256sum }}
{{- end }}

{{- define "federator.env" -}}
{{- range $variable, $secret := .Values.secretEnv }}
- name: {{ $variable }}
  valueFrom:
    secretKeyRef: {name: {{ $secret.name | quote }}, key: {{ $secret.key | quote }}}
{{- end }}
{{- end }}

{{- define "federator.mounts" -}}
- {name: config, mountPath: /var/lib/federator/federator.toml, subPath: federator.toml, readOnly: true}
- {name: state, mountPath: /var/lib/federator/.federator}
- {name: tmp, mountPath: /tmp}
{{- range .Values.secretFiles }}
- {name: {{ printf "secret-%s" .name }}, mountPath: {{ printf "/run/secrets/federator/%s" .name }}, readOnly: true}
{{- end }}
{{- end }}

{{/* Call it with (list . "1Gi"): the size of /tmp. */}}
{{- define "federator.volumes" -}}
{{- $root := index . 0 -}}
- name: config
  configMap: {name: {{ include "federator.name" $root }}}
- name: state
{{- if $root.Values.state.enabled }}
  persistentVolumeClaim: {claimName: {{ $root.Values.state.existingClaim | default (printf "%s-state" (include "federator.name" $root)) }}}
{{- else }}
  emptyDir: {}
{{- end }}
- name: tmp
  emptyDir: {sizeLimit: {{ index . 1 }}}
{{- range $root.Values.secretFiles }}
- name: {{ printf "secret-%s" .name }}
  secret: {secretName: {{ .name }}, defaultMode: 0440}
{{- end }}
{{- end }}
