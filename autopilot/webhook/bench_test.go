// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkReceive is what the receiver adds to the work of the server and to the one signature.
func BenchmarkReceive(b *testing.B) {
	r := newBench(b)
	r.Log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(discard{}), zapcore.InfoLevel))
	body := signedBody(nil)
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/smn", strings.NewReader(body)))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
