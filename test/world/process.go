// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// listenLimit is how long the service may take until it listens.
const listenLimit = 5 * time.Minute

// Process is one process of the service.
type Process struct {
	AdminURL   string // of /metrics, /healthz, /readyz
	WebhookURL string // its own, behind the ingress, without a path
	PID        int
	Pod        string // the name that it takes for its pod's

	world      *World
	cmd        *exec.Cmd
	transcript *transcript
	done       chan struct{} // closed once it has ended and all its lines are read
	exit       error         // valid after done is closed
}

// ServeArgs returns the arguments with which the service finds this world, without the addresses to listen at.
func (w *World) ServeArgs() []string {
	return append(w.args("serve"),
		"--drain-delay", "0s", // the ingress removes a process before it is stopped
		"--sweep-interval", w.pace(5*time.Minute), "--recheck-interval", w.pace(30*time.Second))
}

// DoctorArgs returns the arguments with which doctor finds the service of this world.
func (w *World) DoctorArgs() []string { return w.args("doctor") }

func (w *World) args(command string) []string {
	args := []string{
		command, "--public-url", w.PublicURL(), "--kubeconfig", w.Kubeconfig(), "--lease-namespace", w.home,
		"--smn-cert-hosts", w.Cloud.CertHost(), "--smn-confirm-hosts", w.Cloud.ConfirmHost(), "--smn-ca-file", w.caFile(),
		"--cloud-rate", strconv.FormatFloat(min(5*w.options.Cloud.Speed, 100), 'f', -1, 64),
	}
	if only := w.watched(); only != "" {
		args = append(args, "--watch-namespaces", only)
	}
	return args
}

// pace returns one of the service's intervals at the speed of the cloud, and at least 200 ms.
func (w *World) pace(d time.Duration) string {
	return max(w.Span(d), 200*time.Millisecond).Round(time.Millisecond).String()
}

// Serve starts the service with additional flags and puts it behind the ingress. It returns once the service listens, which does
// not mean that it leads. The environment has only the cloud's credentials and POD_NAME. ctx bounds the start only.
func (w *World) Serve(ctx context.Context, flags ...string) (*Process, error) {
	return w.ServeIn(ctx, nil, flags...)
}

// ServeIn is Serve in another environment: extraEnv, as KEY=value, is added to the cloud's credentials and overrides them.
func (w *World) ServeIn(ctx context.Context, extraEnv []string, flags ...string) (*Process, error) {
	if err := w.Build(ctx); err != nil {
		return nil, err
	}
	args := append(w.ServeArgs(), "--webhook-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
	p, err := w.run(append(args, flags...), extraEnv...)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	defer cancel()
	line, err := p.WaitLine(ctx, "the service listens", func(l Line) bool { return l.Msg == "listening" })
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p.AdminURL, p.WebhookURL = "http://"+line.Field("admin"), "http://"+line.Field("webhook")
	if !p.ended() {
		w.Ingress.add(p.WebhookURL)
	}
	return p, nil
}

// Begin starts the service's binary with any arguments.
func (w *World) Begin(ctx context.Context, args []string) (*Process, error) {
	if err := w.Build(ctx); err != nil {
		return nil, err
	}
	return w.run(args)
}

// Run runs the service's binary with any arguments, and returns after it has ended. extraEnv, as KEY=value, is added to the
// cloud's credentials.
func (w *World) Run(ctx context.Context, args, extraEnv []string) (*Process, error) {
	if err := w.Build(ctx); err != nil {
		return nil, err
	}
	p, err := w.run(args, extraEnv...)
	if err != nil {
		return nil, err
	}
	if _, err := p.Wait(ctx); err != nil {
		return p, errors.Join(err, p.Kill())
	}
	return p, nil
}

func (w *World) run(args []string, extraEnv ...string) (*Process, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errors.New("the world is closed")
	}
	number := len(w.process) + 1
	p := &Process{Pod: fmt.Sprintf("%s-%d", serviceName, number), world: w, done: make(chan struct{}), cmd: exec.Command(w.options.Binary, args...)}
	p.transcript = newTranscript(func(l Line) {
		if w.options.OnLine != nil {
			w.options.OnLine(p, l)
		}
	})
	p.cmd.Env = append(append(w.Cloud.Env(), "POD_NAME="+p.Pod), extraEnv...) // the later one of two counts
	p.cmd.Dir = w.dir
	p.cmd.Stdout, p.cmd.Stderr = p.transcript, p.transcript
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // keeps an interrupt of the terminal away, so that Close decides the order
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", w.options.Binary, err)
	}
	p.PID = p.cmd.Process.Pid
	w.process = append(w.process, p)
	err := w.reaper.Watch(p.PID, true)
	go func() {
		p.exit = errors.Join(p.cmd.Wait(), w.reaper.Watch(p.PID, false))
		w.mu.Lock()
		defer w.mu.Unlock()
		close(p.done)
		w.Ingress.remove(p.WebhookURL)
	}()
	return p, err
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Stop removes the process from the ingress, sends SIGTERM and waits. It returns an error for exit codes other than 0. It kills
// a process that does not end before ctx does, and returns an error.
func (p *Process) Stop(ctx context.Context) error {
	p.world.Ingress.remove(p.WebhookURL)
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	code, err := p.Wait(ctx)
	switch {
	case err != nil:
		return errors.Join(fmt.Errorf("stop the service: %w", err), p.Kill())
	case code != 0:
		return fmt.Errorf("stop the service: exit code %d; its last lines:\n%s", code, p.tail())
	}
	return nil
}

// Kill sends SIGKILL and waits.
func (p *Process) Kill() error {
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.done
	return nil
}

// Signal sends any other signal.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Wait waits until the process has ended, and returns its exit code, which is -1 after a signal that it did not handle.
func (p *Process) Wait(ctx context.Context) (code int, err error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the end of the service: %w", ctx.Err())
	}
}

// Lines returns all lines so far, of both outputs.
func (p *Process) Lines() []Line {
	lines, _ := p.transcript.since(0)
	return lines
}

// WaitLine returns the first line that fulfils the condition. It returns an error at the deadline of ctx, after ten minutes if ctx
// has none, and when the process has ended without such a line.
func (p *Process) WaitLine(ctx context.Context, what string, condition func(Line) bool) (Line, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	seen := 0
	for {
		last := p.ended()
		lines, more := p.transcript.since(seen)
		if i := slices.IndexFunc(lines, condition); i >= 0 {
			return lines[i], nil
		}
		seen += len(lines)
		if last {
			return Line{}, fmt.Errorf("waited in vain until %s: the service has ended (%w); its last lines:\n%s", what, p.exit, p.tail())
		}
		select {
		case <-more:
		case <-p.done:
		case <-ctx.Done():
			return Line{}, fmt.Errorf("waited in vain until %s: %w; the last lines:\n%s", what, ctx.Err(), p.tail())
		}
	}
}

// tail returns the last lines of the output.
func (p *Process) tail() string {
	lines := p.Lines()
	var text []string
	for _, l := range lines[max(0, len(lines)-10):] {
		text = append(text, l.Raw)
	}
	return strings.Join(text, "\n")
}
