// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// Failure is the last failed request to a service.
type Failure struct {
	Service string // iam, smn, ces, rds
	Time    time.Time
	Text    string // one line, free of secrets
}

// failures holds the last failure of each service.
type failures struct {
	mu   sync.Mutex
	last map[service]Failure
}

// Failures returns the last failure of each service, sorted by service. ErrNotFound and a canceled context are no
// failures.
func (c *Cloud) Failures() []Failure {
	f := c.transport.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Failure
	for _, last := range f.last {
		all = append(all, last)
	}
	slices.SortFunc(all, func(a, b Failure) int { return strings.Compare(a.Service, b.Service) })
	return all
}

// failed stores a failed request.
func (c call) failed(err error) {
	if errors.Is(err, ErrNotFound) || errors.Is(err, context.Canceled) {
		return
	}
	s, f := c.t.ops[c.op].service, c.t.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[s] = Failure{Service: string(s), Time: c.t.now(), Text: err.Error()}
}
