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

// Limits of what is kept of messages to doctor. Its topic's name cannot be guessed, and lives for some minutes.
const (
	maxCaptured     = 12
	maxCapturedBody = 32 << 10
	maxCapturedText = 1 << 10
)

// errAskedAgain is the answer to the first attempt of a notification of doctor.
var errAskedAgain = errors.New("refused once, to see whether SMN sends it again")

// capture keeps a message of doctor's own topic with what became of it, authentic or not: doctor is there to see why a message
// would be refused. Of all other topics nothing is kept.
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
	_, _ = r.writeIntake(ctx, m, func(in v1alpha1.Intake) (v1alpha1.Intake, result) { // if it fails, doctor sees nothing, and says so
		if len(in.Captured) >= maxCaptured {
			return in, resultDuplicate
		}
		next := *in.DeepCopy()
		next.Captured = append(next.Captured, c)
		return next, resultStored
	})
}

// askAgain reports whether a notification of doctor is to be refused: the first one is. What is stored is asked, because another
// replica may have had it. Whether it comes again under the same id is for doctor to see.
func (r *Receiver) askAgain(ctx context.Context, m *message) bool {
	live, err := r.Store.LiveAutopilot(ctx, m.target.Namespace, m.target.Name)
	if err != nil {
		return !errors.Is(err, autopilot.ErrGone)
	}
	m.target = live
	return !slices.ContainsFunc(live.Status.Intake.Captured, func(c v1alpha1.CapturedMessage) bool { return c.Error == errAskedAgain.Error() })
}

// smnHeaders are the names of the headers that are SMN's own, and the type of the content.
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
