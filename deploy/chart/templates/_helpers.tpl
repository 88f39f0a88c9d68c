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
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "rds-autopilot.fullname" .) }}
{{- else }}
{{- required "serviceAccount.name is required with serviceAccount.create=false: the account default must not get the rights of this service" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* A digest or tag of the values, else the tag and digest of this chart's release. */}}
{{- define "rds-autopilot.image" -}}
{{- $released := index .Chart.Annotations "autopilot.otc.mcsps.de/image-digest" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else if or .Values.image.tag (not $released) -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Chart.AppVersion }}@{{ $released }}
{{- end }}
{{- end }}

{{- /* The parts of publicURL. A path is needed: "/" would answer whoever guesses the host. */}}
{{- define "rds-autopilot.url" -}}
{{- $url := required "publicURL is required: the URL that the cloud posts alarms to, for instance https://autopilot.example.com/smn" .Values.publicURL | urlParse }}
{{- toYaml $url }}
{{- end }}

{{- /* The environment of every container of this image. The flags of serve are variables and not arguments, so that helm test,
the check before uninstallation and "kubectl exec … -- rds-autopilot doctor" have them too. */}}
{{- define "rds-autopilot.env" -}}
- name: RDS_AUTOPILOT_PUBLIC_URL
  value: {{ required "publicURL is required: the URL that the cloud posts alarms to, for instance https://autopilot.example.com/smn" .Values.publicURL | quote }}
- name: RDS_AUTOPILOT_MODE
  value: {{ .Values.mode | quote }}
- name: RDS_AUTOPILOT_LEASE_NAME
  value: {{ include "rds-autopilot.fullname" . | quote }}
{{- with .Values.watchNamespaces }}
- name: RDS_AUTOPILOT_WATCH_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- range $flag, $value := .Values.flags }}
- name: RDS_AUTOPILOT_{{ $flag | upper | replace "-" "_" }}
  value: {{ kindIs "slice" $value | ternary (join "," $value) (toString $value) | quote }}
{{- end }}
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

{{- define "rds-autopilot.mounts" }}
{{- if or (eq .Values.credentials.form "File") .Values.extraVolumeMounts -}}
volumeMounts:
{{- if eq .Values.credentials.form "File" }}
- name: credentials
  mountPath: /etc/openstack # without subPath, because a subPath mount does not follow changes of the Secret
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "rds-autopilot.volumes" }}
{{- if or (eq .Values.credentials.form "File") .Values.extraVolumes -}}
volumes:
{{- if eq .Values.credentials.form "File" }}
- name: credentials
  secret:
    secretName: {{ .Values.credentials.secret }}
    defaultMode: 0440
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}
