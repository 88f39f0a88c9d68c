// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/rsa"
	"net/http"
	"testing"
	"time"
)

// askedKeys records the arguments signedBefore by URL.
type askedKeys struct {
	fakeKeys
	signedBefore map[string]bool
}

func (k *askedKeys) Key(ctx context.Context, url, topic string, signedBefore bool) (*rsa.PublicKey, error) {
	k.signedBefore[url] = signedBefore
	return k.fakeKeys.Key(ctx, url, topic, signedBefore)
}

// A replica with an empty cache knows from the stored objects which URLs have signed before. smn.Keys fetches these during
// any flood; see TestHonestMessagesAreVerifiedDuringAFloodOfInventedURLs.
func TestRestartedReplicaKnowsTheURLThatHasSignedAStoredMessage(t *testing.T) {
	first := newBench(t)
	if w := first.post(signedBody(nil)); w.Code != http.StatusOK {
		t.Fatalf("status %d", w.Code)
	}
	second, keys := newBench(t), &askedKeys{signedBefore: map[string]bool{}}
	second.Store, second.Keys = first.store, keys
	stored, invented := first.store.stored.Status.Intake.SigningCertURL, "https://smn.example/smn/y.pem"
	for _, url := range []string{stored, invented} {
		second.post(signedBody(map[string]string{"signing_cert_url": url, "message": alarm("ok", ruleID, "rds039_disk_util", instance, noon().Add(time.Minute))}))
	}
	if before, asked := keys.signedBefore[stored]; !asked || !before {
		t.Errorf("the stored URL %q: asked %t, signed before %t", stored, asked, before)
	}
	if before, asked := keys.signedBefore[invented]; !asked || before {
		t.Errorf("an invented URL: asked %t, signed before %t", asked, before)
	}
}
