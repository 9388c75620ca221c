{{/* What Helm's users expect on every object, beside the manifests' own labels. */}}
{{- define "shield.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/*
A manifest that no value changes: the file itself, in the release's namespace and with Helm's
labels. `make manifests` copies the files, so that the chart cannot differ from install.yaml.
*/}}
{{- define "shield.file" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- $text := $root.Files.Get (printf "files/%s" $name) }}
{{- if not $text }}{{ fail (printf "the chart has no files/%s" $name) }}{{ end }}
{{- $labels := printf "\n  labels:\n%s\n" (include "shield.labels" $root | indent 4) }}
{{- $text | replace "\n  labels:\n" $labels | replace "llm-shield-system" $root.Release.Namespace }}
{{- end }}

{{- define "shield.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{/* The files that Secrets bring: by name, the Secret and the variables with their files. */}}
{{- define "shield.mounts" -}}
{{- with .Values.certificate.secretName }}
- name: tls
  secret: {{ . }}
  files: {TLS_CERT_FILE: tls.crt, TLS_KEY_FILE: tls.key, TLS_CA_FILE: ca.crt}
{{- end }}
{{- with .Values.authentication.tokenSecretName }}
- name: token
  secret: {{ . }}
  files: {K8S_WEBHOOK_AUTH_TOKEN_FILE: token}
{{- end }}
{{- with .Values.authentication.clientCASecretName }}
- name: client-ca
  secret: {{ . }}
  files: {WEBHOOK_CLIENT_CA_FILE: ca.crt}
{{- end }}
{{- end }}
