// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// RedirectLog sends to log what client-go writes through klog, which is one logger per process. It is called once,
// before any client exists.
func RedirectLog(log *zap.Logger) {
	klog.SetLoggerWithOptions(libraryLog(log), klog.ContextualLogger(true))
}

func withLog(ctx context.Context, log *zap.Logger) context.Context {
	return klog.NewContext(ctx, libraryLog(log))
}

// libraryLog lets nothing below info through, whatever log itself shows: from some verbosity on, client-go prints
// whole answers, and an Rds holds passwords.
func libraryLog(log *zap.Logger) logr.Logger {
	level := max(zapcore.LevelOf(log.Core()), zapcore.InfoLevel)
	return zapr.NewLogger(log.Named("client-go").WithOptions(zap.IncreaseLevel(level)))
}
