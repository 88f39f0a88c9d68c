package smn

// share divides a number of places among topics: none gets more than what is left free. Whoever floods one topic takes
// half of them at most, and finds a place in every other still free.
type share struct {
	most  int
	taken int
	by    map[string]int
}

func newShare(most int) *share { return &share{most: most, by: make(map[string]int)} }

func (s *share) take(topic string) bool {
	if s.by[topic] >= s.most-s.taken {
		return false
	}
	s.by[topic]++
	s.taken++
	return true
}

func (s *share) give(topic string) {
	s.taken--
	if s.by[topic]--; s.by[topic] == 0 {
		delete(s.by, topic)
	}
}
