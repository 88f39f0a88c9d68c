// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/internal/recording"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	options
	namespace, output, listen, capture, record string
	wait                                       time.Duration
}

func newDoctor(env func(string) string) *cobra.Command {
	o := &doctorOptions{options: newOptions(env)}
	c := &cobra.Command{
		Use: "doctor [NAME]", Short: "Test the real cloud once, and report whether the service would work with it",
		Long: `Doctor reports in one line per check whether rds-autopilot would work here. It creates a topic and a subscription of the
public URL and, with the name of an Rds, an alarm rule that fires at once. It waits for the messages and then removes
everything, also what an earlier run has left. It changes no database.

The running service receives the messages, and doctor reads in the cluster which ones it has accepted. With --listen, doctor
receives them itself, explains why one is refused, and refuses one alarm to see whether SMN sends it again. The exit code is 0 if no check failed, 1 if one
failed, 2 if the arguments are wrong.`,
		Args: arguments(0, 1, "want the name of one Rds, or none: doctor -n NAMESPACE NAME"),
	}
	c.Example = `  rds-autopilot doctor --public-url https://alarms.example.com/smn
  rds-autopilot doctor -n shop orders --public-url https://alarms.example.com/smn --listen :8080 --capture bodies
  rds-autopilot doctor -n shop orders --public-url https://alarms.example.com/smn --record eu-de.jsonl`
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.namespace, "namespace", "n", "",
		"`namespace` of the Rds and of the temporary RdsAutopilot; empty means the one of the kubeconfig's context")
	o.output = "text"
	fs.StringVarP(&o.output, "output", "o", o.output, "`format` of the output: text or json")
	o.receiver(fs, "`URL` that serve runs with; required")
	fs.StringVar(&o.listen, "listen", "", "`address` at which doctor receives the messages in place of the running service; the public URL must lead to it")
	fs.StringVar(&o.capture, "capture", "",
		"`directory` in which to save the bodies of the messages, without signatures and tokens; needs --listen")
	fs.StringVar(&o.record, "record", "",
		"new `file` for the exchanges with the cloud's API, one JSON object per line; ids, names, addresses and secrets become placeholders")
	fs.DurationVar(&o.wait, "wait", 20*time.Minute, "how long to wait for an alarm; all other waits are fractions of it")
	o.connection(fs)
	fs.StringSliceVar(&o.Namespaces, "watch-namespaces", nil,
		"comma separated `namespaces` that serve watches; empty means all")
	fs.StringVar(&o.LeaseNamespace, "lease-namespace", "", "`namespace` of the service; empty means the pod's own")
	fs.StringVar(&o.LeaseName, "lease-name", o.LeaseName, "`name` of the lease that serve runs with")
	o.system(fs)
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect,
		"whether serve elects a leader; if not, doctor looks for no lease")
	o.smn(fs)
	c.RunE = o.run
	return c
}

func (o *doctorOptions) run(c *cobra.Command, args []string) (err error) {
	if err = o.validate(); err != nil {
		return err
	}
	if o.output != "text" && o.output != "json" {
		return usageError{errors.New("--output: want text or json")}
	}
	if o.wait < time.Second {
		return usageError{errors.New("--wait: want at least a second")}
	}
	with := doctor.Options{Options: o.Options, Wait: o.wait}
	if o.capture != "" {
		if o.listen == "" {
			return usageError{errors.New("--capture: it needs --listen, because the running service keeps no messages")}
		}
		if err = os.MkdirAll(o.capture, 0o700); err != nil {
			return usageError{fmt.Errorf("--capture: %w", err)}
		}
		with.Keep = func(name string, body []byte) error { return os.WriteFile(filepath.Join(o.capture, name), body, 0o600) }
	}
	if o.listen != "" {
		if with.Listen, err = (&net.ListenConfig{}).Listen(c.Context(), "tcp", o.listen); err != nil {
			return usageError{fmt.Errorf("--listen: %w", err)}
		}
		defer func() { _ = with.Listen.Close() }() // the receiver closes it too, once it has started
		fmt.Fprintf(c.ErrOrStderr(), "listening at %s\n", with.Listen.Addr())
	}
	if o.record != "" {
		file, openErr := os.OpenFile(filepath.Clean(o.record), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if openErr != nil {
			return usageError{fmt.Errorf("--record: %w", openErr)}
		}
		recorder := recording.New(file, o.Now)
		with.Record = recorder.Wrap
		defer func() { err = cmp.Or(err, recorder.Err(), file.Close()) }()
	}
	// Without these two, the process would end at once and leave a rule that is always in alarm.
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGQUIT)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // of a reader of the output that has ended, such as head

	with.Kube, with.Namespace, with.KubeErr = o.config()
	with.Namespace, with.Name = cmp.Or(o.namespace, with.Namespace, "default"), strings.Join(args, "")
	all := []doctor.Result{}
	with.Report = func(r doctor.Result) {
		all = append(all, r)
		if o.output != "text" {
			return
		}
		if _, err := fmt.Fprint(c.OutOrStdout(), r); err != nil {
			stop() // nobody reads the rest
		}
	}
	with.Progress = func(text string) { fmt.Fprintln(c.ErrOrStderr(), text) }
	failed := doctor.Run(ctx, with)
	if o.output == "json" {
		encoder := json.NewEncoder(c.OutOrStdout())
		encoder.SetIndent("", "  ")
		err = encoder.Encode(map[string]any{"checks": all, "failed": len(failed)})
	}
	if err == nil && len(failed) > 0 {
		err = errCheckFailed
	}
	return err
}
