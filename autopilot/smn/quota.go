// SPDX-License-Identifier: Apache-2.0

package smn

// quota divides a number of places among topics. A topic gets no more places than are left free, so a flooded topic takes
// half of them at most, and every other topic still finds a free one.
type quota struct {
	most  int
	taken int
	by    map[string]int
}

func newQuota(most int) *quota { return &quota{most: most, by: make(map[string]int)} }

// acquire takes one place for a topic. It reports whether there was one.
func (q *quota) acquire(topic string) bool {
	if q.by[topic] >= q.most-q.taken {
		return false
	}
	q.by[topic]++
	q.taken++
	return true
}

// release gives one place of a topic back.
func (q *quota) release(topic string) {
	q.taken--
	if q.by[topic]--; q.by[topic] == 0 {
		delete(q.by, topic)
	}
}
