package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"go.uber.org/zap"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/k8s"
)

const planLimit = 13 * time.Second // for the API server and the cloud to answer at first

// planOptions are the flags of plan.
type planOptions struct {
	options
	Namespace string
	Name      string
	Output    string
}

// parsePlanOptions reads flags before and after the name, and the environment for those that serve has as well.
func parsePlanOptions(args []string, env func(string) string, out io.Writer) (planOptions, error) {
	o := planOptions{options: options{Endpoints: map[string]string{}}}
	fs := flag.NewFlagSet("plan", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.common(fs)
	fs.Lookup("mode").Usage = "what serve runs with, the upper bound for every database: `Auto`, Recommend or Off"
	shared := []string{}
	fs.VisitAll(func(f *flag.Flag) { shared = append(shared, envName(f.Name)) })
	fs.StringVar(&o.Namespace, "n", "", "`namespace` of the Rds; required")
	fs.StringVar(&o.Output, "o", "table", "`format` of the answer: table, json or yaml")
	var names []string
	for rest := args; ; {
		if err := fs.Parse(rest); errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(out, "Usage: rds-autopilot plan -n NAMESPACE NAME [FLAGS]\n\nSays what would be decided now if an alarm came, and changes nothing.\n"+
				"It needs to get and list rdss and rdsautopilots. Cloud credentials come from OS_* variables or clouds.yaml.\n\n")
			fs.SetOutput(out)
			fs.PrintDefaults()
			return o, errHelp
		} else if err != nil {
			return o, err
		}
		if fs.NArg() == 0 {
			break
		}
		names, rest = append(names, fs.Arg(0)), fs.Args()[1:]
	}
	err := fromEnv(fs, func(key string) string {
		if slices.Contains(shared, key) {
			return env(key)
		}
		return ""
	})
	if err != nil {
		return o, err
	}
	if len(names) == 1 {
		o.Name = names[0]
	}
	return o, failed(append(o.commonChecks(), []check{
		{len(names) == 1, "want the name of one Rds: plan -n NAMESPACE NAME"},
		{o.Namespace != "", "-n is required: the namespace of the Rds"},
		{slices.Contains([]string{"table", "json", "yaml"}, o.Output), "-o: want table, json or yaml"},
	}...))
}

func runPlan(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	o, err := parsePlanOptions(args, env, stdout)
	switch {
	case errors.Is(err, errHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "rds-autopilot: %v\n", err)
		return exitUsage
	}
	answer, err := askPlan(ctx, o, env)
	if err == nil {
		err = answer.write(stdout, o.Output)
	}
	if err != nil {
		fmt.Fprintf(stderr, "rds-autopilot: %v\n", err)
		return exitError
	}
	return exitOK
}

// askPlan connects as serve does, to one namespace, and writes nothing anywhere. Each call has its own deadline; how many
// there are, and how fast they may be made, depends on the cloud.
func askPlan(ctx context.Context, o planOptions, env func(string) string) (*plan, error) {
	starting, started := context.WithTimeout(ctx, planLimit)
	defer started()
	of := o.app(env, zap.NewNop())
	of.Namespaces = []string{o.Namespace} // one may be allowed to read only this one
	cfg, err := k8s.NewConfig(o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	kube, err := app.ConnectKube(starting, cfg, of)
	if err != nil {
		return nil, err
	}
	// Before the cloud is asked for anything: a wrong name is the likeliest mistake.
	target, err := kube.LiveTarget(starting, o.Namespace, o.Name)
	if errors.Is(err, autopilot.ErrGone) {
		return nil, fmt.Errorf("there is no Rds %s/%s", o.Namespace, o.Name)
	}
	if err != nil {
		return nil, err
	}
	api, err := app.ConnectCloud(starting, of, nil, false)
	if err != nil {
		return nil, err
	}
	p := planner{kube: kube, api: api, cloud: cloud.New(api, time.Now), config: cfg, mode: o.Mode, now: time.Now}
	s, err := p.look(ctx, target)
	if err != nil {
		return nil, err
	}
	return s.plan(), nil
}

// write writes the plan in one of the formats.
func (p *plan) write(w io.Writer, format string) error {
	var text []byte
	var err error
	switch format {
	case "json":
		text, err = json.MarshalIndent(p, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(p)
	default:
		text, err = p.table()
	}
	if err == nil {
		_, err = w.Write(text)
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}
