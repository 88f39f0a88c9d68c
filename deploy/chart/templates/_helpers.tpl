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

{{- /* The metadata of an object: root, and name (empty means the release's), namespace (empty means none), labels, annotations. */}}
{{- define "rds-autopilot.metadata" -}}
{{- include "rds-autopilot.renamed" .root -}}
name: {{ .name | default (include "rds-autopilot.fullname" .root) }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- $labels := include "rds-autopilot.labels" .root | fromYaml }}
  {{- merge (dict) (.labels | default dict) $labels (.root.Values.commonLabels | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Fails with the new names of values that were renamed. The schema allows the old ones, so that this message appears. Each
object asks for it, because Helm may render any template first. */}}
{{- define "rds-autopilot.renamed" -}}
{{- $values := .Values }}
{{- range $old, $new := dict
  "credentials.secret" "credentials.existingSecret"
  "monitoring.labels" "serviceMonitor.additionalLabels and prometheusRule.additionalLabels"
  "monitoring.serviceMonitor" "serviceMonitor"
  "monitoring.prometheusRule" "prometheusRule"
}}
{{- $path := splitList "." $old }}
{{- if hasKey (index $values (first $path)) (last $path) }}
{{- fail (printf "%s is now %s" $old $new) }}
{{- end }}
{{- end }}
{{- if kindIs "map" .Values.ingress.tls }}
{{- fail "ingress.tls.secretName is now ingress.tls[0].secretName" }}
{{- end }}
{{- if kindIs "string" .Values.test.image }}
{{- fail "test.image is now test.image.registry, test.image.repository, test.image.tag and test.image.digest" }}
{{- end }}
{{- end }}

{{- define "rds-autopilot.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "rds-autopilot.fullname" .) }}
{{- else }}
{{- required "serviceAccount.name is required with serviceAccount.create=false: the account default must not get the rights of this service" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* An image: root, image. A repository may begin with a registry: a name with a dot or a port, or localhost. */}}
{{- define "rds-autopilot.reference" -}}
{{- $registry := .image.registry }}
{{- $path := .image.repository }}
{{- $first := splitList "/" $path | first }}
{{- if and (contains "/" $path) (or (regexMatch "[.:]" $first) (eq $first "localhost")) }}
{{- $registry = $first }}
{{- $path = trimPrefix (printf "%s/" $first) $path }}
{{- end }}
{{- with .root.Values.global.imageRegistry | default $registry }}{{ . }}/{{ end }}{{ $path }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag }}{{ end }}
{{- end }}

{{- /* A digest or tag of the values, else the tag and digest of this chart's release. */}}
{{- define "rds-autopilot.image" -}}
{{- $released := index .Chart.Annotations "autopilot.otc.mcsps.de/image-digest" }}
{{- $tag := empty $released | ternary .Chart.AppVersion (printf "%s@%s" .Chart.AppVersion $released) }}
{{- include "rds-autopilot.reference" (dict "root" . "image" (merge (dict "tag" (.Values.image.tag | default $tag)) .Values.image)) }}
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
{{- $flags := dict }}
{{- range .Values.extraArgs }}
{{- $flag := regexFind "[a-z-]+" (trimPrefix "--" .) }}
{{- $value := contains "=" . | ternary (regexReplaceAll "^[^=]+=" . "") "true" }}
{{- /* A repeated flag is a list. */}}
{{- $_ := set $flags $flag (hasKey $flags $flag | ternary (printf "%s,%s" (get $flags $flag) $value) $value) }}
{{- end }}
{{- range $flag, $value := merge $flags .Values.flags }}
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

{{- /* The environment of a container that logs in to the cloud. */}}
{{- define "rds-autopilot.cloudEnv" -}}
{{- include "rds-autopilot.env" . }}
{{- if eq .Values.credentials.form "Environment" }}
{{- range $name, $key := .Values.credentials.keys }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $.Values.credentials.existingSecret }}
      key: {{ $key }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Its sources, if there are any. */}}
{{- define "rds-autopilot.cloudEnvFrom" -}}
{{- $sources := .Values.extraEnvFrom }}
{{- if and (eq .Values.credentials.form "Environment") (not .Values.credentials.keys) }}
{{- $sources = prepend $sources (dict "secretRef" (dict "name" .Values.credentials.existingSecret)) }}
{{- end }}
{{- with $sources -}}
envFrom:
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What all pods have. */}}
{{- define "rds-autopilot.pod" -}}
serviceAccountName: {{ include "rds-autopilot.serviceAccount" . }}
{{- $secrets := list }}
{{- range concat (.Values.global.imagePullSecrets | default list) (.Values.imagePullSecrets | default list) }}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) }}
{{- end }}
{{- with uniq $secrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- range $field := list "podSecurityContext" "nodeSelector" "tolerations" "dnsPolicy" "dnsConfig" "hostAliases" }}
{{- with index $.Values $field }}
{{ $field | replace "podSecurityContext" "securityContext" }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
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
    secretName: {{ .Values.credentials.existingSecret }}
    defaultMode: 0440
    {{- with index .Values.credentials.keys "clouds.yaml" }}
    items:
    - key: {{ . }}
      path: clouds.yaml
    {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}
