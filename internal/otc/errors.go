// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kinds of errors, for errors.Is.
var (
	ErrNotFound    = errors.New("not found in the cloud")
	ErrQuota       = errors.New("quota of the cloud exhausted")
	ErrCredentials = errors.New("credentials refused by the cloud")
	ErrUnavailable = errors.New("cloud unavailable") // no usable answer, 408, 429 or 5xx: a later call may succeed
)

// errInvalidID is the cause of a call that was not sent because of its id.
var errInvalidID = errors.New("not a valid id")

// Error is an unsuccessful answer of the cloud, or the reason why there was no usable answer.
type Error struct {
	Service    string // iam, smn, ces, rds
	Operation  string
	Status     int    // HTTP status; 0 means no usable answer
	Code       string // the service's code, such as SMN.0004
	Message    string // one line, free of secrets
	retryAfter time.Duration
	cause      error
}

func (e *Error) Error() string {
	status := ""
	if e.Status != 0 {
		status = strconv.Itoa(e.Status)
	}
	parts := []string{e.Service, e.Operation + ":", status, e.Code, e.Message}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

// Unwrap returns the cause, such as context.Canceled.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether the error is of a kind such as ErrNotFound. Cloud Eye reports a missing rule by its code, not by
// 404 (CES api: error_codes.rst).
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNotFound:
		return e.Status == http.StatusNotFound || e.hasCode("SMN.0006", "SMN.0013", "ces.0016")
	case ErrQuota:
		return e.hasCode("SMN.0004", "SMN.0007", "SMN.0078", "ces.0018")
	case ErrCredentials:
		refused := e.Status == http.StatusBadRequest || e.Status == http.StatusForbidden
		return e.Status == http.StatusUnauthorized || e.Service == string(serviceIAM) && refused
	case ErrUnavailable:
		if e.Status == 0 {
			return !errors.Is(e.cause, context.Canceled) && !errors.Is(e.cause, errInvalidID)
		}
		return e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests ||
			(e.Status >= 500 && !e.Is(ErrNotFound) && !e.Is(ErrQuota))
	}
	return false
}

func (e *Error) hasCode(codes ...string) bool {
	return slices.ContainsFunc(codes, func(code string) bool { return strings.EqualFold(e.Code, code) })
}

// transient reports whether a missing answer is the network's fault. An ended context or a wrong certificate is not.
func (e *Error) transient() bool {
	_, wrong := errors.AsType[*tls.CertificateVerificationError](e.cause)
	return !wrong && !errors.Is(e.cause, context.Canceled) && !errors.Is(e.cause, context.DeadlineExceeded)
}

func (t *transport) refusal(op operation, resp *http.Response, reply []byte) *Error {
	code, message := parseRefusal(reply)
	return &Error{
		Service: string(t.ops[op].service), Operation: string(op), Status: resp.StatusCode, Code: t.clean(code),
		Message:    t.clean(cmp.Or(message, strings.ToLower(http.StatusText(resp.StatusCode)))),
		retryAfter: retryAfter(resp.Header),
	}
}

// parseRefusal returns code and message of an error reply; both are empty if it has none. It reads the fields of all
// services: code/message (SMN), message.code/details (CES v1), error_code/error_msg (CES v2, RDS, IAM, gateway),
// errCode/externalMessage (old RDS), error.code/message (IAM).
func parseRefusal(reply []byte) (code, message string) {
	var body struct {
		Code            text            `json:"code"`
		Message         json.RawMessage `json:"message"`
		ErrorCode       text            `json:"error_code"`
		ErrorMsg        text            `json:"error_msg"`
		ErrCode         text            `json:"errCode"`
		ExternalMessage text            `json:"externalMessage"`
		Error           struct {
			Code    text `json:"code"`
			Message text `json:"message"`
		} `json:"error"`
	}
	if !json.Valid(reply) {
		return "", "" // for example the HTML page of a proxy
	}
	_ = json.Unmarshal(reply, &body) // it fills the other fields if one has another type
	var inner struct {
		Code    text `json:"code"`
		Details text `json:"details"`
	}
	var plain text
	if json.Unmarshal(body.Message, &inner) != nil {
		_ = json.Unmarshal(body.Message, &plain)
	}
	return string(cmp.Or(body.ErrorCode, body.ErrCode, inner.Code, body.Code, body.Error.Code)),
		string(cmp.Or(body.ErrorMsg, body.ExternalMessage, inner.Details, plain, body.Error.Message))
}

// text is a string that also accepts a JSON number, because some services send codes as numbers.
type text string

// UnmarshalJSON ignores other types and returns no error, so that an unexpected code does not lose the message.
func (t *text) UnmarshalJSON(b []byte) error {
	var n json.Number
	if json.Unmarshal(b, (*string)(t)) != nil && json.Unmarshal(b, &n) == nil {
		*t = text(n)
	}
	return nil
}

const (
	// firstPause is the pause before the first retry; each further one is twice as long.
	firstPause = 500 * time.Millisecond
	// maxPause is the longest pause. A longer Retry-After is an error at once, because a caller cannot wait so long.
	maxPause = 20 * time.Second
)

// retryAfterFault reports whether to retry a failed request, and after which pause. A POST is retried only if the cloud
// refused it with 429, because otherwise the cloud may have carried it out.
func (c call) retryAfterFault(method string, attempt int, fault *Error) (time.Duration, bool) {
	canRetry := method != http.MethodPost || c.t.ops[c.op].read
	switch fault.Status {
	case http.StatusTooManyRequests:
		canRetry = true
	case 0:
		canRetry = canRetry && fault.transient()
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		canRetry = false
	}
	if !canRetry || attempt >= attempts || c.ctx.Err() != nil {
		return 0, false
	}
	pause := firstPause << (attempt - 1)
	pause = max(pause/2+rand.N(pause), fault.retryAfter)
	return pause, pause <= maxPause
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil {
		return 0
	}
	return time.Duration(min(max(seconds, 0), 86400)) * time.Second
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
