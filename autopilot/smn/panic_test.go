// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("a file of another host") }

func TestAPanicInAFetchIsAnErrorOfItsMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := NewKeys(Fixed(fakeName), &http.Client{Transport: panicking{}}, time.Now)
		if _, err := keys.Key(t.Context(), "https://"+fakeName+"/smn/SMN_eu-de_"+strings.Repeat("a", 32)+".pem", "topic", true); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%v", err)
		}
	})
}
