// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// packed is an RdsAutopilot as it is held in memory: its history is most of it and seldom read, and takes a third as bytes.
type packed struct {
	autopilotv1.RdsAutopilot // without its history
	history                  packedHistory
}

// history is the part of a status that is a record of what was.
type history struct {
	Changes       []autopilotv1.Change
	FormerVolumes []autopilotv1.FormerVolume
	Decisions     []autopilotv1.DecisionRecord
}

// packedHistory has each text once, and no pointers.
type packedHistory struct {
	texts  string // one after the other
	values []byte // how many texts there are and how long they are, and the values of a history, field by field
}

// pack takes over what a points to.
func pack(a *autopilotv1.RdsAutopilot) (*packed, error) {
	s := &a.Status
	written, err := packHistory(history{s.Changes, s.FormerVolumes, s.Decisions})
	if err != nil {
		return nil, fmt.Errorf("pack RdsAutopilot %s/%s: %w", a.Namespace, a.Name, err)
	}
	p := &packed{*a, written}
	p.Status.Changes, p.Status.FormerVolumes, p.Status.Decisions = nil, nil, nil
	return p, nil
}

// DeepCopyObject implements runtime.Object: that of the RdsAutopilot in it would leave out the history. Nobody alters that.
func (p *packed) DeepCopyObject() runtime.Object {
	return &packed{*p.DeepCopy(), p.history}
}

// unpack returns the whole object. It shares with the packed one all but its history, and texts.
func (p *packed) unpack() *autopilotv1.RdsAutopilot {
	a, h := p.RdsAutopilot, p.history.unpack()
	a.Status.Changes, a.Status.FormerVolumes, a.Status.Decisions = h.Changes, h.FormerVolumes, h.Decisions
	return &a
}

func packHistory(h history) (packedHistory, error) {
	w := packer{known: make(map[string]uint64)}
	if err := w.add(reflect.ValueOf(h)); err != nil {
		return packedHistory{}, err
	}
	count := binary.AppendUvarint(nil, uint64(len(w.known)))
	return packedHistory{string(w.texts), slices.Concat(count, w.lengths, w.values)}, nil
}

type packer struct {
	known                  map[string]uint64 // texts, by their place
	texts, lengths, values []byte
}

// add knows the kinds of fields that there are. A test fails where another one is added to the API.
func (w *packer) add(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		w.values = binary.AppendUvarint(w.values, w.place(v.String()))
	case reflect.Int32, reflect.Int64:
		w.values = binary.AppendVarint(w.values, v.Int())
	case reflect.Pointer:
		if v.IsNil() {
			w.values = append(w.values, 0)
			return nil
		}
		w.values = append(w.values, 1)
		return w.add(v.Elem())
	case reflect.Slice:
		w.values = binary.AppendUvarint(w.values, uint64(v.Len())) //nolint:gosec // never less than 0
		for i := range v.Len() {
			if err := w.add(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		if isTime(v) {
			w.values = binary.AppendVarint(w.values, microseconds(v.Field(0).Interface().(time.Time)))
			return nil
		}
		for i := range v.NumField() { //nolint:modernize // Fields describes each field anew: three times as slow
			if err := w.add(v.Field(i)); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("a history has a field of %s", v.Type())
	}
	return nil
}

func (w *packer) place(text string) uint64 {
	place, known := w.known[text]
	if !known {
		place = uint64(len(w.known))
		w.known[text] = place
		w.texts = append(w.texts, text...)
		w.lengths = binary.AppendUvarint(w.lengths, uint64(len(text)))
	}
	return place
}

func (p packedHistory) unpack() (h history) {
	r := unpacker{left: p.values}
	r.texts = make([]string, r.count())
	from := 0
	for i := range r.texts {
		to := from + r.count()
		r.texts[i], from = p.texts[from:to], to
	}
	r.read(reflect.ValueOf(&h).Elem())
	return h
}

type unpacker struct {
	texts []string
	left  []byte
}

// read is add the other way round.
func (r *unpacker) read(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.texts[r.count()])
	case reflect.Int32, reflect.Int64:
		v.SetInt(r.int())
	case reflect.Pointer:
		if r.count() > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.read(v.Elem())
		}
	case reflect.Slice:
		if n := r.count(); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				r.read(v.Index(i))
			}
		}
	case reflect.Struct:
		if isTime(v) {
			*v.Field(0).Addr().Interface().(*time.Time) = fromMicroseconds(r.int())
			return
		}
		for i := range v.NumField() { //nolint:modernize // Fields describes each field anew: three times as slow
			r.read(v.Field(i))
		}
	}
}

func (r *unpacker) count() int {
	n, size := binary.Uvarint(r.left)
	r.left = r.left[size:]
	return int(n) //nolint:gosec // it was an int when it was packed
}

func (r *unpacker) int() int64 {
	n, size := binary.Varint(r.left)
	r.left = r.left[size:]
	return n
}

func isTime(v reflect.Value) bool {
	return v.Type() == reflect.TypeFor[metav1.Time]() || v.Type() == reflect.TypeFor[metav1.MicroTime]()
}

// microseconds is all that the API server keeps of a time. The zero time, which is left out, is 0.
func microseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicroseconds(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}
