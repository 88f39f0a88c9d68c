package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// options are the flags of serve.
type options struct {
	PublicURL     *url.URL
	WebhookAddr   string
	AdminAddr     string
	Mode          v1alpha1.Mode
	Kubeconfig    string
	Namespaces    []string
	LeaderElect   bool
	LeaseNS       string
	CertHosts     []string
	ConfirmHosts  []string
	CAFile        string
	MaxMessageAge time.Duration
	Sweep         time.Duration
	Recheck       time.Duration
	MaxFlavors    int
	DrainDelay    time.Duration
	CloudRate     float64
	Endpoints     map[string]string
	LogLevel      zapcore.Level
	LogFormat     string
}

var errHelp = errors.New("help was asked for")

// envName is the environment's name of a flag.
func envName(flagName string) string {
	return "RDS_AUTOPILOT_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// parseOptions reads flags, and the environment for those that are not given. Errors are one line.
func parseOptions(args []string, env func(string) string, out io.Writer) (options, error) {
	o, defaults := options{Endpoints: map[string]string{}}, app.Defaults()
	var public, namespaces, level string
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.common(fs)
	fs.StringVar(&public, "public-url", "", "the `URL` that SMN posts alarms to; required. Its path is the webhook's, its scheme the subscription's protocol")
	fs.StringVar(&o.WebhookAddr, "webhook-addr", ":8080", "`address` of the receiver, and of nothing else")
	fs.StringVar(&o.AdminAddr, "admin-addr", ":9090", "`address` of /metrics, /healthz and /readyz; not for the public")
	fs.StringVar(&namespaces, "watch-namespaces", "", "comma separated `namespaces` to watch; empty means all")
	fs.BoolVar(&o.LeaderElect, "leader-elect", defaults.LeaderElect, "elect a leader among the replicas; only it decides")
	fs.StringVar(&o.LeaseNS, "lease-namespace", "", "`namespace` of the lease rds-autopilot; empty means the pod's own")
	o.smn(fs, "that of SMN in the cloud's catalogue", app.Console+" in eu-de and eu-nl; required elsewhere")
	fs.DurationVar(&o.MaxMessageAge, "max-message-age", defaults.MaxMessageAge, "older messages are refused")
	fs.DurationVar(&o.Sweep, "sweep-interval", defaults.Sweep, "how often every database is looked at although no message came")
	fs.DurationVar(&o.Recheck, "recheck-interval", defaults.Recheck, "the next look while an instance is busy or a change is pending")
	fs.IntVar(&o.MaxFlavors, "max-flavor-changes", defaults.MaxFlavorChanges, "how many flavors may be changing at a time in the cluster; each interrupts its database")
	fs.DurationVar(&o.DrainDelay, "drain-delay", defaults.DrainDelay, "how long the receiver goes on after SIGTERM, until nobody sends to it any more; must fit the pod's termination grace period")
	fs.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	fs.StringVar(&o.LogFormat, "log-format", "json", "json or console")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(out, "Usage: rds-autopilot serve [FLAGS]\n\nEvery flag can be set in the environment too: --public-url as %s.\nCloud credentials come from OS_* variables or clouds.yaml.\n\n", envName("public-url"))
			fs.SetOutput(out)
			fs.PrintDefaults()
			return o, errHelp
		}
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err := fromEnv(fs, env); err != nil {
		return o, err
	}
	o.Namespaces = list(namespaces)
	return o, o.validate(public, level)
}

// common are the flags of every command that asks the cluster and the cloud.
func (o *options) common(fs *flag.FlagSet) {
	defaults := app.Defaults()
	fs.StringVar((*string)(&o.Mode), "mode", string(defaults.Mode), "upper bound for every database: `Auto`, Recommend or Off. Off removes everything from the cloud")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "`file` with the way to the API server; empty means the pod's own")
	fs.Float64Var(&o.CloudRate, "cloud-rate", defaults.CloudRate, "requests per second to each cloud service")
	fs.Func("endpoint", "`SERVICE=URL` of smn, ces or rds, instead of the host in the cloud's catalogue; may be repeated", o.setEndpoint)
}

