// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"net/http"
	"strings"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// What to do about a call that failed.
const (
	seePolicy     = "Give the user the rights of deploy/examples/policy.json"
	askForRoom    = "Delete rules and topics that nobody needs, or ask the provider for a higher quota: a database needs 3 rules and a topic"
	publicAddress = "SMN accepts public addresses only: give the URL that the Internet reaches"
	tryLater      = "Run doctor again later: the cloud did not answer as it should"
)

// refused says of calls to the cloud which ones failed, and which right that needs; nil if none failed.
func refused(errs ...error) []Result {
	var texts []string
	do := tryLater
	for _, err := range errs {
		if err == nil {
			continue
		}
		text := err.Error()
		e, isCloud := errors.AsType[*otc.Error](err)
		switch {
		case errors.Is(err, otc.ErrQuota):
			do = askForRoom
		case isCloud && e.Code == "SMN.0069":
			do = publicAddress
		case isCloud && (e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized):
			do = seePolicy
			if right := otc.Rights()[e.Operation]; right != "" {
				text += ": it needs " + right
			}
		}
		texts = append(texts, text)
	}
	if texts == nil {
		return nil
	}
	return result(Failed, do, "%s", strings.Join(texts, "; "))
}

// unless returns what is well, unless something failed.
func unless(failed []Result, format string, args ...any) []Result {
	if failed != nil {
		return failed
	}
	return ok(format, args...)
}
