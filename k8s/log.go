// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"

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
	quiet := zap.WrapCore(func(c zapcore.Core) zapcore.Core { return withoutCanceled{c} })
	return zapr.NewLogger(log.Named("client-go").WithOptions(zap.IncreaseLevel(level), quiet))
}

// withoutCanceled drops lines about requests that ended because this process ends. They look like failures.
type withoutCanceled struct{ zapcore.Core }

func (c withoutCanceled) With(fields []zapcore.Field) zapcore.Core {
	return withoutCanceled{c.Core.With(fields)}
}

// Check adds this core and not the inner one, so that Write sees the fields.
func (c withoutCanceled) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) {
		return to
	}
	return to.AddCore(e, c)
}

func (c withoutCanceled) Write(e zapcore.Entry, fields []zapcore.Field) error {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && errors.Is(err, context.Canceled) {
			return nil
		}
	}
	return c.Core.Write(e, fields)
}
