// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"testing"
)

// TestInspectRunsEveryCheckOfTheReceiver gives Inspect no store: a row that asks the cluster without being marked would panic.
func TestInspectRunsEveryCheckOfTheReceiver(t *testing.T) {
	confirmation := map[string]string{
		"type": "SubscriptionConfirmation", "subject": "<none>", "subscribe_url": "https://console.example" + confirmPath + "?topic_urn=" + ourTopic,
	}
	var want []string
	for _, c := range checks() {
		if slices.Contains(want, c.name) {
			t.Errorf("two checks are named %q", c.name)
		}
		want = append(want, c.name)
	}
	for name, body := range map[string]string{"alarm": signedBody(nil), "confirmation": signedBody(confirmation), "malformed": "{}"} {
		keys := &fakeKeys{}
		var got []string
		for _, s := range Inspect(t.Context(), Options{Keys: keys, ConfirmHosts: []string{"console.example"}, Now: noon}, []byte(body)) {
			got = append(got, s.Check)
			if (s.State == StateFailed) != (name == "malformed" && s.Check == "envelope") || s.Text == "" {
				t.Errorf("%s: %s %s: %q", name, s.State, s.Check, s.Text)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the checks are %v, want %v", name, got, want)
		}
		if fetches := keys.asked; (fetches > 0) == (name == "malformed") {
			t.Errorf("%s: %d keys were asked for", name, fetches)
		}
	}
}
