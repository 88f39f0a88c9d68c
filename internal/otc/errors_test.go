// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// SMN reports some errors with the status 200. The expected key in the reply shows success. An operation without such a
// key has failed if the reply has a code of the services.
func TestSuccessfulStatusWithoutResultIsAnError(t *testing.T) {
	subscribe := func(ctx context.Context, c *Cloud) error {
		_, err := c.Subscribe(ctx, "urn:t", "https", "https://x/y", "r")
		return err
	}
	modify := func(ctx context.Context, c *Cloud) error { return c.ModifyRule(ctx, "al1", Rule{}) }
	rules := func(ctx context.Context, c *Cloud) error { _, err := c.ListRules(ctx); return err }
	for name, tt := range map[string]struct {
		do   func(context.Context, *Cloud) error
		body string
		err  string
	}{
		"the key":                   {subscribe, `{"request_id":"r","subscription_urn":"urn:s"}`, ""},
		"a code alone":              {subscribe, `{"request_id":"r","code":"SMN.0012","message":"The endpoint is invalid"}`, "smn Subscribe: 200 SMN.0012 The endpoint is invalid"},
		"a list after other things": {rules, `{"meta_data":{"count":0},"metric_alarms":[]}`, ""},
		"no list":                   {rules, `{"meta_data":{"count":0}}`, "ces ListRules: the reply contains no metric_alarms"},
		"a list that is cut off":    {rules, `{"metric_alarms":[{"alarm_id":"al1"}`, "ces ListRules: the reply is not a JSON object: unexpected end of JSON input"},
		"too large":                 {rules, `{"metric_alarms":[` + strings.Repeat(" ", replyLimit) + `]}`, "ces ListRules: the reply is too large"},
		"no key is expected":        {modify, ``, ""},
		"a code of failure":         {modify, `{"code":"ces.0007","message":"Internal error"}`, "ces ModifyRule: 200 ces.0007 Internal error"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			synctest.Test(t, func(t *testing.T) { // some are retried, which takes seconds
				err = tt.do(t.Context(), connectTo(t, &fake{service: answer(200, tt.body)}, Options{}))
			})
			if err == nil && tt.err != "" || err != nil && err.Error() != tt.err {
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
}

func TestErrorRepliesOfAllServicesAreParsed(t *testing.T) {
	tests := map[string]struct {
		status        int
		body          string
		code, message string
		is            []error
	}{
		"SMN":                          {404, `{"request_id":"r","code":"SMN.0006","message":"Topic not found"}`, "SMN.0006", "Topic not found", []error{ErrNotFound}},
		"SMN, quota":                   {403, `{"request_id":"r","code":"SMN.0004","message":"too many"}`, "SMN.0004", "too many", []error{ErrQuota}},
		"SMN, quota of subscriptions":  {403, `{"request_id":"r","code":"SMN.0007","message":"too many"}`, "SMN.0007", "too many", []error{ErrQuota}},
		"SMN, quota of its other code": {403, `{"request_id":"r","code":"SMN.0078","message":"too many"}`, "SMN.0078", "too many", []error{ErrQuota}},
		"CES v1, number":               {400, `{"http_code":400,"message":{"details":"gone","code":"ces.0016"}}`, "ces.0016", "gone", []error{ErrNotFound}},
		"CES v1, gone, with 200":       {200, `{"http_code":"404","message":{"details":"gone","code":"ces.0016"}}`, "ces.0016", "gone", []error{ErrNotFound}},
		"RDS, with 202":                {202, `{"error_code":"DBS.200316","error_msg":"full"}`, "DBS.200316", "full", nil},
		"CES v1, quota":                {403, `{"http_code":"403","message":{"details":"full","code":"ces.0018"}}`, "ces.0018", "full", []error{ErrQuota}},
		"CES v2":                       {500, `{"error_code":"ces.0016","error_msg":"no rule","request_id":"r"}`, "ces.0016", "no rule", []error{ErrNotFound}},
		"RDS, old":                     {409, `{"errCode":"RDS.0010","externalMessage":"busy"}`, "RDS.0010", "busy", nil},
		"IAM":                          {401, `{"error":{"code":401,"message":"wrong password","title":"Unauthorized"}}`, "401", "wrong password", []error{ErrCredentials}},
		"too many":                     {429, `{"error_code":"APIGW.0308","error_msg":"throttled"}`, "APIGW.0308", "throttled", []error{ErrUnavailable}},
		"a proxy's page":               {502, `<html>Bad Gateway</html>`, "", "bad gateway", []error{ErrUnavailable}},
		"an odd document":              {500, `[1,2]`, "", "internal server error", []error{ErrUnavailable}},
		"odd types":                    {500, `{"code":{"a":1},"message":7,"error":"x","error_msg":"kept"}`, "", "kept", []error{ErrUnavailable}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var err error
			synctest.Test(t, func(t *testing.T) { // some are retried, which takes seconds
				err = connectTo(t, &fake{service: answer(tt.status, tt.body)}, Options{}).ModifyRule(t.Context(), "al1", Rule{})
			})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("err = %v", err)
			}
			if e.Status != tt.status || e.Code != tt.code || e.Message != tt.message || e.Service != "ces" {
				t.Errorf("got %+v", e)
			}
			for _, kind := range []error{ErrNotFound, ErrQuota, ErrCredentials, ErrUnavailable} {
				if want := slices.Contains(tt.is, kind); errors.Is(err, kind) != want {
					t.Errorf("errors.Is(%v, %v) = %v", err, kind, !want)
				}
			}
		})
	}
}
