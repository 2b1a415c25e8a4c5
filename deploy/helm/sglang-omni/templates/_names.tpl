{{- define "omni.name" -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}
{{- define "omni.selector" -}}
app.kubernetes.io/name: sglang-omni
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "omni.labels" -}}
{{ include "omni.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
