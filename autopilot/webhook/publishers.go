// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
)

const (
	// publisherQuiet is the time between two reports about one publisher. People act on the first.
	publisherQuiet = time.Hour
	// maxPublishers limits the memory. Only those who may publish to our topics can reach it.
	maxPublishers = 1024
)

// publishers remembers who publishes authentic notifications to our topics that are not about our rules, such as
// another service or another alarm rule. Each event of theirs would otherwise be a warning.
type publishers struct {
	mu   sync.Mutex
	seen map[string]time.Time // when each was last reported
}

// isRepeat reports whether the publisher was reported within publisherQuiet before now.
func (p *publishers) isRepeat(publisher string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.seen[publisher]; ok && now.Sub(last) < publisherQuiet {
		return true
	}
	if p.seen == nil || len(p.seen) >= maxPublishers {
		p.seen = map[string]time.Time{}
	}
	p.seen[publisher] = now
	return false
}

// reportForeign reports whether the publisher of an authentic notification that is not ours was reported within the
// hour. If not, it emits a Warning event about an unreadable one. The alarm rule and the error stand for the publisher.
func (r *Receiver) reportForeign(m *message, res result, err error) (isRepeat bool) {
	if m.envelope.Type != smn.TypeNotification || m.target == nil || res != resultUnreadable && res != resultIgnored {
		return false
	}
	if r.publishers.isRepeat(fmt.Sprintf("%s %s %v", m.envelope.TopicURN, m.alarm.ID, err), r.Now()) {
		return true
	}
	if res == resultUnreadable {
		r.Warn(m.target, reasonUnreadable, fmt.Sprintf("Cannot read a message of the alarm topic: %v", err))
	}
	return false
}
