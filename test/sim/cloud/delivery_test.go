// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRetriesOnServerErrorsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []int
		attempts int
		state    DeliveryState
	}{
		"accepted":                        {[]int{200}, 1, Delivered},
		"not for us is not sent again":    {[]int{404}, 1, Refused},
		"too many requests is not either": {[]int{429}, 1, Refused},
		"a redirect is not followed":      {[]int{302}, 1, Refused},
		"unavailable, then accepted":      {[]int{503, 500, 204}, 3, Delivered},
		"unavailable seven times":         {[]int{503}, 7, Dropped},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := start(t, Options{}), receive(t)
			topic := w.subscribed(e)
			e.statuses = c.statuses
			if _, err := w.Publish(topic, "", "x"); err != nil {
				t.Fatal(err)
			}
			w.step()
			w.minutes(10)
			if n := len(e.messages()); n != c.attempts {
				t.Errorf("%d attempts, want %d", n, c.attempts)
			}
			all := w.Deliveries()
			d := all[len(all)-1]
			if d.State != c.state || len(d.Attempts) != c.attempts {
				t.Errorf("%s after %v, want %s", d.State, d.Attempts, c.state)
			}
			for _, m := range e.messages() {
				if diff := cmp.Diff(e.messages()[0], m); diff != "" {
					t.Error("a retry differs:", diff)
				}
			}
			for i, a := range d.Attempts[1:] {
				if gap := a.Time.Sub(d.Attempts[i].Time); gap != time.Minute {
					t.Errorf("retry after %v", gap)
				}
			}
		})
	}
}

func TestDeliveryFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault    DeliveryFault
		received []int // after 0, 1, 2, 3 minutes
	}{
		"none":       {DeliveryFault{}, []int{1, 1, 1, 1}},
		"drop":       {DeliveryFault{Drop: true}, []int{0, 0, 0, 0}},
		"duplicate":  {DeliveryFault{Duplicate: true}, []int{2, 2, 2, 2}},
		"lost reply": {DeliveryFault{LoseReply: true}, []int{1, 2, 3, 4}},
		"delay":      {DeliveryFault{Delay: 2 * time.Minute}, []int{0, 0, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var told []DeliveryState
			w, e := start(t, Options{
				DeliveryFault: func(d Delivery) DeliveryFault {
					if d.Type == TypeConfirmation {
						return DeliveryFault{}
					}
					return c.fault
				},
				OnDelivery: func(d Delivery) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, d.State)
				},
			}), receive(t)
			topic := w.subscribed(e)
			told = nil
			if _, err := w.Publish(topic, "", "x"); err != nil {
				t.Fatal(err)
			}
			var received []int
			for range 4 {
				w.step()
				received = append(received, len(e.messages()))
				w.clock.advance(time.Minute)
			}
			if !slices.Equal(received, c.received) {
				t.Errorf("received %v, want %v", received, c.received)
			}
			if len(told) != c.received[3] {
				t.Errorf("told of %v", told)
			}
		})
	}
}
