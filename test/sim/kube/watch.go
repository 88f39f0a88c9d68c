// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	logLength     = 4096 // changes; a watch can begin at any of them
	bookmarkEvery = time.Minute
)

// change is the event of a write.
type change struct {
	revision int64
	at       time.Time
	key      objectKey
	event    string // ADDED, MODIFIED, DELETED
	encoded  []byte
}

// record adds a change to the log and wakes the watchers. The caller holds s.mu.
func (s *Server) record(c change) {
	if len(s.log) == logLength {
		s.compacted = s.log[len(s.log)/2].revision
		s.log = append([]change(nil), s.log[len(s.log)/2+1:]...)
	}
	s.log = append(s.log, c)
	close(s.changed)
	s.changed = make(chan struct{})
}

// watcher is one watch request.
type watcher struct {
	request
	w     http.ResponseWriter
	since int64 // the last revision that was sent or skipped
}

func (s *Server) watch(w http.ResponseWriter, r request) {
	query := r.URL.Query()
	v := &watcher{request: r, w: w}
	version := query.Get("resourceVersion")
	initial := query.Get("sendInitialEvents") == "true" || version == "" || version == "0"
	if !initial {
		var err error
		if v.since, err = strconv.ParseInt(version, 10, 64); err != nil {
			reply(w, badRequest("invalid resource version %q", version))
			return
		}
	}
	var end <-chan time.Time
	if seconds, _ := strconv.Atoi(query.Get("timeoutSeconds")); seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		end = timer.C
	}
	var mark <-chan time.Time
	if query.Get("allowWatchBookmarks") == "true" {
		tick := time.NewTicker(bookmarkEvery)
		defer tick.Stop()
		mark = tick.C
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if initial && !s.sendInitial(v) {
		return
	}
	for {
		next, expired, news := s.after(v)
		var due <-chan time.Time
		switch {
		case expired:
			v.send("ERROR", fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: %d","reason":"Expired","code":410}`, v.since))
			return
		case next != nil:
			wait := time.Until(next.at.Add(s.options.WatchLag))
			if wait <= 0 {
				v.since = next.revision
				if !v.send(next.event, next.encoded) {
					return
				}
				continue
			}
			due = time.After(wait)
			news = nil
		}
		select {
		case <-news:
		case <-due:
		case <-mark:
			if !v.bookmark("") {
				return
			}
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// sendInitial sends the present objects, and the bookmark of their end if the client requested it.
func (s *Server) sendInitial(v *watcher) bool {
	s.mu.Lock()
	var all [][]byte
	for _, k := range s.of(v.request) {
		all = append(all, s.objects[k].encoded)
	}
	v.since = s.revision
	s.mu.Unlock()
	for _, encoded := range all {
		if !v.send("ADDED", encoded) {
			return false
		}
	}
	if v.URL.Query().Get("sendInitialEvents") != "true" {
		return true
	}
	return v.bookmark(fmt.Sprintf(`,"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey))
}

// after returns the next change for a watcher, and a channel that is closed at the next change of any object.
func (s *Server) after(v *watcher) (next *change, expired bool, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.since < s.compacted {
		return nil, true, nil
	}
	// The log is in order of revisions, without gaps.
	from := 0
	if len(s.log) > 0 {
		from = max(0, int(v.since-s.log[0].revision)+1)
	}
	for i := from; i < len(s.log); i++ {
		c := &s.log[i]
		if v.selects(c.key) {
			return c, false, s.changed
		}
		v.since = c.revision
	}
	return nil, false, s.changed
}

func (v *watcher) bookmark(more string) bool {
	return v.send("BOOKMARK", fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s}}`,
		v.kind.gvk.Kind, v.kind.gvk.GroupVersion().String(), v.since, more))
}

// send sends an event. It returns false if the client has left.
func (v *watcher) send(event string, object []byte) bool {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"type":%q,"object":%s}`+"\n", event, object)
	_, err := v.w.Write(out.Bytes())
	if f, ok := v.w.(http.Flusher); ok {
		f.Flush()
	}
	return err == nil
}
