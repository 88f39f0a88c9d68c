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

// keep remembers the answer to a write. It is not altered from then on.
func (w *ownWrites[T]) keep(k Key, stored T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = make(map[Key]T)
	}
	w.last[k] = stored
}

// newest returns the cached object or, where that is older, our own write, which the caller must not alter. Once the cache has
// caught up, the write is forgotten.
func (w *ownWrites[T]) newest(k Key, cached T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	own, known := w.last[k]
	if !known {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), own.GetResourceVersion())
	if err == nil && order < 0 && cached.GetUID() == own.GetUID() {
		return own
	}
	delete(w.last, k)
	return cached
}

func (w *ownWrites[T]) forget(k Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, k)
}
