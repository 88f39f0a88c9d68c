// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	outage     = 20 * time.Second // of the API server
	mostEvents = 10               // on the page
	firstGrow  = 0.2              // GB per minute of the cloud, of the database that runs out of storage
)

// controls let people change a world: the load of databases, faults of the cloud, replicas of the service.
type controls struct {
	narrator
	replicas *replicas
	world    *world.World
	now      func() time.Time

	mu       sync.Mutex
	dbs      []*controlled
	dropping bool // every notification
	paused   bool // the operator
	away     *time.Timer
	soldOut  map[offer]bool
	events   []event // what was done, newest first
}

// controlled is a database, and how fast it fills up.
type controlled struct {
	*world.DB
	title       string
	growPerTick float64 // GB per minute of the cloud
}

// offer is a flavor in a zone.
type offer struct{ Flavor, Zone string }

// event is a change that a person made with the controls.
type event struct{ At, Text string }

func (c *controls) add(db *world.DB, p plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	grow := 0.0
	if p.metric == v1alpha1.MetricStorage {
		grow = firstGrow
	}
	c.dbs = append(c.dbs, &controlled{db, p.title, grow})
}

func (c *controls) find(name string) (*controlled, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.dbs, func(d *controlled) bool { return d.Name == name }); i >= 0 {
		return c.dbs[i], nil
	}
	return nil, fmt.Errorf("there is no database %q", name)
}

// keepGrowing fills the disks, each minute of the cloud.
func (c *controls) keepGrowing(ctx context.Context) {
	tick := time.NewTicker(c.world.Span(time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.mu.Lock()
		for _, d := range c.dbs {
			if in := d.Instance(); d.growPerTick != 0 {
				in.Workload.UsedGB = max(0, min(in.Workload.UsedGB+d.growPerTick, float64(in.VolumeGB)))
				_ = d.SetWorkload(in.Workload) // an instance that is gone stays as it is
			}
		}
		c.mu.Unlock()
	}
}

// load is what a database has to bear, in percent of what it has now.
type load struct{ usedGB, growPerMinute, cpu, memory float64 }

func (c *controls) setLoad(name string, to load) error {
	d, err := c.find(name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	in := d.Instance()
	d.growPerTick = to.growPerMinute
	return d.SetWorkload(simcloud.Workload{
		UsedGB: min(to.usedGB, float64(in.VolumeGB)), CPUDemand: to.cpu / 100 * float64(in.VCPUs), MemoryDemandGB: to.memory / 100 * float64(in.MemoryGB),
	})
}

// loses reports whether a message is to be lost.
func (c *controls) loses(d simcloud.Delivery) bool {
	c.mu.Lock()
	lost := c.dropping && d.Type == simcloud.TypeNotification
	c.mu.Unlock()
	if lost {
		c.printStep(actorSMN, c.about(d), "loses message %s", short(d.MessageID))
	}
	return lost
}

// do makes a change, prints its result and keeps it for the page.
func (c *controls) do(change func() (string, error)) {
	text, err := change()
	if err != nil {
		text = "This did not work: " + err.Error()
	}
	c.printStep(actorPerson, "", "%s", text)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = slices.Insert(c.events, 0, event{c.now().UTC().Format("15:04:05"), text})
	c.events = c.events[:min(len(c.events), mostEvents)]
}

func (c *controls) dropMessages(drop bool) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropping = drop; drop {
		return "SMN loses every notification from now on; the sweep still reads the used space", nil
	}
	return "SMN delivers notifications again", nil
}

func (c *controls) sell(o offer, out bool) (string, error) {
	status, text := simcloud.FlavorNormal, "can be had again"
	if out {
		status, text = simcloud.FlavorSoldOut, "is sold out"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.world.Cloud.FlavorCodes(), o.Flavor) || !slices.Contains(c.world.Cloud.Zones(), o.Zone) {
		return "", fmt.Errorf("there is no flavor %q in a zone %q", o.Flavor, o.Zone)
	}
	c.world.Cloud.SetFlavorStatus(o.Flavor, o.Zone, status)
	if c.soldOut[o] = true; !out {
		delete(c.soldOut, o)
	}
	return fmt.Sprintf("%s %s in %s", o.Flavor, text, o.Zone), nil
}

func (c *controls) stopOperator(stop bool) (string, error) {
	c.mu.Lock()
	c.paused = stop
	c.mu.Unlock()
	if stop {
		c.world.Operator.Pause()
		return "The operator stands still: what the Rds asks for is not applied", nil
	}
	c.world.Operator.Resume()
	return "The operator works again", nil
}

// stopAPIServer takes it away for a while.
func (c *controls) stopAPIServer() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil {
		return "", errors.New("the API server is away already")
	}
	if err := c.world.Kube.PauseAPIServer(); err != nil {
		return "", err
	}
	c.away = time.AfterFunc(outage, c.resumeAPIServer)
	return fmt.Sprintf("The API server is away for %.0f seconds: notifications are answered with 503, and SMN sends them again", outage.Seconds()), nil
}

func (c *controls) resumeAPIServer() {
	c.do(func() (string, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.away = nil
		return "The API server is back", c.world.Kube.ResumeAPIServer()
	})
}

// undo lets everything go on, so that it can end.
func (c *controls) undo() {
	c.mu.Lock()
	away := c.away != nil && c.away.Stop()
	c.away = nil
	c.mu.Unlock()
	if away {
		_ = c.world.Kube.ResumeAPIServer() // it is killed next, if need be
	}
	c.world.Operator.Resume()
}

// forge posts a message that was changed after it was signed.
func (c *controls) forge(ctx context.Context, name string) (string, error) {
	d, err := c.find(name)
	if err != nil {
		return "", err
	}
	id, body, err := forged(c.world, d.DB)
	if err != nil {
		return "", err
	}
	status, _, err := c.world.Post(ctx, body)
	return fmt.Sprintf("A message about %s, changed after it was signed (%s), was answered with %d", name, short(id), status), err
}

func (c *controls) killLeader() (string, error) {
	return "The leader was killed; another replica takes over within 20 seconds", c.replicas.killLeader()
}

// flavorsFor are the codes of the family and mode that a flavor has, such as rds.mysql.n1 and ha.
func flavorsFor(codes []string, flavor string) []string {
	family := strings.Join(strings.SplitN(flavor, ".", 4)[:3], ".") + "."
	return slices.DeleteFunc(slices.Clone(codes), func(code string) bool {
		return !strings.HasPrefix(code, family) || strings.HasSuffix(code, ".ha") != strings.HasSuffix(flavor, ".ha") || strings.HasSuffix(code, ".rr")
	})
}
