// SPDX-License-Identifier: Apache-2.0

package ownwrites

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Versioned is what shows which of two versions is newer.
type Versioned interface {
	GetUID() types.UID
	GetResourceVersion() string
}

// Map holds objects as the API server answered our last write to them, for as long as the cache is behind: what begins before the
// watch event of the last write must not decide by what was before. The zero value is empty.
type Map[K comparable, T Versioned] struct {
	mu   sync.Mutex
	last map[K]T
}

// Keep remembers the answer to a write, unless that of a later one has come before. It is not altered from then on.
func (m *Map[K, T]) Keep(k K, stored T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = make(map[K]T)
	}
	if is, known := m.last[k]; !known || !IsBefore(stored, is) {
		m.last[k] = stored
	}
}

// Arrived reports whether what the cache has by now is our own last write, and forgets that unless the cache is older.
func (m *Map[K, T]) Arrived(k K, cached T) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, known := m.last[k]
	if !known || IsBefore(cached, own) {
		return false
	}
	delete(m.last, k)
	return own.GetUID() == cached.GetUID() && own.GetResourceVersion() == cached.GetResourceVersion()
}

// Newest returns the cached object or, where that is older, our own write, which the caller must not alter. It forgets nothing: the
// cache has an object before its handlers are called.
func (m *Map[K, T]) Newest(k K, cached T) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if own, known := m.last[k]; known && IsBefore(cached, own) {
		return own
	}
	return cached
}

// Forget drops what is gone.
func (m *Map[K, T]) Forget(k K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, k)
}

// IsBefore reports whether a is an earlier version of the object b.
func IsBefore[T Versioned](a, b T) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0 && a.GetUID() == b.GetUID()
}
