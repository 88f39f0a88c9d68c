// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
)

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
		"webhook":                  {err: apierrors.NewInternalError(errors.New("failed calling webhook")), refused: true},
		"overload":                 {err: apierrors.NewTooManyRequests("busy", 1)},
		"network":                  {err: io.ErrUnexpectedEOF},
	} {
		err := wrapError(tc.err, "patch %s", "a")
		refusal, refused := errors.AsType[*autopilot.RefusedError](err)
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
