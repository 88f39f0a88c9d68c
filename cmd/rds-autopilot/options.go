// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s"
)

// options are the flags that more than one command has.
type options struct {
	app.Options
	Kubeconfig string
	Context    string
	needsURL   bool
}

func newOptions(env func(string) string) options {
	o := options{Options: app.Defaults()}
	o.Env, o.Version = env, version
	return o
}

// connection adds the flags of every command that asks the cluster and the cloud.
func (o *options) connection(fs *pflag.FlagSet) {
	fs.StringVar((*string)(&o.Mode), "mode", string(o.Mode), "upper bound for every database: `Auto`, Recommend or Off. Off removes everything from the cloud")
	fs.StringVar((*string)(&o.Allowed.Apply), "allow-apply", string(o.Allowed.Apply), "`Operator`, or Cloud for databases whose spec.apply is Cloud: those are changed in the cloud by the service itself")
	fs.StringSliceVar(&o.Allowed.Instances, "allowed-instances", nil, "with --allow-apply=Cloud: `NAMESPACE/ID` of the instances that a namespace may have changed, * for any, comma separated; empty means all")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "`file` with the way to the API server; empty means $KUBECONFIG, then ~/.kube/config, then the pod's own")
	fs.StringVar(&o.Context, "context", "", "`name` of the kubeconfig's context; empty means its current one")
	fs.Float64Var(&o.CloudRate, "cloud-rate", o.CloudRate, "requests per second to each cloud service")
	fs.StringToStringVar(&o.Endpoints, "endpoint", nil, "`SERVICE=URL` of smn, ces or rds, instead of the host in the cloud's catalogue; comma separated, may be repeated")
}

// receiver adds the flag of every command that must know where SMN posts alarms to.
func (o *options) receiver(fs *pflag.FlagSet, usage string) {
	o.needsURL = true
	fs.Func("public-url", usage, func(raw string) (err error) {
		o.PublicURL, err = app.ParsePublicURL(raw)
		return err
	})
}

// smn adds the flags of every command that reads what SMN sends. The texts say what an empty one means.
func (o *options) smn(fs *pflag.FlagSet, certHosts, confirmHosts string) {
	fs.StringSliceVar(&o.CertHosts, "smn-cert-hosts", nil, "exact `host[:port]` of signing certificates, comma separated; empty means "+certHosts)
	fs.StringSliceVar(&o.ConfirmHosts, "smn-confirm-hosts", nil, "exact `host[:port]` of confirmation links, comma separated; empty means "+confirmHosts)
	fs.Func("smn-ca-file", "PEM `file` with trust roots for those hosts, beside the system's", func(file string) (err error) {
		o.Roots, err = app.TrustRoots(file)
		return err
	})
}

// envName is the environment's name of a flag.
func envName(flagName string) string {
	return "RDS_AUTOPILOT_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// fromEnv sets the flags that were not given from the environment. Those with a short form say what one call is about, and
// come from the command line alone.
func fromEnv(fs *pflag.FlagSet, env func(string) string) error {
	var err error // the first
	fs.VisitAll(func(f *pflag.Flag) {
		value := env(envName(f.Name))
		if value == "" || f.Changed || f.Shorthand != "" || err != nil {
			return
		}
		if setErr := f.Value.Set(value); setErr != nil {
			err = usageError{fmt.Errorf("%s: %w", envName(f.Name), setErr)}
		}
	})
	return err
}

// config is the way to the API server, and the namespace of the context.
func (o *options) config() (config *rest.Config, namespace string, err error) {
	if config, namespace, err = k8s.NewConfig(o.Kubeconfig, o.Context); err != nil {
		err = fmt.Errorf("--kubeconfig: %w", err)
	}
	return config, namespace, err
}

// validate reports the first flag that is wrong or missing.
func (o *options) validate() error {
	if o.needsURL && o.PublicURL == nil {
		return usageError{errors.New("--public-url is required: the URL that SMN posts alarms to")}
	}
	if err := o.Validate(); err != nil {
		return usageError{err}
	}
	return nil
}

// oneOf reports a flag whose value is none of those it can have.
func oneOf(flag, value string, of ...string) error {
	if slices.Contains(of, value) {
		return nil
	}
	return usageError{fmt.Errorf("--%s: want %s, not %q", flag, strings.Join(of, " or "), value)}
}
