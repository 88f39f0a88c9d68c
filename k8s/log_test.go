// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestLibraryLogHidesAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		level zapcore.Level
		want  []string
	}{
		{"debug", zap.DebugLevel, []string{"info"}},
		{"everything", zapcore.Level(-10), []string{"info"}},
		{"error", zap.ErrorLevel, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			core, seen := observer.New(c.level)
			complaint := &strings.Builder{}
			log := libraryLog(zap.New(core, zap.ErrorOutput(zapcore.AddSync(complaint))))
			log.Info("info")
			log.V(1).Info("detail")
			log.V(8).Info("body with a password")
			var got []string
			for _, e := range seen.All() {
				got = append(got, e.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if complaint.Len() > 0 {
				t.Error(complaint)
			}
		})
	}
}

func TestLibraryLogDropsCanceledRequests(t *testing.T) {
	core, seen := observer.New(zap.InfoLevel)
	log := libraryLog(zap.New(core)).WithValues("a", "b")
	log.Error(fmt.Errorf("get: %w", context.Canceled), "at shutdown")
	log.Error(context.DeadlineExceeded, "too slow")
	if all := seen.All(); len(all) != 1 || all[0].Message != "too slow" || len(all[0].Context) != 2 {
		t.Errorf("log %+v, want one line with both fields", all)
	}
}
