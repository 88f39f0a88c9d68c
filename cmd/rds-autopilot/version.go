package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const sdkModule = "github.com/opentelekomcloud/gophertelekomcloud"

// build is which build this is.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	SDK      string `json:"sdk,omitempty"` // version of the cloud's SDK
}

func newVersion() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "version", Short: "Say which build this is", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			b := thisBuild()
			switch output {
			case "":
				_, err := fmt.Fprintf(c.OutOrStdout(), "rds-autopilot %s (commit %s, %s, %s, SDK %s)\n", b.Version, cmp.Or(b.Commit, "unknown"), b.Go, b.Platform, cmp.Or(b.SDK, "unknown"))
				return err
			case "json":
				encoder := json.NewEncoder(c.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(b)
			}
			return usageError{fmt.Errorf("--output: want json, not %q", output)}
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`format`: json; empty is one line for people")
	return c
}

func thisBuild() build {
	b := build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = cmp.Or(b.Commit, s.Value)
		}
	}
	for _, m := range info.Deps {
		if m.Path == sdkModule {
			b.SDK = m.Version
		}
	}
	return b
}
