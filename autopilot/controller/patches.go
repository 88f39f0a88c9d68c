// SPDX-License-Identifier: Apache-2.0

package controller

import "sync"

// patchesUnderWay hold back what the watch tells of an Rds while a patch of it is under way. The watch may tell of the patch before
// the API server's answer is read, and until then nobody knows that it is our own. The zero value is ready.
type patchesUnderWay struct {
	mu   sync.Mutex
	held map[Key][]func() // a key is there as long as the patch is under way
}

func (p *patchesUnderWay) begin(k Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = make(map[Key][]func())
	}
	p.held[k] = nil
}

// end takes in what was held back.
func (p *patchesUnderWay) end(k Key) {
	p.mu.Lock()
	held := p.held[k]
	delete(p.held, k)
	p.mu.Unlock()
	for _, take := range held {
		take()
	}
}

// takeIn calls take, now or when the patch has ended.
func (p *patchesUnderWay) takeIn(k Key, take func()) {
	p.mu.Lock()
	held, underWay := p.held[k]
	if underWay {
		p.held[k] = append(held, take)
	}
	p.mu.Unlock()
	if !underWay {
		take()
	}
}
