// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"crypto/rsa"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// localMailbox is the mailbox of a receiver in this process. It implements webhook.Store in memory. It also keeps the
// messages themselves, whether the receiver accepts them or not.
type localMailbox struct {
	receiver *webhook.Receiver
	server   *http.Server
	now      func() time.Time
	served   sync.WaitGroup

	mu       sync.Mutex
	version  int
	object   v1alpha1.RdsAutopilot
	messages []*message
}

const (
	// maxMalformed limits the malformed messages that are kept, because anyone can send them.
	maxMalformed = 4
	// examineLimit leaves the receiver some of the 5 seconds after which SMN gives up.
	examineLimit = 2 * time.Second
)

// listen starts a receiver on x.Listen.
func (x *examination) listen(name string) (mailbox, error) {
	m := &localMailbox{now: x.Now}
	m.object.Name, m.object.Namespace = mailboxPrefix+name, "doctor"
	ignore := func(*v1alpha1.RdsAutopilot, string, string) {}
	var err error
	m.receiver, err = app.NewReceiver(x.Options.Options, m, x.api, ignore, prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	m.server = m.receiver.Server()
	m.server.Handler = http.HandlerFunc(m.receive)
	m.served.Go(func() { _ = m.server.Serve(x.Listen) }) // ends with http.ErrServerClosed
	return m, nil
}

// receive passes a request to the receiver and keeps its message. It refuses the first alarm that the receiver would
// accept, because doctor checks whether SMN sends it again.
func (m *localMailbox) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, webhook.MaxBody))
	if err != nil {
		http.Error(w, "cut off", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
	var got *message
	if r.Method == http.MethodPost {
		got = m.examine(r.Context(), body, r.Header)
	}
	if got != nil && m.refuses(got) {
		http.Error(w, "refused on purpose, to see whether SMN repeats it", http.StatusServiceUnavailable)
	} else {
		m.receiver.ServeHTTP(w, r)
	}
	if got != nil {
		m.keep(got)
	}
}

// examine returns the message of a body with the reason why the receiver does not accept it. It returns nil for a
// message of another topic, so that strangers cannot make doctor fetch certificates.
func (m *localMailbox) examine(ctx context.Context, body []byte, headers http.Header) *message {
	got := newMessage(m.now(), smnHeaders(headers), smn.Redact(body))
	e, err := smn.ParseEnvelope(body)
	if err != nil {
		got.malformed, got.problem = true, err.Error()
		return got
	}
	if m.ByTopic(e.TopicURN) == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, examineLimit)
	defer cancel()
	key, err := m.verify(ctx, e)
	got.authentic = err == nil
	link := got.link("subscribe_url")
	switch {
	case err != nil:
	case got.kind() == kindNotification:
		_, err = smn.ParseAlarm(e.Message)
	case got.kind() == kindConfirmation && link != nil && !slices.Contains(m.receiver.ConfirmHosts, link.Host):
		err = fmt.Errorf("the link's host %q is not in --smn-confirm-hosts", link.Host)
	}
	if err != nil {
		got.problem = err.Error()
	}
	if age := got.received.Sub(e.Time); got.authentic && (age > m.receiver.MaxMessageAge || age < -webhook.MaxAhead) {
		got.problem = "signed at " + e.Timestamp + ", which is too old or too far ahead"
	}
	if !got.authentic && key != nil {
		got.variant = e.DescribeSignature(key)
	}
	return got
}

// verify returns the signing key of a message. The key is nil if it cannot be fetched.
func (m *localMailbox) verify(ctx context.Context, e smn.Envelope) (*rsa.PublicKey, error) {
	if err := m.receiver.Keys.CheckURL(e.CertURL); err != nil {
		return nil, err
	}
	key, err := m.receiver.Keys.Key(ctx, e.CertURL, e.TopicURN, false)
	if err != nil {
		return nil, err
	}
	return key, e.Verify(key)
}

// refuses reports whether to refuse a message on purpose.
func (m *localMailbox) refuses(got *message) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	got.refused = got.problem == "" && got.kind() == kindNotification &&
		!slices.ContainsFunc(m.messages, func(earlier *message) bool { return earlier.refused })
	return got.refused
}

func (m *localMailbox) keep(got *message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	malformed := 0
	for _, earlier := range m.messages {
		if earlier.malformed {
			malformed++
		}
	}
	if !got.malformed || malformed < maxMalformed {
		m.messages = append(m.messages, got)
	}
}

func (m *localMailbox) expect(_ context.Context, alarms v1alpha1.Alarms, in *v1alpha1.Instance) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.object.Status.Alarms, m.object.Status.Instance = alarms, in
	m.stored()
	return nil
}

// stored sets the next resource version. The caller holds m.mu.
func (m *localMailbox) stored() {
	m.version++
	m.object.ResourceVersion = strconv.Itoa(m.version)
}

func (m *localMailbox) read(context.Context) (v1alpha1.Intake, []*message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.object.Status.Intake.DeepCopy(), slices.Clone(m.messages), nil
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

// Delivers implements webhook.Store.
func (m *localMailbox) Delivers(string) bool { return false }

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
