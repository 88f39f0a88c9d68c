// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// versioned is what shows which of two versions is newer.
type versioned interface {
	GetUID() types.UID
	GetResourceVersion() string
}

// ownWrites are objects as the API server answered our last write to them, for as long as the cache is behind: a round that
// begins before the watch event of the last one must not decide by what was before.
type ownWrites[T versioned] struct {
	mu   sync.Mutex
	last map[Key]T
}

// keep remembers the answer to a write, unless that of a later one has come before. It is not altered from then on.
func (w *ownWrites[T]) keep(k Key, stored T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = make(map[Key]T)
	}
	if is, known := w.last[k]; !known || !isBefore(stored, is) {
		w.last[k] = stored
	}
}

// arrived reports whether what the cache has by now is our own last write, and forgets that unless the cache is older.
func (w *ownWrites[T]) arrived(k Key, cached T) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	own, known := w.last[k]
	if !known || isBefore(cached, own) {
		return false
	}
	delete(w.last, k)
	return own.GetUID() == cached.GetUID() && own.GetResourceVersion() == cached.GetResourceVersion()
}

// newest returns the cached object or, where that is older, our own write, which the caller must not alter. Once the cache has
// caught up, the write is forgotten.
func (w *ownWrites[T]) newest(k Key, cached T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	own, known := w.last[k]
	if known && isBefore(cached, own) {
		return own
	}
	delete(w.last, k)
	return cached
}

// isBefore reports whether a is an earlier version of the object b.
func isBefore[T versioned](a, b T) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0 && a.GetUID() == b.GetUID()
}

func (w *ownWrites[T]) forget(k Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, k)
}
