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

{{- /* The name of an object that all releases of the cluster share a place with. */}}
{{- define "rds-autopilot.sharedName" -}}
{{- printf "%s-%s" .Release.Namespace (include "rds-autopilot.fullname" .) }}
{{- end }}

{{- define "rds-autopilot.selector" -}}
app.kubernetes.io/name: {{ include "rds-autopilot.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rds-autopilot.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "rds-autopilot.selector" . }}
{{- end }}

{{- define "rds-autopilot.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "rds-autopilot.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "rds-autopilot.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* The parts of publicURL. A path is needed: "/" would answer whoever guesses the host. */}}
{{- define "rds-autopilot.url" -}}
{{- $url := required "publicURL is required: the URL that the cloud posts alarms to, for instance https://autopilot.example.com/smn" .Values.publicURL | urlParse }}
{{- toYaml $url }}
{{- end }}

{{- /* How the process finds the cloud; the test pod needs it as well. */}}
{{- define "rds-autopilot.env" -}}
{{- if eq .Values.credentials.form "File" }}
# The cloud in clouds.yaml. Credentials are a file, because a changed Secret updates a file without a restart.
- name: OS_CLOUD
  value: {{ .Values.credentials.cloud | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "rds-autopilot.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "rds-autopilot.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