// smn are the flags of every command that reads what SMN sends. The texts say what an empty one means.
func (o *options) smn(fs *flag.FlagSet, certHosts, confirmHosts string) {
	fs.Var((*hosts)(&o.CertHosts), "smn-cert-hosts", "exact `host[:port]` of signing certificates, comma separated; empty means "+certHosts)
	fs.Var((*hosts)(&o.ConfirmHosts), "smn-confirm-hosts", "exact `host[:port]` of confirmation links, comma separated; empty means "+confirmHosts)
	fs.StringVar(&o.CAFile, "smn-ca-file", "", "PEM `file` with trust roots for those hosts, beside the system's")
}

// hosts is a flag: comma separated.
type hosts []string

func (h *hosts) String() string { return strings.Join(*h, ",") }

func (h *hosts) Set(s string) error {
	*h = list(s)
	return nil
}

// fromEnv sets the flags that were not given from the environment.
func fromEnv(fs *flag.FlagSet, env func(string) string) error {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	fs.VisitAll(func(f *flag.Flag) {
		value := env(envName(f.Name))
		if value == "" || given[f.Name] || err != nil {
			return
		}
		values := []string{value}
		if f.Name == "endpoint" { // the one that may be repeated
			values = list(value)
		}
		for _, v := range values {
			if setErr := fs.Set(f.Name, v); setErr != nil {
				err = fmt.Errorf("%s: %w", envName(f.Name), setErr)
			}
		}
	})
	return err
}

func list(s string) []string {
	return slices.DeleteFunc(strings.Split(strings.ReplaceAll(s, " ", ""), ","), func(x string) bool { return x == "" })
}

func (o *options) setEndpoint(s string) error {
	service, raw, _ := strings.Cut(s, "=")
	u, err := url.Parse(raw)
	if !slices.Contains([]string{"smn", "ces", "rds"}, service) || err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("want smn, ces or rds, then = and a URL")
	}
	o.Endpoints[service] = raw
	return nil
}

func (o *options) validate(public, level string) error {
	u, err := url.Parse(public)
	switch {
	case public == "":
		return errors.New("--public-url is required: the URL that SMN posts alarms to")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("--public-url: %q is not an http or https URL", public)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return errors.New("--public-url: a query, a fragment or a user is not possible")
	}
	o.PublicURL = u
	if o.LogLevel, err = zapcore.ParseLevel(level); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	return failed(append(o.commonChecks(), []check{
		{o.LogFormat == "json" || o.LogFormat == "console", "--log-format: want json or console"},
		{o.MaxMessageAge > 0, "--max-message-age: want more than 0"},
		{o.Sweep > 0, "--sweep-interval: want more than 0"},
		{o.Recheck > 0, "--recheck-interval: want more than 0"},
		{o.MaxFlavors > 0, "--max-flavor-changes: want more than 0"},
		{o.DrainDelay >= 0 && o.DrainDelay <= time.Minute, "--drain-delay: want at most a minute, and not less than 0"},
	}...))
}

// check is what must hold of the flags, and what is said where it does not.
type check struct {
	ok   bool
	text string
}

func (o *options) commonChecks() []check {
	return []check{
		{slices.Contains([]v1alpha1.Mode{v1alpha1.ModeAuto, v1alpha1.ModeRecommend, v1alpha1.ModeOff}, o.Mode), "--mode: want Auto, Recommend or Off"},
		{o.CloudRate > 0, "--cloud-rate: want more than 0"},
	}
}

// failed is the first check that does not hold.
func failed(checks []check) error {
	for _, c := range checks {
		if !c.ok {
			return errors.New(c.text)
		}
	}
	return nil
}

// plain reports whether alarms would cross a network unencrypted.
func (o *options) plain() bool {
	host := o.PublicURL.Hostname()
	ip := net.ParseIP(host)
	return o.PublicURL.Scheme == "http" && host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// logger writes one line per event to w.
func (o *options) logger(w io.Writer) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey, config.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewJSONEncoder(config)
	if o.LogFormat == "console" {
		encoder = zapcore.NewConsoleEncoder(config)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), o.LogLevel))
}
