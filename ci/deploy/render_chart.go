// Render a Helm chart with the functions that its templates use, where there is no helm:
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go run ci/deploy/render_chart.go CHART [VALUES.yaml...]
//
// Needs Debian's golang-github-masterminds-sprig-dev and golang-gopkg-yaml.v3-dev. It is no replacement
// for `helm lint`: it knows neither dependencies nor schemas of values.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: render_chart CHART [VALUES.yaml...]"))
	}
	chart := os.Args[1]
	values := read(filepath.Join(chart, "values.yaml"))
	for _, file := range os.Args[2:] {
		merge(values, read(file))
	}
	about := read(filepath.Join(chart, "Chart.yaml"))
	data := map[string]any{
		"Values":  values,
		"Chart":   map[string]any{"Name": about["name"], "AppVersion": about["appVersion"]},
		"Release": map[string]any{"Name": "omni", "Namespace": "default", "Service": "Helm"},
	}
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	// A value that does not exist is a mistake of the template.
	templates := template.New("").Option("missingkey=error").Funcs(sprig.TxtFuncMap())
	templates.Funcs(template.FuncMap{
		"toYaml": func(value any) string {
			out, err := yaml.Marshal(value)
			check(err)
			return strings.TrimSuffix(string(out), "\n")
		},
		"include": func(name string, data any) (string, error) {
			var out bytes.Buffer
			err := templates.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
	})
	_, err = templates.ParseFiles(files...)
	check(err)
	for _, file := range files {
		if filepath.Ext(file) != ".yaml" {
			continue
		}
		var out bytes.Buffer
		check(templates.ExecuteTemplate(&out, filepath.Base(file), data))
		if text := strings.TrimSpace(out.String()); text != "" {
			fmt.Printf("---\n# %s\n%s\n", filepath.Base(file), text)
		}
	}
}

func read(path string) map[string]any {
	content, err := os.ReadFile(path)
	check(err)
	found := map[string]any{}
	check(yaml.Unmarshal(content, &found))
	return found
}

func merge(into, from map[string]any) {
	for name, value := range from {
		inner, isMap := value.(map[string]any)
		if old, wasMap := into[name].(map[string]any); isMap && wasMap {
			merge(old, inner)
		} else {
			into[name] = value
		}
	}
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
