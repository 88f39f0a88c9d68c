// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// options are the flags that more than one command has.
type options struct {
	app.Options
	Kubeconfig string
	Context    string
	CAFile     string
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

// smn adds the flags of every command that reads what SMN sends. The texts say what an empty one means.
func (o *options) smn(fs *pflag.FlagSet, certHosts, confirmHosts string) {
	fs.StringSliceVar(&o.CertHosts, "smn-cert-hosts", nil, "exact `host[:port]` of signing certificates, comma separated; empty means "+certHosts)
	fs.StringSliceVar(&o.ConfirmHosts, "smn-confirm-hosts", nil, "exact `host[:port]` of confirmation links, comma separated; empty means "+confirmHosts)
	fs.StringVar(&o.CAFile, "smn-ca-file", "", "PEM `file` with trust roots for those hosts, beside the system's")
}

// trimmed leaves out spaces and what is empty.
func trimmed(values []string) (kept []string) {
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" {
			kept = append(kept, v)
		}
	}
	return kept
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

// check is what must hold of the flags, and what is said where it does not.
type check struct {
	ok   bool
	text string
}

// trim leaves out what is empty of the flags that are lists.
func (o *options) trim() {
	o.Namespaces, o.CertHosts, o.ConfirmHosts = trimmed(o.Namespaces), trimmed(o.CertHosts), trimmed(o.ConfirmHosts)
	o.Allowed.Instances = trimmed(o.Allowed.Instances)
}

// parsePublicURL sets PublicURL, and returns what must hold of it.
func (o *options) parsePublicURL(raw string) []check {
	u, err := url.Parse(raw)
	o.PublicURL = u
	return []check{
		{raw != "", "--public-url is required: the URL that SMN posts alarms to"},
		{isWeb(u, err), fmt.Sprintf("--public-url: %q is not an http or https URL", raw)},
		{err != nil || u.RawQuery == "" && u.Fragment == "" && u.User == nil, "--public-url: a query, a fragment or a user is not possible"},
	}
}

func (o *options) connectionChecks() []check {
	return []check{
		{slices.Contains([]v1alpha1.Mode{v1alpha1.ModeAuto, v1alpha1.ModeRecommend, v1alpha1.ModeOff}, o.Mode), "--mode: want Auto, Recommend or Off"},
		{slices.Contains([]v1alpha1.Apply{v1alpha1.ApplyOperator, v1alpha1.ApplyCloud}, o.Allowed.Apply), "--allow-apply: want Operator or Cloud"},
		{!slices.ContainsFunc(trimmed(o.Allowed.Instances), invalidInstance), "--allowed-instances: want NAMESPACE/ID, with * for any"},
		{o.CloudRate > 0, "--cloud-rate: want more than 0"},
		{!slices.ContainsFunc(slices.Collect(maps.Keys(o.Endpoints)), o.invalidEndpoint), "--endpoint: want smn, ces or rds, then = and a URL"},
	}
}

func (o *options) invalidEndpoint(service string) bool {
	return !slices.Contains([]string{"smn", "ces", "rds"}, service) || !isWeb(url.Parse(o.Endpoints[service]))
}

// isWeb reports whether what was parsed is an http or https URL.
func isWeb(u *url.URL, err error) bool {
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

func invalidInstance(entry string) bool { return !autopilot.ValidAllowedInstance(entry) }

// firstFailed is the first check that does not hold.
func firstFailed(checks []check) error {
	for _, c := range checks {
		if !c.ok {
			return usageError{errors.New(c.text)}
		}
	}
	return nil
}
