// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// replay is what the operator does again to an Rds whose flavor it has just applied.
type replay struct {
	turns []*Rds // to be applied one after the other; none: it is over
	every time.Duration
	spent []*Rds // the snapshots that were postponed before it: theirs is done by it
}

// Replay makes sure of what otherwise takes bad luck, from now on and once for each Rds: snapshots that were postponed
// because the instance was not ACTIVE are applied again after a newer flavor was. The first flavor that is applied after
// such a postponement, however long after, is followed by that many more resizes: back to the flavor of the snapshot, and
// forth to the one that the Rds has, by turns; an even number ends with that. Each comes that long after the one before, or
// as soon after it as the instance is ACTIVE and a retry is due. Meanwhile nothing else is applied to the instance; the
// Rds stays as it is. Zero resizes end the fault.
func (o *Operator) Replay(resizes int, every time.Duration) {
	o.replaying.Lock()
	defer o.replaying.Unlock()
	o.resizes, o.every = resizes, every
	o.postponed = map[types.NamespacedName][]*Rds{}
	o.replays = map[types.NamespacedName]*replay{}
}

func key(snap *Rds) types.NamespacedName {
	return types.NamespacedName{Namespace: snap.Namespace, Name: snap.Name}
}

// keep remembers a snapshot that was postponed because its instance is not ACTIVE.
func (o *Operator) keep(snap *Rds) {
	o.replaying.Lock()
	defer o.replaying.Unlock()
	if o.resizes == 0 || o.replays[key(snap)] != nil {
		return
	}
	if !slices.Contains(o.postponed[key(snap)], snap) {
		o.postponed[key(snap)] = append(o.postponed[key(snap)], snap)
	}
}

// resized begins a replay if the flavor that the instance had is that of a snapshot that was kept.
func (o *Operator) resized(snap *Rds, from string) {
	o.replaying.Lock()
	defer o.replaying.Unlock()
	kept := o.postponed[key(snap)]
	i := slices.IndexFunc(kept, func(k *Rds) bool { return k.Spec.FlavorRef == from })
	if o.resizes == 0 || o.replays[key(snap)] != nil || i < 0 {
		return
	}
	r, old := &replay{every: o.every, spent: kept}, kept[i]
	for i := range o.resizes {
		turn := *[]*Rds{old, snap}[i%2]
		r.turns = append(r.turns, &turn)
	}
	o.replays[key(snap)] = r
	o.queue.AddAfter(r.turns[0], r.every)
}

// waits reports whether a snapshot is not to be applied because others are being replayed.
func (o *Operator) waits(snap *Rds) bool {
	o.replaying.Lock()
	defer o.replaying.Unlock()
	r := o.replays[key(snap)]
	return r != nil && (slices.Contains(r.spent, snap) || len(r.turns) > 0 && r.turns[0] != snap)
}

// done takes a snapshot that was worked off; if it was the turn of a replay, the next one follows.
func (o *Operator) done(snap *Rds) {
	o.replaying.Lock()
	defer o.replaying.Unlock()
	r := o.replays[key(snap)]
	if r == nil || len(r.turns) == 0 || r.turns[0] != snap {
		return
	}
	if r.turns = r.turns[1:]; len(r.turns) > 0 {
		o.queue.AddAfter(r.turns[0], r.every)
	}
}
