// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"net/http"
	"strings"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// Next steps after a failed call.
const (
	seePolicy     = "Give the user the rights of deploy/examples/policy-read-only.json, or policy-apply-cloud.json with apply: Cloud"
	askForQuota   = "Delete unused rules and topics, or ask the provider for a higher quota. A database needs 3 rules and a topic"
	publicAddress = "SMN accepts public addresses only. Give a URL that is reachable from the Internet"
	tryLater      = "Run doctor again later: the cloud failed to answer properly"
)

// refused returns a result that names the failed calls to the cloud and the rights they need, or nil if none failed.
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
			do = askForQuota
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

// unless returns failed if it is not nil, else a result with that text.
func unless(failed []Result, format string, args ...any) []Result {
	if failed != nil {
		return failed
	}
	return ok(format, args...)
}
