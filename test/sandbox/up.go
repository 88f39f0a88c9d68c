// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// Where the service is expected to listen when it is started by hand.
const (
	webhookAddr = "127.0.0.1:8080"
	adminAddr   = "127.0.0.1:9090"
)

// upPolicy lets a flavor change without the hour that lies between two changes otherwise.
const upPolicy = `{"flavor":{"cooldownSeconds":5,"maxChangesPerDay":10}}`

// up keeps a world running until the context ends: with the service in it, and pages to watch it and to play with the cloud.
func up(ctx context.Context, out *console, o upOptions) (err error) {
	n := newNarrator(out)
	for _, p := range plans() {
		n.names = append(n.names, p.Name)
	}
	s := &replicas{wanted: o.replicas}
	c := &controls{narrator: n, replicas: s, soldOut: map[offer]bool{}, now: time.Now}
	options := o.apply(n.options())
	options.Cloud.Speed = o.speed
	options.Cloud.DeliveryFault = func(d simcloud.Delivery) simcloud.DeliveryFault {
		if c.loses(d) {
			return simcloud.DeliveryFault{Drop: true}
		}
		return n.sending(d)
	}
	options.OnLine = func(p *world.Process, l world.Line) {
		s.seen(p, l)
		n.line(p, l)
	}
	out.print("%sStarting:   Kubernetes, the cloud and rds-autopilot …\n", o.head(o.speed))
	w, err := world.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	c.world = w
	out.restart(o.speed)
	var running sync.WaitGroup
	defer running.Wait()
	defer c.undo()
	if o.replicas == 0 {
		w.Ingress.Set("http://" + webhookAddr)
	} else if err := s.start(ctx, w, &running); err != nil {
		return err
	}
	for _, p := range plans() {
		p.Autopilot = false // the operator would drop it, and a service that is started later would not see it
		db, err := w.AddDatabase(ctx, p.Database)
		if err != nil {
			return err
		}
		if err := db.CreateAutopilot(ctx, upPolicy); err != nil {
			return err
		}
		running.Go(func() { n.watch(ctx, db, p.created()) })
		c.add(db, p)
	}
	running.Go(func() { c.keepGrowing(ctx) })
	address, err := c.serve(ctx, o.listen, &running)
	if err != nil {
		return err
	}
	out.print("%s", c.instructions(address))
	<-ctx.Done()
	out.print("\nEnding, and removing everything …\n")
	return nil
}

// serve answers at one address: the status page of a replica, and below /cloud/ the page of the simulated cloud.
func (c *controls) serve(ctx context.Context, listen string, running *sync.WaitGroup) (string, error) {
	pages, err := c.handler()
	if err != nil {
		return "", err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return "", fmt.Errorf("listen for the sandbox's pages: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/cloud/", http.StripPrefix("/cloud", pages))
	mux.Handle("/", c.replicas.proxy())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute}
	running.Go(func() { _ = server.Serve(listener) }) // ends with http.ErrServerClosed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return listener.Addr().String(), nil
}

// minuteTakes is how long a minute of the cloud is here.
func minuteTakes(speed float64) string {
	if speed == 60 {
		return "a second"
	}
	return strconv.FormatFloat(60/speed, 'g', 2, 64) + " seconds"
}

// instructions are where to look, and what to type in another terminal.
func (c *controls) instructions(address string) string {
	var text strings.Builder
	line := func(parts ...string) { text.WriteString(strings.Join(parts, " ") + "\n") }
	line()
	if c.replicas.wanted > 0 {
		line("  Status page    ", "http://"+address+"/")
	}
	line("  Simulated cloud", "http://"+address+"/cloud/   fill a disk, forge a message, kill the leader")
	line("  In a terminal  ", "export KUBECONFIG="+c.world.AdminKubeconfig()+"; kubectl get rds,rap   (with all columns: KUBE=real)")
	if c.replicas.wanted == 0 {
		line("\nStart the service in another terminal; its status page is http://" + adminAddr + "/\n")
		for _, kv := range c.world.Cloud.Env() {
			line("  export " + kv)
		}
		args := append(c.world.ServeArgs(), "--webhook-addr", webhookAddr, "--admin-addr", adminAddr)
		text.WriteString("\n  bin/rds-autopilot serve")
		for i := 1; i+1 < len(args); i += 2 {
			text.WriteString(" \\\n    " + args[i] + " " + args[i+1])
		}
		line()
	}
	line("\nCtrl-C ends it and removes everything. Times below are hours and minutes of the cloud.\n")
	return text.String()
}
