// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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
	case "/apis":
		return 200, `{"kind":"APIGroupList","groups":[]}`
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
		{"a proxy or another version of Rds", func(r *http.Request) (int, string) {
			if r.URL.Path == "/apis" {
				return 200, `{"kind":"APIGroupList","groups":[{"name":"otc.mcsps.de"}]}`
			}
			return without("otc.mcsps.de")(r)
		}, "the list of API groups does not show that rdss.otc.mcsps.de has no definition"},
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
		must(t, err)
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
	must(t, err)
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
	must(t, err)
	for kind, want := range map[autopilotv1.ChangeKind]string{autopilotv1.KindFlavor: "person", autopilotv1.KindVolume: ""} {
		if got, err := c.Writer(t.Context(), targetOf40GB(), kind); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", kind, got, err, want)
		}
	}
}

const twoContexts = `{"apiVersion":"v1","kind":"Config","current-context":"a",
"contexts":[{"name":"a","context":{"cluster":"c","user":"u"}},
{"name":"b","context":{"cluster":"d","user":"u","namespace":"shop"}}],
"clusters":[{"name":"c","cluster":{"server":"https://api.example"}},
{"name":"d","cluster":{"server":"https://other.example"}}],
"users":[{"name":"u","user":{"token":"t"}}]}`

func TestKubeconfigOfAContextIsUsedAndAnErrorNamesTheFiles(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "good"), []byte(twoContexts), 0o600))
	for _, tc := range []struct{ kubeconfig, env, context, want string }{
		{"DIR/good", "", "b", "https://other.example shop <nil>"},
		{"", "DIR/none:DIR/good", "", "https://api.example default <nil>"},
		{"DIR/none", "DIR/good", "", "kubeconfig DIR/none: "},
		{"", "DIR/a:DIR/b", "", "kubeconfig DIR/a or DIR/b: no API server is named there, and this is not a pod"},
	} {
		in := strings.NewReplacer("DIR", dir)
		t.Setenv("KUBECONFIG", in.Replace(tc.env))
		config, namespace, err := NewConfig(in.Replace(tc.kubeconfig), tc.context)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(config.Host, " ", namespace, " ", err)
		}
		if want := in.Replace(tc.want); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%+v: %s, want %s", tc, got, want)
		}
	}
}

// At a high verbosity client-go logs whole answers, and an Rds has passwords.
func TestLibraryLogHidesAnswers(t *testing.T) {
	for level, want := range map[zapcore.Level][]string{zap.DebugLevel: {"info"}, zapcore.Level(-10): {"info"}, zap.ErrorLevel: nil} {
		core, seen := observer.New(level)
		log := libraryLog(zap.New(core))
		log.Info("info")
		log.V(1).Info("detail")
		log.V(8).Info("body with a password")
		var got []string
		for _, e := range seen.All() {
			got = append(got, e.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("log at %s (-want +got):\n%s", level, diff)
		}
	}
}

// deniedWith returns the error of an admission webhook that has chosen the status code.
func deniedWith(code int32) error {
	reasons := map[int32]metav1.StatusReason{404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict, 422: metav1.StatusReasonInvalid}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reasons[code],
		Message: `admission webhook "budget.example.com" denied the request: the budget is spent`}}
}

func TestWrapErrorReturnsTheDomainsErrors(t *testing.T) {
	kind := schema.GroupResource{Resource: "rdss"}
	for name, tc := range map[string]struct {
		err     error
		gone    bool
		changed bool
		refused bool
	}{
		"gone":                     {err: apierrors.NewNotFound(kind, "a"), gone: true},
		"a proxy's page not found": {err: apierrors.NewGenericServerResponse(404, "get", kind, "a", "<html>", 0, true)},
		"conflict":                 {err: apierrors.NewConflict(kind, "a", errors.New("changed")), changed: true},
		"forbidden":                {err: apierrors.NewForbidden(kind, "a", errors.New("a policy")), refused: true},
		"etcd":                     {err: apierrors.NewInternalError(errors.New("etcdserver: request timed out"))},
		"denied with 404":          {err: deniedWith(404), refused: true},
		"denied with 409":          {err: deniedWith(409), refused: true},
		"denied with 422":          {err: deniedWith(422), refused: true},
		"webhook":                  {err: apierrors.NewInternalError(errors.New("failed calling webhook")), refused: true},
		"overload":                 {err: apierrors.NewTooManyRequests("busy", 1)},
		"network":                  {err: io.ErrUnexpectedEOF},
	} {
		err := wrapError(tc.err, "patch %s", "a")
		refusal, refused := errors.AsType[*autopilot.RefusedError](err)
		if isTestFailed(tc.err) {
			t.Errorf("%s: it is taken for a test of the patch", name)
		}
		if errors.Is(err, autopilot.ErrGone) != tc.gone || errors.Is(err, autopilot.ErrConflict) != tc.changed || refused != tc.refused {
			t.Errorf("%s: %v, refusal %v", name, err, refusal)
		}
		long := wrapError(fmt.Errorf("%w: %s", tc.err, strings.Repeat("not on Fridays\n", 5000)), "patch %s", "a")
		text := long.Error()
		if refusal, ok := errors.AsType[*autopilot.RefusedError](long); ok {
			text += refusal.Message
		}
		if len(text) > 3*shorten.Limit || strings.Contains(text, "\n") {
			t.Errorf("%s: %d bytes: %.200s", name, len(text), text)
		}
		if !errors.Is(err, autopilot.ErrKubernetes) || !errors.Is(err, tc.err) || strings.Count(err.Error(), tc.err.Error()) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
