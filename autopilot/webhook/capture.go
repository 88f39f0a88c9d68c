// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Limits of the messages that are kept for doctor. The name of its topic cannot be guessed and exists for some minutes.
const (
	maxCaptured     = 12
	maxCapturedBody = 32 << 10
	maxCapturedText = 1 << 10
)

// errFirstAttempt is the error of doctor's first notification.
var errFirstAttempt = errors.New("refused on purpose, to see whether SMN repeats it")

// capture stores a message of doctor's own topic with its result, even if it is not authentic: doctor explains why a
// message is refused. Messages of other topics are not stored.
func (r *Receiver) capture(ctx context.Context, m *message, o outcome) {
	text := ""
	if o.err != nil {
		text = o.err.Error()
	}
	if errors.Is(o.err, smn.ErrForged) {
		if found := m.envelope.DescribeSignature(m.key); found != "" {
			text += ": " + found
		}
	}
	body := smn.Redact(m.body)
	if len(body) > maxCapturedBody {
		body = ""
	}
	c := v1alpha1.CapturedMessage{
		ReceivedTime: metav1.NewMicroTime(r.Now().Truncate(time.Microsecond)), Result: string(o.result),
		Error: strings.ToValidUTF8(text[:min(len(text), maxCapturedText)], ""), Headers: smnHeaders(m.headers), Body: body,
	}
	// If this fails, doctor reports that no message arrived.
	_, _ = r.writeIntake(ctx, m, func(in v1alpha1.Intake) (v1alpha1.Intake, result) {
		if len(in.Captured) >= maxCaptured {
			return in, resultDuplicate
		}
		next := *in.DeepCopy()
		next.Captured = append(next.Captured, c)
		return next, resultStored
	})
}

// isFirstAttempt reports whether no notification of doctor was refused yet. It reads the stored object, because another
// replica may have received the first one. Doctor checks whether the message is repeated under the same id.
func (r *Receiver) isFirstAttempt(ctx context.Context, m *message) bool {
	live, err := r.Store.LiveAutopilot(ctx, m.target.Namespace, m.target.Name)
	if err != nil {
		return !errors.Is(err, autopilot.ErrGone)
	}
	m.target = live
	return !slices.ContainsFunc(live.Status.Intake.Captured, func(c v1alpha1.CapturedMessage) bool {
		return c.Error == errFirstAttempt.Error()
	})
}

// smnHeaders returns the names of SMN's own headers, and the content type.
func smnHeaders(h http.Header) (names []string) {
	for name := range h {
		if len(names) < 15 && strings.HasPrefix(name, "X-Smn-") && len(name) < 64 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if kind := h.Get(contentType); kind != "" && len(kind) < 64 {
		names = append(names, contentType+": "+strings.ToValidUTF8(kind, ""))
	}
	return names
}

const contentType = "Content-Type"
