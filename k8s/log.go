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

// RedirectLog sends the output of klog, which client-go uses, to log. klog has one logger per process, so callers
// must call RedirectLog once, before they create a client.
func RedirectLog(log *zap.Logger) {
	klog.SetLoggerWithOptions(libraryLog(log), klog.ContextualLogger(true))
}

func withLog(ctx context.Context, log *zap.Logger) context.Context {
	return klog.NewContext(ctx, libraryLog(log))
}

// libraryLog drops everything below info, whatever the level of log is. At higher verbosity client-go logs whole
// answers, and an Rds contains passwords.
func libraryLog(log *zap.Logger) logr.Logger {
	level := max(zapcore.LevelOf(log.Core()), zapcore.InfoLevel)
	return zapr.NewLogger(log.Named("client-go").WithOptions(zap.IncreaseLevel(level)))
}
