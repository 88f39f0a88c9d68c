// SPDX-License-Identifier: Apache-2.0

package smn

// quota divides a number of places among topics. A topic that holds as many places as are free gets no more. So a
// flooded topic takes half of the places at most, and every other topic still gets one.
type quota struct {
	most  int
	taken int
	by    map[string]int
}

func newQuota(most int) *quota { return &quota{most: most, by: make(map[string]int)} }

// acquire takes a place for the topic and reports whether it got one.
func (q *quota) acquire(topic string) bool {
	if q.by[topic] >= q.most-q.taken {
		return false
	}
	q.by[topic]++
	q.taken++
	return true
}

// release returns a place of the topic.
func (q *quota) release(topic string) {
	q.taken--
	if q.by[topic]--; q.by[topic] == 0 {
		delete(q.by, topic)
	}
}
