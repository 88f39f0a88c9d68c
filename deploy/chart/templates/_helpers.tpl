{{- define "rds-autopilot.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "rds-autopilot.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "rds-autopilot.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "rds-autopilot.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* The name of an object that all releases of the cluster share a place with. Neither of its parts can contain a dot, so no two
releases have the same name. */}}
{{- define "rds-autopilot.sharedName" -}}
{{- printf "%s.%s" .Release.Namespace (include "rds-autopilot.fullname" .) }}
{{- end }}

{{- /* The name of an object that may be in the namespace of others: root, namespace. */}}
{{- define "rds-autopilot.nameIn" -}}
{{- include (has .namespace (list "" .root.Release.Namespace) | ternary "rds-autopilot.fullname" "rds-autopilot.sharedName") .root }}
{{- end }}

{{- define "rds-autopilot.selector" -}}
app.kubernetes.io/name: {{ include "rds-autopilot.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "rds-autopilot.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "rds-autopilot.selector" . }}
{{- end }}

{{- /* The label of the Service that Prometheus scrapes. Argo CD overwrites app.kubernetes.io/instance. */}}
{{- define "rds-autopilot.scraped" -}}
autopilot.otc.mcsps.de/scraped: {{ include "rds-autopilot.fullname" . | quote }}
{{- end }}

{{- /* The metadata of an object: root, and name (empty means the release's), namespace (empty means none), labels, annotations, and
unversioned for labels that an upgrade does not change. */}}
{{- define "rds-autopilot.metadata" -}}
name: {{ .name | default (include "rds-autopilot.fullname" .root) | quote }}
{{- with .namespace }}
namespace: {{ . | quote }}
{{- end }}
labels:
  {{- $labels := include (hasKey . "unversioned" | ternary "rds-autopilot.selector" "rds-autopilot.labels") .root | fromYaml }}
  {{- merge (dict) (.labels | default dict) $labels (.root.Values.commonLabels | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "rds-autopilot.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "rds-autopilot.fullname" .) }}
{{- else }}
{{- required "serviceAccount.name is required with serviceAccount.create=false: the account default must not get the rights of this service" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* The registry of all charts replaces that of the repository: a first part with a dot or a port, or localhost. Without a digest
or tag in the values, the image has the tag and digest of this chart's release. */}}
{{- define "rds-autopilot.image" -}}
{{- $repository := .Values.image.repository }}
{{- with .Values.global.imageRegistry }}
{{- $repository = printf "%s/%s" . (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $repository "") }}
{{- end }}
{{- $released := index .Chart.Annotations "autopilot.otc.mcsps.de/image-digest" }}
{{- $tag := empty $released | ternary .Chart.AppVersion (printf "%s@%s" .Chart.AppVersion $released) }}
{{- $repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default $tag }}{{ end }}
{{- end }}

{{- /* The URL that the cloud posts to, and its parts. */}}
{{- define "rds-autopilot.publicURL" -}}
{{- required "publicURL is required: the URL that the cloud posts alarms to, for instance https://autopilot.example.com/smn" .Values.publicURL }}
{{- end }}
{{- define "rds-autopilot.url" -}}
{{- include "rds-autopilot.publicURL" . | urlParse | toYaml }}
{{- end }}
