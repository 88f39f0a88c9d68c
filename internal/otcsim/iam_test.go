// SPDX-License-Identifier: Apache-2.0

package otcsim

import (
	"net/http"
	"testing"
	"time"
)

func TestTokensExpire(t *testing.T) {
	for name, expire := range map[string]func(*world){
		"after 24 hours":           func(w *world) { w.clock.advance(24 * time.Hour) },
		"after 24 minutes, at 60x": func(w *world) { w.clock.advance(24 * time.Minute) },
		"at once":                  func(w *world) { w.ExpireTokens() },
	} {
		t.Run(name, func(t *testing.T) {
			speed := 1.0
			if name == "after 24 minutes, at 60x" {
				speed = 60
			}
			w := start(t, Options{Speed: speed})
			w.clock.advance(24*time.Minute - time.Second)
			w.call(200, "smn", "GET", "/topics", nil)
			w.login()
			expire(w)
			for service, path := range map[string]string{"smn": "/topics", "ces": "/alarms", "rds": "/instances"} {
				if out := w.call(401, service, "GET", path, nil); out["error_code"] != "APIGW.0301" {
					t.Error(out)
				}
			}
			w.login()
			w.call(200, "smn", "GET", "/topics", nil)
		})
	}
}

func TestWrongCredentialsAndProjects(t *testing.T) {
	w := start(t, Options{})
	if res, out := w.loginAs("wrong"); res.StatusCode != http.StatusUnauthorized || res.Header.Get("X-Subject-Token") != "" || out["error"] == nil {
		t.Error(res.StatusCode, out)
	}
	res, _ := w.request("GET", w.Endpoint("rds")+"/v3/"+hexID(32)+"/instances", nil)
	if res.StatusCode != http.StatusForbidden {
		t.Error("another project:", res.StatusCode)
	}
	w.token = "unknown"
	w.call(401, "rds", "GET", "/instances", nil)
	w.token = ""
	w.call(401, "rds", "GET", "/instances", nil)
}
