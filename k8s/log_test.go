// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// At a high verbosity client-go logs whole answers, and an Rds has passwords.
func TestLibraryLogHidesAnswers(t *testing.T) {
	for level, want := range map[zapcore.Level][]string{zap.DebugLevel: {"info"}, zapcore.Level(-10): {"info"}, zap.ErrorLevel: nil} {
		core, seen := observer.New(level)
		log := libraryLog(zap.New(core))
		log.Info("info")
		log.V(1).Info("detail")
		log.V(8).Info("body with a password")
		var got []string
		for _, e := range seen.All() {
			got = append(got, e.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("log at %s (-want +got):\n%s", level, diff)
		}
	}
}
