// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// demoLimit bounds the demo once everything is compiled.
const demoLimit = 2 * time.Minute

// demoSpeed is the time factor of the cloud: a minute takes a second.
const demoSpeed = 60

// cooldown is that of the demo's policies in seconds. A flavor is only changed after the instance was ACTIVE for that long.
const cooldown = 5

// forgedID is the id of the forged message.
const forgedID = "f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0"

// scenario is the demo: what is done, in which order, and what is expected.
type scenario struct {
	narrator
	checklist checklist
	world     *world.World
	service   *world.Process
	plans     []plan
	dbs       []*world.DB
	before    []simcloud.Instance
}

// head says in its first lines what is real, what is embedded and what is simulated.
func (o worldOptions) head() string {
	kube := "Embedded:   the Kubernetes API, in memory: it checks neither rights nor schemas. KUBE=real runs kube-apiserver and etcd"
	if o.real {
		kube = "Real too:   kube-apiserver and etcd, and the service's own rights"
	}
	return fmt.Sprintf(`Real:       rds-autopilot as a process, HTTP, TLS, signed messages
%s
Simulated:  the cloud (IAM, SMN, Cloud Eye, RDS), where a minute takes a second, and the database operator
`, kube)
}

func demo(ctx context.Context, out *console, o worldOptions) (err error) {
	s := &scenario{narrator: newNarrator(out), plans: plans()}
	for _, p := range s.plans {
		s.names = append(s.names, p.Name)
	}
	s.names = append(s.names, aloneName)
	out.print("%s", o.head())
	out.print("Starting:   Kubernetes and the cloud … ")
	begun := time.Now()
	took := func() float64 {
		defer func() { begun = time.Now() }()
		return time.Since(begun).Seconds()
	}
	if s.world, err = world.Start(ctx, o.apply(s.options())); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	if o.binary == "" {
		out.print("%.0f s, compiling rds-autopilot … ", took())
		if err := s.world.Build(ctx); err != nil {
			return err
		}
	}
	out.print("%.0f s; from here on hours and minutes of the cloud\n", took())
	out.restart()
	limited, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	runErr := s.run(limited)
	s.endStories()
	if len(s.before) > 0 {
		s.print("\n%s", s.table(ctx))
	}
	count, missed := s.checklist.count, s.checklist.missed
	s.print("%d of %d as expected\n", count-len(missed), count)
	err = errors.Join(append(missed, runErr)...)
	if err == nil {
		s.print("%s", nextSteps)
	}
	return err
}

// nextSteps are the last lines of a demo in which everything happened as expected.
const nextSteps = `
Next
  make sandbox         keeps this world running and prints the address of the status page, and how you fill a disk
  docs/first-day.md    from an empty cluster to a watched database, one command at a time
  docs/which-way.md    databases of Terraform, of the cloud's console, or of an operator that does not work
`

// run goes through the scenario. Its error is why it could not go on; what was not as expected is in the checklist.
func (s *scenario) run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()

	if err := s.serve(ctx); err != nil {
		return err
	}
	for _, p := range s.plans {
		s.beginStory(p.Name, p.String())
		db, err := s.world.AddDatabase(ctx, p.Database)
		if err != nil {
			return err
		}
		s.dbs = append(s.dbs, db)
		watches.Go(func() { s.watch(watching, db, p.created()) })
	}
	if err := s.arm(ctx); err != nil {
		return err
	}
	if err := s.forge(ctx); err != nil {
		return err
	}
	for _, db := range s.dbs {
		s.before = append(s.before, db.Instance())
	}
	var alone sync.WaitGroup
	alone.Go(func() { s.alone(ctx) })
	s.each(func(_ int, db *world.DB, p plan) {
		s.overload(ctx, db, p)
		s.endStory(p.Name)
	})
	alone.Wait()
	for i, db := range s.dbs {
		s.checklist.add(db.Name+": changed once, and not by the message that the alarm is over", once(ctx, db, s.plans[i]))
	}
	stop()
	watches.Wait()
	s.checklist.add("rds-autopilot ends with exit code 0", s.service.Stop(ctx))
	return nil
}

func (s *scenario) serve(ctx context.Context) (err error) {
	if s.service, err = s.world.Serve(ctx, "--allow-apply", "Cloud", "--allowed-instances", "*/*"); err != nil {
		return err
	}
	s.print("  The page of the service, while this runs: %s/\n", s.service.AdminURL)
	_, err = s.service.WaitLine(ctx, "it leads", func(l world.Line) bool { return l.Msg == "leadership" })
	return err
}

