// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// answering is an API server with one answer.
type answering struct {
	status int
	body   string
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	r := httptest.NewRecorder()
	r.WriteHeader(a.status)
	_, _ = r.WriteString(a.body)
	return r.Result(), nil
}

func TestRefusalsAreShortenedWhereTheyEnter(t *testing.T) {
	long := strings.Repeat("not on Fridays\n", 5000)
	refusal, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status"}, Message: long, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec", Message: long}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		answer answering
		most   int // bytes of the body
	}{
		"refusal":       {answering{http.StatusUnprocessableEntity, string(refusal)}, 3 * shorten.Limit},
		"answer":        {answering{http.StatusOK, string(refusal)}, len(refusal)},
		"page of proxy": {answering{http.StatusBadGateway, "<html>bad gateway</html>"}, 24},
	} {
		resp, err := shortRefusals{tc.answer}.RoundTrip(httptest.NewRequest(http.MethodPatch, "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || len(body) > tc.most || len(body) < min(tc.most, 24) {
			t.Errorf("%s: %d bytes, %v", name, len(body), err)
		}
		if name != "refusal" {
			continue
		}
		var status metav1.Status
		if err := json.Unmarshal(body, &status); err != nil || status.Code != http.StatusUnprocessableEntity || status.Reason != metav1.StatusReasonInvalid ||
			len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != "spec" || !strings.HasPrefix(status.Message, "not on Fridays not on") {
			t.Errorf("%+v, %v", status, err)
		}
	}
}

func TestErrorsHaveTheDomainsMeaning(t *testing.T) {
	kind := schema.GroupResource{Resource: "rdss"}
	for name, tc := range map[string]struct {
		err     error
		gone    bool
		changed bool
		refused bool
	}{
		"gone":      {err: apierrors.NewNotFound(kind, "a"), gone: true},
		"conflict":  {err: apierrors.NewConflict(kind, "a", errors.New("changed")), changed: true},
		"forbidden": {err: apierrors.NewForbidden(kind, "a", errors.New("a policy")), refused: true},
		"webhook":   {err: apierrors.NewInternalError(errors.New("failed calling webhook")), refused: true},
		"overload":  {err: apierrors.NewTooManyRequests("busy", 1)},
		"network":   {err: io.ErrUnexpectedEOF},
	} {
		err := wrapError(tc.err, "patch %s", "a")
		refusal, refused := errors.AsType[*autopilot.RefusedError](err)
		if errors.Is(err, autopilot.ErrGone) != tc.gone || errors.Is(err, autopilot.ErrConflict) != tc.changed || refused != tc.refused {
			t.Errorf("%s: %v, refusal %v", name, err, refusal)
		}
		if !errors.Is(err, autopilot.ErrKubernetes) || !errors.Is(err, tc.err) || strings.Count(err.Error(), tc.err.Error()) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTargetHasNoEndlessInstanceID(t *testing.T) {
	rds := &otcv1.Rds{}
	rds.Status.ID = strings.Repeat("x", 40_000)
	if got := TargetOf(rds).InstanceID; len(got) > maxID {
		t.Errorf("%d bytes", len(got))
	}
	rds.Status.ID = "0123456789abcdef0123456789abcdefin01"
	if got := TargetOf(rds).InstanceID; got != rds.Status.ID {
		t.Errorf("%q", got)
	}
}
