// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"testing"
)

// Inspect has no store here, so a check that reads the cluster without being marked for it panics.
func TestInspectRunsEveryCheckOfTheReceiver(t *testing.T) {
	confirmation := m{
		"type": "SubscriptionConfirmation", "subject": "<none>",
		"subscribe_url": "https://console.example" + confirmPath + "?topic_urn=" + ourTopic,
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
		o := Options{Keys: keys, ConfirmHosts: []string{"console.example"}, Now: noon}
		for _, s := range Inspect(t.Context(), o, []byte(body)) {
			got = append(got, s.Check)
			if (s.State == StateFailed) != (name == "malformed" && s.Check == "envelope") || s.Text == "" {
				t.Errorf("%s: %s %s: %q", name, s.State, s.Check, s.Text)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the checks are %v, want %v", name, got, want)
		}
		if (keys.calls > 0) == (name == "malformed") {
			t.Errorf("%s: %d calls of Key", name, keys.calls)
		}
	}
}
