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

{{- /* The name of an object that may be in the namespace of others: root, namespace. */}}
{{- define "rds-autopilot.nameIn" -}}
{{- include (has .namespace (list "" .root.Release.Namespace) | ternary "rds-autopilot.fullname" "rds-autopilot.sharedName") .root }}
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

{{- /* Each template begins with this, because Helm may render any of them first. Helm removes a value that is null, such as
"flags:" with only comments below it. Here, a section that is missing gets its defaults. Objects that Kubernetes defines stay
away: a null there means that the user does not want the default. */}}
{{- define "rds-autopilot.fill" -}}
{{- range $name, $default := .defaults }}
{{- if and (kindIs "map" $default) (not (or (hasSuffix "ecurityContext" $name) (has $name (list "resources" "labels")))) }}
{{- if not (index $.values $name) }}
{{- $_ := set $.values $name $default }}
{{- end }}
{{- if kindIs "map" (index $.values $name) }}
{{- include "rds-autopilot.fill" (dict "values" (index $.values $name) "defaults" $default) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Then it refuses values that do not fit together, and names that were renamed. The schema allows the old names, so that
this message appears. */}}
{{- define "rds-autopilot.prepare" -}}
{{- include "rds-autopilot.fill" (dict "values" .Values "defaults" (.Files.Get "files/defaults.yaml" | fromYaml)) }}
{{- $_ := set .Values "systemNamespace" (.Values.systemNamespace | default "kube-system") }}
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
{{- $flags := include "rds-autopilot.flags" . | fromYaml }}
{{- if and (eq (get $flags "leader-elect" | toString) "false") (gt (int .Values.replicaCount) 1) }}
{{- fail (printf "leader-elect=false needs replicaCount 1, and it is %d: every replica would decide and change the same databases" (int .Values.replicaCount)) }}
{{- end }}
{{- $drain := 0.0 }}
{{- range regexFindAll "[0-9.]+[a-z]+" (get $flags "drain-delay" | default "5s") -1 }}
{{- $seconds := get (dict "ms" 0.001 "s" 1 "m" 60 "h" 3600) (regexFind "[a-z]+" .) | float64 }}
{{- $drain = addf $drain (mulf $seconds (regexFind "[0-9.]+" . | float64)) }}
{{- end }}
{{- if lt (float64 .Values.terminationGracePeriodSeconds) (addf $drain 15) }}
{{- fail (printf "terminationGracePeriodSeconds is %v, and drain-delay needs %v: Kubernetes would end a replica before it has finished its work" .Values.terminationGracePeriodSeconds (addf $drain 15)) }}
{{- end }}
{{- end }}

{{- /* The flags of serve by name. extraArgs take precedence, and a repeated one is a list. */}}
{{- define "rds-autopilot.flags" -}}
{{- $flags := dict }}
{{- range .Values.extraArgs }}
{{- $flag := regexFind "[a-z-]+" (trimPrefix "--" .) }}
{{- $value := contains "=" . | ternary (regexReplaceAll "^[^=]+=" . "") "true" }}
{{- $_ := set $flags $flag (hasKey $flags $flag | ternary (printf "%s,%s" (get $flags $flag) $value) $value) }}
{{- end }}
{{- merge $flags .Values.flags | toYaml }}
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

{{- /* The environment of every container of this image. The flags of serve are variables and not arguments, so that helm test and "kubectl exec … -- rds-autopilot doctor" have them too. */}}
{{- define "rds-autopilot.env" -}}
- name: RDS_AUTOPILOT_PUBLIC_URL
  value: {{ required "publicURL is required: the URL that the cloud posts alarms to, for instance https://autopilot.example.com/smn" .Values.publicURL | quote }}
- name: RDS_AUTOPILOT_MODE
  value: {{ .Values.mode | quote }}
- name: RDS_AUTOPILOT_SYSTEM_NAMESPACE
  value: {{ .Values.systemNamespace | quote }}
{{- with .Values.watchNamespaces }}
- name: RDS_AUTOPILOT_WATCH_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- range $flag, $value := include "rds-autopilot.flags" . | fromYaml }}
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
{{- $sources = prepend ($sources | default list) (dict "secretRef" (dict "name" .Values.credentials.existingSecret)) }}
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
{{- with include "rds-autopilot.securityContext" (dict "root" . "context" .Values.podSecurityContext) }}
securityContext:
  {{- . | nindent 2 }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "dnsPolicy" "dnsConfig" "hostAliases" }}
{{- with index $.Values $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A security context without its empty fields. Helm drops null in the values of a parent chart, so "" means the same.
OpenShift gives each namespace its own ids and refuses pods with others, so the ids of the image are left out there. */}}
{{- define "rds-autopilot.securityContext" -}}
{{- $context := dict }}
{{- range $name, $value := .context }}
{{- $id := and (has $name (list "runAsUser" "runAsGroup" "fsGroup")) (eq (toString $value) "65532") }}
{{- if not (or (has (toString $value) (list "" "<nil>")) (and $id ($.root.Capabilities.APIVersions.Has "security.openshift.io/v1"))) }}
{{- $_ := set $context $name $value }}
{{- end }}
{{- end }}
{{- with $context }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* What the pods that Helm runs have. Helm waits five minutes by default, and the deadline ends a pod without an image before. */}}
{{- define "rds-autopilot.hookPod" -}}
restartPolicy: Never
activeDeadlineSeconds: 120
{{ include "rds-autopilot.pod" . }}
{{- end }}

{{- /* The metadata of a pod that Helm runs: root, suffix, annotations. Its name differs from that of the Deployment's pods, so
that no Service and no budget selects this pod. A pod's name is also a host name and a label, which have at most 63 bytes. */}}
{{- define "rds-autopilot.hookMetadata" -}}
{{- $longest := sub 62 (len .suffix) | int }}
{{- $name := printf "%s-%s" (include "rds-autopilot.fullname" .root | trunc $longest | trimSuffix "-") .suffix }}
{{- $own := dict "app.kubernetes.io/name" (printf "%s-%s" (include "rds-autopilot.name" .root | trunc $longest | trimSuffix "-") .suffix) }}
{{- $labels := merge $own (.root.Values.podLabels | default dict) }}
{{- $annotations := merge (dict "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded") .annotations (.root.Values.podAnnotations | default dict) }}
{{- include "rds-autopilot.metadata" (dict "root" .root "name" $name "namespace" .root.Release.Namespace "labels" $labels "annotations" $annotations) }}
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