// each does something with all databases at the same time.
func (s *scenario) each(do func(i int, db *world.DB, p plan)) {
	var wg sync.WaitGroup
	for i, db := range s.dbs {
		wg.Go(func() { do(i, db, s.plans[i]) })
	}
	wg.Wait()
}

// arm waits until alarms would come, and shortens what a demo cannot wait for. Without it nothing else makes sense.
func (s *scenario) arm(ctx context.Context) error {
	failed := make([]error, len(s.dbs))
	s.each(func(i int, db *world.DB, _ plan) {
		failed[i] = armed(ctx, db)
		s.checklist.add(db.Name+": armed by spec.autopilot: true", failed[i])
	})
	if errors.Join(failed...) != nil {
		return errors.New("without alarms nothing else can be shown")
	}
	for _, db := range s.dbs {
		if err := db.PatchAutopilot(ctx, fmt.Sprintf(`{"spec":{"flavor":{"cooldownSeconds":%d}}}`, cooldown)); err != nil {
			return err
		}
	}
	return nil
}

// forge posts a message that was changed after it was signed.
func (s *scenario) forge(ctx context.Context) error {
	db := s.dbs[0]
	rule, _ := db.Rule(v1alpha1.MetricStorage) // an armed database has one
	body, err := s.world.Cloud.SignedAlarm(forgedID, s.world.TopicURN(), rule.ID, 75)
	if err != nil {
		return err
	}
	s.printStep(actorStranger, db.Name, "posts message %s, made to say 99 %% after it was signed", short(forgedID))
	status, _, err := s.world.Post(ctx, bytes.ReplaceAll(body, []byte("75.00%"), []byte("99.00%")))
	if err == nil && status != http.StatusForbidden {
		err = fmt.Errorf("the answer is %d", status)
	}
	s.checklist.add("the forged message is answered with 403", err)
	return nil
}

// overload lets one database run full and follows it until its alarm is over.
func (s *scenario) overload(ctx context.Context, db *world.DB, p plan) {
	err := s.work(ctx, db, p)
	for _, step := range []struct {
		what  string
		check func(context.Context, *world.DB, plan) error
	}{
		{"the alarm leads to a patch of the Rds", asked},
		{"the operator applies it", applied},
		{"the alarm is over", cleared},
	} {
		if err == nil { // the next step would only fail in the same way, later
			err = step.check(ctx, db, p)
		}
		s.checklist.add(p.Name+": "+step.what, err)
	}
}

// work brings the workload up, over three minutes of the cloud.
func (s *scenario) work(ctx context.Context, db *world.DB, p plan) error {
	at, to, in := p.Workload, p.load, db.Instance()
	s.printStep(actorWorkload, p.Name, "grows: %s %.0f %% → %.0f %%", p.metric, used(p.metric, at, in), used(p.metric, to, in))
	const steps = 3
	tick := time.NewTicker(s.world.Span(time.Minute))
	defer tick.Stop()
	for step := 1; step <= steps; step++ {
		part := float64(step) / steps
		load := simcloud.Workload{
			UsedGB:         at.UsedGB + part*(to.UsedGB-at.UsedGB),
			CPUDemand:      at.CPUDemand + part*(to.CPUDemand-at.CPUDemand),
			MemoryDemandGB: at.MemoryDemandGB + part*(to.MemoryDemandGB-at.MemoryDemandGB),
		}
		if err := db.SetWorkload(load); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// table returns a table of the databases before and after, with the same load.
func (s *scenario) table(ctx context.Context) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DATABASE\tVOLUME\tFLAVOR\tUSED\tCHANGES")
	for i, db := range s.dbs {
		p, was, is := s.plans[i], s.before[i], db.Instance()
		changes := "?"
		if a, err := db.Autopilot(ctx); err == nil {
			changes = strconv.Itoa(len(a.Status.Changes))
		}
		fmt.Fprintf(w, "%s\t%s GB\t%s\t%s %.0f → %.0f %%\t%s\n", p.Name, step(strconv.Itoa(was.VolumeGB), strconv.Itoa(is.VolumeGB)), step(was.Flavor, is.Flavor),
			p.metric, used(p.metric, p.load, was), used(p.metric, p.load, is), changes)
	}
	_ = w.Flush() // of a builder
	return text.String()
}

func step(from, to string) string {
	if from == to {
		return to
	}
	return from + " → " + to
}
