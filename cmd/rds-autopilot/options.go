// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
)

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

func (o *options) connection(fs *pflag.FlagSet) {
	fs.StringVar((*string)(&o.Mode), "mode", string(o.Mode),
		"upper bound `mode` for every database: Auto, Recommend or Off. Off removes the topic and all alarm rules from the cloud")
	fs.StringVar((*string)(&o.Allowed.Apply), "allow-apply", string(o.Allowed.Apply),
		"`way` in which changes are made: Operator, or Cloud: then the service itself changes databases with spec.apply: Cloud in the cloud")
	fs.StringSliceVar(&o.Allowed.Instances, "allowed-instances", nil,
		"`NAMESPACE/ID` of the instances that the objects of each namespace may name, * for any, comma separated; required with --allow-apply=Cloud, where */* allows all; empty means all")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "",
		"kubeconfig `file`; empty means $KUBECONFIG, then ~/.kube/config, then the pod's service account")
	fs.StringVar(&o.Context, "context", "", "`name` of the context in the kubeconfig; empty means the current one")
	fs.StringVar(&o.System, "system-namespace", o.System, "`namespace` whose uid identifies the cluster")
	fs.Float64Var(&o.CloudRate, "cloud-rate", o.CloudRate, "requests per second to each cloud service")
	fs.StringToStringVar(&o.Endpoints, "endpoint", nil,
		"`SERVICE=URL` of smn, ces or rds, in place of the URL in the cloud's catalogue; comma separated, may be repeated")
}

func (o *options) receiver(fs *pflag.FlagSet, usage string) {
	o.needsURL = true
	fs.Func("public-url", usage, func(raw string) (err error) {
		o.PublicURL, err = app.ParsePublicURL(raw)
		return err
	})
}

// installation adds the flags about the installation that serve and doctor share.
func (o *options) installation(fs *pflag.FlagSet) {
	fs.StringToStringVar(&o.Labels, "labels", nil, "`NAME=VALUE` of the labels of all objects that the service creates, comma separated")
	fs.StringSliceVar(&o.CertHosts, "smn-cert-hosts", nil,
		"exact `host[:port]` of the signing certificates, comma separated; empty means SMN's host in the cloud's catalogue")
	fs.StringSliceVar(&o.ConfirmHosts, "smn-confirm-hosts", nil,
		"exact `host[:port]` of the confirmation links, comma separated; empty means "+
			app.Console+" in eu-de and eu-nl; required elsewhere")
	fs.Func("smn-ca-file", "PEM `file` with more trust roots for those hosts; the system's stay valid",
		func(file string) (err error) {
			o.Roots, err = otc.TrustRoots(file)
			return err
		})
}

func envName(flagName string) string {
	return "RDS_AUTOPILOT_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// fromEnv sets the flags that were not given from the environment. It skips flags with a short form, because they
// belong to one call.
func fromEnv(fs *pflag.FlagSet, env func(string) string) error {
	var err error // of the first wrong value
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

func (o *options) config() (*rest.Config, string, error) {
	config, namespace, err := k8s.NewConfig(o.Kubeconfig, o.Context)
	if err != nil {
		return nil, namespace, fmt.Errorf("--kubeconfig: %w", err)
	}
	return config, namespace, nil
}

func (o *options) validate() error {
	if o.needsURL && o.PublicURL == nil {
		return usageError{errors.New("--public-url is required: the URL that SMN posts alarms to")}
	}
	if err := o.Validate(); err != nil {
		return usageError{err}
	}
	return nil
}
