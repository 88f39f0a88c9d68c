// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

//go:embed controls.html controls.css controls.js
var controlsFiles embed.FS

// controlsPolicy is the Content-Security-Policy of the page: only its own files.
const controlsPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// shownDatabase is a database with the values of its controls.
type shownDatabase struct {
	Name, Title, Status       string
	Size                      string
	UsedGB, UsedPercent, Grow float64
	VolumeGB                  int
	CPU, Memory               float64 // percent
}

// shownControls is the page.
type shownControls struct {
	Databases                 []shownDatabase
	Flavors, Zones            []string
	SoldOut                   []offer
	Dropping, Paused, Away    bool
	Replicas                  int
	Leader                    bool
	Events                    []event
	Minute, Speed, Kubeconfig string
	StatusPage                bool
}

// handler serves the page of the simulated cloud.
func (c *controls) handler() (http.Handler, error) {
	page, err := template.ParseFS(controlsFiles, "controls.html")
	if err != nil {
		return nil, fmt.Errorf("read the template of the simulated cloud's page: %w", err)
	}
	show := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			var out bytes.Buffer
			if err := page.ExecuteTemplate(&out, name, c.shown()); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(out.Bytes()) // the client is gone where this fails
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", show("controls.html"))
	mux.HandleFunc("GET /now", show("now"))
	for _, file := range []string{"controls.css", "controls.js"} {
		mux.HandleFunc("GET /"+file, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, controlsFiles, file) })
	}
	for path, submit := range c.forms() {
		mux.HandleFunc("POST /"+path, func(w http.ResponseWriter, r *http.Request) {
			c.do(func() (string, error) { return submit(r) })
			http.Redirect(w, r, "/cloud/", http.StatusSeeOther)
		})
	}
	headers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", controlsPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
	return http.NewCrossOriginProtection().Handler(headers), nil // another page in the same browser cannot submit a form
}

// forms returns what each form of the page does, by its path.
func (c *controls) forms() map[string]func(*http.Request) (string, error) {
	return map[string]func(*http.Request) (string, error){
		"load": func(r *http.Request) (string, error) {
			numbers := map[string]float64{}
			for _, field := range []string{"used", "grow", "cpu", "memory"} {
				v, err := strconv.ParseFloat(r.FormValue(field), 64)
				if err != nil || !(v >= 0 && v <= 4000) {
					return "", fmt.Errorf("%s is no number that makes sense: %q", field, r.FormValue(field))
				}
				numbers[field] = v
			}
			to := load{numbers["used"], numbers["grow"], numbers["cpu"], numbers["memory"]}
			name := r.FormValue("database")
			return fmt.Sprintf("%s: %.1f GB used, growing by %.1f GB per minute, CPU at %.0f %%, memory at %.0f %%", name, to.usedGB, to.growPerMinute, to.cpu, to.memory), c.setLoad(name, to)
		},
		"sell": func(r *http.Request) (string, error) {
			return c.sell(offer{r.FormValue("flavor"), r.FormValue("zone")}, r.FormValue("out") == "true")
		},
		"drop":     func(r *http.Request) (string, error) { return c.dropMessages(r.FormValue("on") == "true") },
		"operator": func(r *http.Request) (string, error) { return c.stopOperator(r.FormValue("stop") == "true") },
		"forge":    func(r *http.Request) (string, error) { return c.forge(r.Context(), r.FormValue("database")) },
		"api":      func(*http.Request) (string, error) { return c.stopAPIServer() },
		"leader":   func(*http.Request) (string, error) { return c.killLeader() },
	}
}

func (c *controls) shown() shownControls {
	c.replicas.mu.Lock()
	s := shownControls{Replicas: len(c.replicas.running), Leader: c.replicas.leader != nil, StatusPage: c.replicas.wanted > 0}
	c.replicas.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Dropping, s.Paused, s.Away = c.dropping, c.paused, c.away != nil
	s.Events = slices.Clone(c.events)
	s.Minute, s.Speed, s.Kubeconfig = minuteTakes(c.speed), strconv.FormatFloat(c.speed, 'f', -1, 64), c.world.AdminKubeconfig()
	s.Zones = c.world.Cloud.Zones()
	for o := range c.soldOut {
		s.SoldOut = append(s.SoldOut, o)
	}
	slices.SortFunc(s.SoldOut, func(a, b offer) int { return strings.Compare(a.Flavor+a.Zone, b.Flavor+b.Zone) })
	codes := c.world.Cloud.FlavorCodes()
	for _, d := range c.dbs {
		in := d.Instance()
		used := min(in.Workload.UsedGB, float64(in.VolumeGB))
		s.Databases = append(s.Databases, shownDatabase{
			Name: d.Name, Title: d.title, Status: in.Status, Size: size(in), UsedGB: used, VolumeGB: in.VolumeGB, Grow: d.growPerTick,
			UsedPercent: percent(used, in.VolumeGB), CPU: percent(in.Workload.CPUDemand, in.VCPUs), Memory: percent(in.Workload.MemoryDemandGB, in.MemoryGB),
		})
		for _, code := range flavorsFor(codes, in.Flavor) {
			if !slices.Contains(s.Flavors, code) {
				s.Flavors = append(s.Flavors, code)
			}
		}
	}
	return s
}

// percent of what there is; an instance that is gone has nothing.
func percent(used float64, of int) float64 {
	if of == 0 {
		return 0
	}
	return min(100, 100*used/float64(of))
}

// Full reports whether the database is read-only.
func (d shownDatabase) Full() bool { return d.Status == simcloud.StatusStorageFull }
