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
		Error: strings.ToValidUTF8(text[:min(len(text), maxCapturedText)], ""), Headers: m.headers, Body: body,
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

// sentBefore reports whether this message was refused once already. A forged one with its id counts for nothing.
func sentBefore(target *v1alpha1.RdsAutopilot, id string) bool {
	return slices.ContainsFunc(target.Status.Intake.Captured, func(c v1alpha1.CapturedMessage) bool {
		e, err := smn.ParseEnvelope([]byte(c.Body))
		return err == nil && e.MessageID == id && c.Result == string(resultUnavailable)
	})
}

// askAgain reports whether a notification of doctor is to be refused once. What is stored is asked, because another replica may
// have had the first attempt.
func (r *Receiver) askAgain(ctx context.Context, m *message) bool {
	live, err := r.Store.LiveAutopilot(ctx, m.target.Namespace, m.target.Name)
	if err != nil {
		return !errors.Is(err, autopilot.ErrGone)
	}
	m.target = live
	return !sentBefore(live, m.envelope.MessageID)
}

// smnHeaders are the names of the headers that are SMN's own.
func smnHeaders(h http.Header) (names []string) {
	for name := range h {
		if len(names) < 16 && strings.HasPrefix(name, "X-Smn-") && len(name) < 64 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
