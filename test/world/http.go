// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const httpLimit = time.Minute

// Post posts a body to the public URL as SMN does, and returns status and text of the answer.
func (w *World) Post(ctx context.Context, body []byte) (status int, text string, err error) {
	return request(ctx, http.MethodPost, w.PublicURL(), bytes.NewReader(body))
}

// Get reads a path of the admin address, such as /readyz.
func (p *Process) Get(ctx context.Context, path string) (status int, text string, err error) {
	return request(ctx, http.MethodGet, p.AdminURL+path, nil)
}

func request(ctx context.Context, method, url string, body io.Reader) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, httpLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return 0, "", fmt.Errorf("%s %s: %w", method, url, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "text/plain; charset=UTF-8")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return res.StatusCode, "", fmt.Errorf("%s %s: read the answer: %w", method, url, err)
	}
	return res.StatusCode, string(text), nil
}

// Samples are metrics by name and labels, as /metrics writes them: name{a="1",b="2"}.
type Samples map[string]float64

// Metrics scrapes /metrics.
func (p *Process) Metrics(ctx context.Context) (Samples, error) {
	status, text, err := p.Get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("scrape: %w", err)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("scrape: status %d", status)
	}
	samples := Samples{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("scrape: %q is no sample", line)
		}
		samples[line[:i]] = value
	}
	return samples, nil
}

// Sum returns the sum of the samples of a name that have all these labels, given as key=value. It is 0 if there is none.
func (s Samples) Sum(name string, labels ...string) float64 {
	sum := 0.0
next:
	for sample, value := range s {
		of, rest, _ := strings.Cut(sample, "{")
		if of != name {
			continue
		}
		for _, label := range labels {
			key, want, _ := strings.Cut(label, "=")
			if !strings.Contains(","+rest, ","+key+"="+strconv.Quote(want)) {
				continue next
			}
		}
		sum += value
	}
	return sum
}
