// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/internal/shorten"
)

// refusalLimit is the largest refusal in bytes that is read. The API server reads at most 1 MB from a webhook.
const refusalLimit = 4 << 20

// shortRefusals shortens the texts of the API server's refusals where they enter the process. An admission webhook may
// refuse with any length. Such a text would otherwise reach conditions, records, events and logs, also those of the
// library, and the API server would refuse the status that contains it.
type shortRefusals struct{ next http.RoundTripper }

// RoundTrip sends a request and shortens the texts of its answer if that is a refusal.
func (t shortRefusals) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, refusalLimit))
	_ = resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the answer of the Kubernetes API: %w", err)
	}
	body = shortenStatus(body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// WrappedRoundTripper returns the transport below, because client-go searches it for the one that holds connections.
func (t shortRefusals) WrappedRoundTripper() http.RoundTripper { return t.next }

// shortenStatus returns a Status with shortened texts. It returns any other answer as it is; client-go itself shortens
// those.
func shortenStatus(body []byte) []byte {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return body
	}
	status.Message = shorten.Foreign(status.Message)
	if status.Details != nil {
		for i := range status.Details.Causes {
			status.Details.Causes[i].Message = shorten.Foreign(status.Details.Causes[i].Message)
		}
	}
	short, err := json.Marshal(status)
	if err != nil {
		return body
	}
	return short
}
