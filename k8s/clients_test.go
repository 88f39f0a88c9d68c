// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// answers is an API server of one function. It gives answers that Kubernetes in memory does not give: none, or a page of a proxy.
type answers func(*http.Request) (int, string)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := f(r)
	if code == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: code, Request: r, Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

const (
	noSuchPath = "404 page not found\n"
	forbidden  = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"rdss is forbidden","code":403}`
	denied     = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","message":"Unauthorized","code":401}`
)

// empty is an API server that serves both kinds and has no objects.
func empty(r *http.Request) (int, string) {
	switch r.URL.Path {
	case "/apis/otc.mcsps.de/v1alpha1/rdss", "/apis/autopilot.otc.mcsps.de/v1alpha1/rdsautopilots":
		return 200, `{"metadata":{},"items":[]}`
	}
	return 404, noSuchPath
}

// without is empty without one group.
func without(group string) answers {
	return func(r *http.Request) (int, string) {
		if strings.HasPrefix(r.URL.Path, "/apis/"+group+"/") {
			return 404, noSuchPath
		}
		return empty(r)
	}
}

func connect(t *testing.T, f answers) (*Cluster, error) {
	t.Helper()
	return Connect(t.Context(), &rest.Config{Host: "https://api.example", Transport: f},
		Options{Version: "1.2.3", Log: zaptest.NewLogger(t, zaptest.Level(zap.InfoLevel))})
}

func TestConnectReturnsOneLineThatNamesWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer answers
		want   string // empty: connects
	}{
		{"all is there", empty, ""},
		{"no Rds", without("otc.mcsps.de"), ""},
		{"no RdsAutopilot", without("autopilot.otc.mcsps.de"),
			"CRD rdsautopilots.autopilot.otc.mcsps.de is not installed: kubectl apply -f deploy/crds"},
		{"no rights", func(*http.Request) (int, string) { return 403, forbidden }, "refuses what deploy/rbac.yaml allows: rdss is forbidden"},
		{"credentials refused", func(*http.Request) (int, string) { return 401, denied },
			"reach the Kubernetes API at https://api.example: Unauthorized"},
		{"not an API server", func(*http.Request) (int, string) { return 200, "<html>" }, "reach the Kubernetes API at https://api.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			agent := ""
			_, err := connect(t, func(r *http.Request) (int, string) {
				agent = r.UserAgent()
				return c.answer(r)
			})
			if agent != "rds-autopilot/1.2.3" {
				t.Errorf("user agent is %q", agent)
			}
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("error is %q, not one line with %q", err, c.want)
			}
		})
	}
}

func TestRequestsEndAfterTenOrFifteenSecondsWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err := connect(t, func(*http.Request) (int, string) { return 0, "" })
		if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took != connectTimeout {
			t.Errorf("Connect took %s: %v", took, err)
		}
		connected := false
		c, err := connect(t, func(r *http.Request) (int, string) {
			if connected {
				return 0, ""
			}
			return empty(r)
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		connected = true
		ctx := context.Background()
		for name, call := range map[string]func() error{
			"get Rds":       func() error { _, err := c.LiveTarget(ctx, "db", "one"); return err },
			"get autopilot": func() error { _, err := c.LiveAutopilot(ctx, "db", "one"); return err },
			"write topic":   func() error { return c.WriteTopic(ctx, autopilotv1.Topic{}) },
			"patch":         func() error { _, err := c.PatchRds(ctx, targetOf40GB(), toSize("50")); return err },
		} {
			start := time.Now()
			if err := call(); err == nil {
				t.Errorf("%s: no error", name)
			}
			if took := time.Since(start); took != requestTimeout {
				t.Errorf("%s took %v", name, took)
			}
		}
	})
}

// targetOf40GB is a target as it was read.
func targetOf40GB() *autopilot.Target {
	return &autopilot.Target{Namespace: "db", Name: "one", UID: "uid", Wanted: autopilot.Wanted{VolumeGB: 40}}
}

func toSize(gb string) autopilotv1.Change {
	return autopilotv1.Change{Kind: autopilotv1.KindVolume, To: gb}
}

func TestPatchRdsReturnsAnErrorWhenTheSizeIsNotLarger(t *testing.T) {
	c, err := connect(t, empty)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"30", "40"} {
		if _, err := c.PatchRds(t.Context(), targetOf40GB(), toSize(to)); err == nil ||
			!strings.Contains(err.Error(), "not more than") {
			t.Errorf("from 40 to %s GB: %v", to, err)
		}
	}
}

func TestWriterReturnsTheFieldManagerThatWroteTheFieldLast(t *testing.T) {
	const rds = `{"metadata":{"managedFields":[
		{"manager":"operator","time":"2026-11-20T10:00:00Z","fieldsV1":{"f:spec":{"f:volumesize":{},"f:flavorref":{}}}},
		{"manager":"rds-autopilot","time":"2026-11-20T11:00:00Z","fieldsV1":{"f:spec":{"f:volumesize":{}}}},
		{"manager":"person","time":"2026-11-20T12:00:00Z","fieldsV1":{"f:spec":{"f:flavorref":{}}}},
		{"manager":"flux","time":"2026-11-20T13:00:00Z","fieldsV1":{"f:spec":{"f:vpc":{}}}}]}}`
	c, err := connect(t, func(r *http.Request) (int, string) {
		if strings.HasSuffix(r.URL.Path, "/one") {
			return 200, rds
		}
		return empty(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[autopilotv1.ChangeKind]string{autopilotv1.KindFlavor: "person", autopilotv1.KindVolume: ""} {
		if got, err := c.Writer(t.Context(), targetOf40GB(), kind); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", kind, got, err, want)
		}
	}
}
