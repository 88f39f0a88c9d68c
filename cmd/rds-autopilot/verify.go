package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/app"
)

const verifyLimit = 10 * time.Second // for the certificate, whose host may be slow

// verifyHosts are those of all regions: without the cloud nobody tells which it is.
func verifyHosts() []string {
	return []string{app.SMNHost("eu-de"), app.SMNHost("eu-nl"), app.SMNHost("eu-ch2")}
}

const verifyUsage = `Usage: rds-autopilot verify -f FILE [FLAGS]

Goes through the receiver's checks with a captured body, in its order, and says which one fails first. It asks for the
signing certificate, on the hosts of --smn-cert-hosts only, and for nothing else: no link is called, nothing is confirmed.
What only the cluster knows (whether the topic, rule and instance are ours) is not checked.

It exits with 0 if all checks pass, 1 if one fails, 2 if it was called wrongly or cannot read the file.

`

func runVerify(ctx context.Context, args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	body, v, err := parseVerify(args, env, stdin, stdout)
	switch {
	case errors.Is(err, errHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "rds-autopilot: %v\n", err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	ok, err := tell(stdout, v.look(ctx, body))
	if err != nil {
		fmt.Fprintf(stderr, "rds-autopilot: write the answer: %v\n", err)
	}
	if err != nil || !ok {
		return exitError
	}
	return exitOK
}

// parseVerify reads flags, environment and the body, of which no more than the receiver would.
func parseVerify(args []string, env func(string) string, stdin io.Reader, out io.Writer) ([]byte, *verifier, error) {
	var o options
	var file string
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.smn(fs, strings.Join(verifyHosts(), ", "), app.Console)
	shared := map[string]bool{}
	fs.VisitAll(func(f *flag.Flag) { shared[envName(f.Name)] = true })
	fs.StringVar(&file, "f", "", "`file` with the body of the POST, byte for byte, without its headers; - is standard input; required")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, verifyUsage)
		fs.SetOutput(out)
		fs.PrintDefaults()
		return nil, nil, errHelp
	} else if err != nil {
		return nil, nil, err
	}
	err := fromEnv(fs, func(key string) string {
		if shared[key] {
			return env(key)
		}
		return ""
	})
	if err != nil {
		return nil, nil, err
	}
	switch {
	case fs.NArg() > 0:
		return nil, nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case file == "":
		return nil, nil, errors.New("-f is required: the file with the body, or - for standard input")
	}
	if len(o.CertHosts) == 0 {
		o.CertHosts = verifyHosts()
	}
	if len(o.ConfirmHosts) == 0 {
		o.ConfirmHosts = []string{app.Console}
	}
	roots, err := trustRoots(o.CAFile)
	if err != nil {
		return nil, nil, fmt.Errorf("--smn-ca-file: %w", err)
	}
	body, err := readCapture(file, stdin)
	if err != nil {
		return nil, nil, fmt.Errorf("-f: %w", err)
	}
	hosts := smn.Fixed(o.CertHosts...)
	keys := smn.NewKeys(hosts, smn.NewClient(hosts, roots), time.Now)
	return body, &verifier{certHosts: o.CertHosts, confirmHosts: o.ConfirmHosts, keys: keys, now: time.Now}, nil
}

func readCapture(file string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		in = opened
	}
	return io.ReadAll(io.LimitReader(in, webhook.MaxBody+1))
}

// What a check can say.
const (
	stateOK      = "ok"
	stateFailed  = "FAILED"
	stateSkipped = "skipped"
	stateNote    = "note"
)

// verdict is the line of one check.
type verdict struct{ State, Check, Text string }

// tell writes the lines and says which check failed first; false means that one did.
func tell(w io.Writer, verdicts []verdict) (bool, error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	last := "all checks passed"
	ok := true
	for _, v := range verdicts {
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.State, v.Check, v.Text)
		if v.State == stateFailed && ok {
			ok, last = false, "failed: "+v.Check
		}
	}
	if err := table.Flush(); err != nil {
		return ok, err
	}
	_, err := fmt.Fprintln(w, last)
	return ok, err
}
