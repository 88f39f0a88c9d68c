// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// localMailbox is the mailbox of a receiver in this process. It implements webhook.Store in memory.
type localMailbox struct {
	server *http.Server
	now    func() time.Time
	served sync.WaitGroup

	mu      sync.Mutex
	version int
	object  v1alpha1.RdsAutopilot
}

// maxMalformed limits the malformed messages that are kept, because anyone can send them.
const maxMalformed = 4

// listen starts a receiver on x.Listen.
func (x *examination) listen(name string) (mailbox, error) {
	m := &localMailbox{now: x.Now}
	m.object.Name, m.object.Namespace = v1alpha1.DoctorName+name, "doctor"
	m.object.Annotations = map[string]string{v1alpha1.DoctorAnnotation: "true"}
	ignore := func(*v1alpha1.RdsAutopilot, string, string) {}
	receiver, err := app.NewReceiver(x.Options.Options, m, x.api, ignore, prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	m.server = receiver.Server()
	m.server.Handler = m.keepMalformed(m.server.Handler)
	m.served.Go(func() { _ = m.server.Serve(x.Listen) }) // ends with http.ErrServerClosed
	return m, nil
}

// keepMalformed keeps POST bodies that the receiver cannot parse. They name no topic, so the receiver itself drops
// them.
func (m *localMailbox) keepMalformed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, webhook.MaxBody))
		if err != nil {
			http.Error(w, "cut off", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
		next.ServeHTTP(w, r)
		_, err = smn.ParseEnvelope(body)
		m.mu.Lock()
		defer m.mu.Unlock()
		in := &m.object.Status.Intake
		malformed := 0
		for _, c := range in.Captured {
			if c.Result == malformedResult {
				malformed++
			}
		}
		if r.Method == http.MethodPost && err != nil && malformed < maxMalformed {
			in.Captured = append(in.Captured, v1alpha1.CapturedMessage{ReceivedTime: metav1.NewMicroTime(m.now()),
				Result: malformedResult, Error: err.Error(), Body: smn.Redact(body)})
			m.stored()
		}
	})
}

func (m *localMailbox) expect(_ context.Context, s v1alpha1.Status) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.object.Status.Alarms, m.object.Status.Instance = s.Alarms, s.Instance
	m.stored()
	return nil
}

// stored sets the next resource version. The caller holds m.mu.
func (m *localMailbox) stored() {
	m.version++
	m.object.ResourceVersion = strconv.Itoa(m.version)
}

func (m *localMailbox) captured(context.Context) ([]v1alpha1.CapturedMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.object.Status.Intake.Captured), nil
}

func (m *localMailbox) close() {
	_ = m.server.Close() // no sender needs an answer any more
	m.served.Wait()
}

// ByTopic implements webhook.Store.
func (m *localMailbox) ByTopic(urn string) []*v1alpha1.RdsAutopilot {
	m.mu.Lock()
	defer m.mu.Unlock()
	if urn == "" || m.object.Status.Alarms.TopicURN != urn {
		return nil
	}
	return []*v1alpha1.RdsAutopilot{m.object.DeepCopy()}
}

// ByTopicLive implements webhook.Store.
func (m *localMailbox) ByTopicLive(_ context.Context, urn string) ([]*v1alpha1.RdsAutopilot, error) {
	return m.ByTopic(urn), nil
}

// Expects implements webhook.Store.
func (m *localMailbox) Expects(string) bool { return false }

// SignedBefore implements webhook.Store.
func (m *localMailbox) SignedBefore(string) bool { return false }

// LiveAutopilot implements webhook.Store.
func (m *localMailbox) LiveAutopilot(context.Context, string, string) (*v1alpha1.RdsAutopilot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.object.DeepCopy(), nil
}

// WriteIntake implements webhook.Store.
func (m *localMailbox) WriteIntake(_ context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if read.ResourceVersion != m.object.ResourceVersion {
		return autopilot.ErrConflict
	}
	m.object.Status.Intake = in
	m.stored()
	return nil
}
