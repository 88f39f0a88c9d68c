// SPDX-License-Identifier: Apache-2.0

package app

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewLogger returns a logger that writes one line per event to w. format is json or console.
func NewLogger(w io.Writer, level zapcore.Level, format string) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey, config.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewJSONEncoder(config)
	if format == "console" {
		encoder = zapcore.NewConsoleEncoder(config)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level))
}
