// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A replica that has just started fetches the certificate by which our last message was signed, whatever strangers send:
// its URL is in the object.
func TestAReplicaWithoutMemoryIsHeldUpByNoInventedURL(t *testing.T) {
	s := newHarness(t)
	s.certHostDoes(only(certPath))
	s.post(event(s, 1, "alarm", noon()))
	if kept := s.store.stored.Status.Intake.SigningCertURL; kept != "https://"+s.certHost()+certPath {
		t.Fatalf("kept is %q", kept)
	}
	s.start()
	release := make(chan struct{})
	good := only(certPath)
	s.certHostDoes(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != certPath {
			<-release // the strangers' fetches hang
		}
		good(w, r)
	})
	var strangers sync.WaitGroup
	for i := range 300 {
		body := s.alarm(nil).with("signing_cert_url", s.invented(i)).json()
		strangers.Go(func() {
			w := httptest.NewRecorder()
			s.receiver.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/smn", strings.NewReader(body)))
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("a stranger was answered %d %s", w.Code, w.Body)
			}
		})
	}
	for deadline := time.Now().Add(testTimeout); s.gets[0].Load() < 20; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the strangers' URLs are not asked for")
		}
	}
	s.post(event(s, 2, "alarm", noon().Add(time.Minute)))
	if got := s.last(); got.text != string(resultStored) {
		t.Errorf("the honest message was answered %d %s", got.status, got.text)
	}
	close(release)
	strangers.Wait()
}
