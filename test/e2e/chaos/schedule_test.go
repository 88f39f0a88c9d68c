// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world/faults"
)

// event is one fault or change of the storm.
type event struct {
	at    time.Duration // since the beginning
	do    func(*chaos, context.Context, event)
	which int
	lasts time.Duration
	share float64
}

// schedule returns the events of a seed, in the order of their times.
func schedule(seed uint64, lasts time.Duration) (events []event) {
	random := rand.New(rand.NewPCG(seed, 2))
	kinds := []struct {
		weight int
		most   time.Duration // that it lasts
		do     func(*chaos, context.Context, event)
	}{
		{14, 3 * time.Second, (*chaos).kill},
		{10, 3 * time.Second, (*chaos).terminate},
		{4, 3 * time.Second, (*chaos).killAll},
		{6, 12 * time.Second, (*chaos).pauseAPIServer},
		{5, 6 * time.Second, (*chaos).killAPIServer},
		{14, 8 * time.Second, (*chaos).cloudFaults},
		{4, 4 * time.Second, (*chaos).cloudAway},
		{18, 8 * time.Second, (*chaos).kubeFaults},
		{12, 12 * time.Second, (*chaos).deliveryFaults},
		{8, 12 * time.Second, (*chaos).operatorBusy},
		{4, 6 * time.Second, (*chaos).jobsFail},
		{3, 0, (*chaos).expireTokensAndRotateKey},
		{8, 0, (*chaos).removeCloudObject},
	}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for at := time.Duration(0); ; {
		at += 300*time.Millisecond + time.Duration(random.Int64N(int64(2*time.Second)))
		e := event{at: at, which: random.IntN(1000), share: 0.1 + 0.4*random.Float64()}
		pick, length := random.IntN(total), random.Float64()
		for _, k := range kinds {
			if pick -= k.weight; pick < 0 {
				e.do, e.lasts = k.do, time.Duration(length*float64(k.most))
				break
			}
		}
		if at >= lasts {
			return events
		}
		events = append(events, e)
	}
}

// wait returns after d, or earlier if the storm ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (c *chaos) kill(ctx context.Context, e event) {
	s := &c.slots[e.which%replicas]
	s.Lock()
	defer s.Unlock()
	_ = s.process.Kill() // never fails
	wait(ctx, e.lasts)
	c.replace(s)
}

func (c *chaos) terminate(ctx context.Context, e event) {
	s := &c.slots[e.which%replicas]
	s.Lock()
	defer s.Unlock()
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		c.t.Errorf("SIGTERM: %v", err)
	}
	if code, err := s.process.Wait(ended); err != nil || code != 0 {
		c.t.Errorf("after SIGTERM: exit code %d, %v", code, err)
		c.t.Log(s.process.Lines())
		_ = s.process.Kill() // never fails
	}
	wait(ctx, e.lasts)
	c.replace(s)
}

func (c *chaos) killAll(ctx context.Context, e event) {
	for i := range c.slots {
		c.running.Go(func() { c.kill(ctx, event{which: i, lasts: e.lasts}) })
	}
}

// replace starts another process. It retries, because a process does not start without an API server.
func (c *chaos) replace(s *slot) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), settleLimit)
	defer cancel()
	var errs []error
	for ctx.Err() == nil {
		p, err := c.Serve(ctx, flags()...)
		if err == nil {
			s.process = p
			return
		}
		errs = append(errs, err)
		wait(ctx, 200*time.Millisecond)
	}
	c.t.Errorf("the service does not start any more: %v", errors.Join(errs...))
}

// pauseAPIServer stops the API server: connections stay open, and it answers nothing.
func (c *chaos) pauseAPIServer(ctx context.Context, e event) {
	c.apiServer.Lock()
	defer c.apiServer.Unlock()
	if err := c.Kube.PauseAPIServer(); err != nil {
		c.t.Error(err)
	}
	wait(ctx, e.lasts)
	if err := c.Kube.ResumeAPIServer(); err != nil {
		c.t.Error(err)
	}
}

// killAPIServer kills the API server and starts it again.
func (c *chaos) killAPIServer(ctx context.Context, e event) {
	c.apiServer.Lock()
	defer c.apiServer.Unlock()
	if err := c.Kube.KillAPIServer(); err != nil {
		c.t.Error(err)
	}
	wait(ctx, e.lasts)
	if err := c.Kube.RestartAPIServer(context.WithoutCancel(ctx)); err != nil {
		c.t.Error(err)
	}
}

func (c *chaos) cloudFaults(ctx context.Context, e event) { during(ctx, c.cloud, e.share, e.lasts) }

func (c *chaos) cloudAway(ctx context.Context, e event) { during(ctx, c.cloud, 1, e.lasts) }

func (c *chaos) kubeFaults(ctx context.Context, e event) { during(ctx, c.kube, e.share, e.lasts) }

func (c *chaos) deliveryFaults(ctx context.Context, e event) { during(ctx, c.mail, 2*e.share, e.lasts) }

func during(ctx context.Context, d *faults.Random, share float64, lasts time.Duration) {
	d.Set(share)
	wait(ctx, lasts)
	d.Set(0)
}

// operatorBusy pauses the operator. Afterwards it applies all queued snapshots, the oldest first.
func (c *chaos) operatorBusy(ctx context.Context, e event) {
	c.operator.Lock()
	defer c.operator.Unlock()
	c.Operator.Pause()
	wait(ctx, e.lasts)
	c.Operator.Resume()
}

func (c *chaos) jobsFail(ctx context.Context, e event) {
	c.Cloud.Configure(func(s *simcloud.Settings) { s.JobsFail = true })
	wait(ctx, e.lasts)
	c.Cloud.Configure(func(s *simcloud.Settings) { s.JobsFail = false })
}

// expireTokensAndRotateKey ends all tokens and replaces the signing certificate.
func (c *chaos) expireTokensAndRotateKey(_ context.Context, _ event) {
	c.Cloud.ExpireTokens()
	if err := c.Cloud.RotateSigningKey(); err != nil {
		c.t.Error(err)
	}
}

// removeCloudObject deletes a rule, subscription or topic, as a person in the cloud's console would.
func (c *chaos) removeCloudObject(_ context.Context, e event) {
	switch e.which % 3 {
	case 0:
		if all := c.Cloud.Rules(); len(all) > 0 {
			c.Cloud.RemoveRule(all[e.which%len(all)].ID)
		}
	case 1:
		if all := c.Cloud.Subscriptions(); len(all) > 0 {
			c.Cloud.RemoveSubscription(all[e.which%len(all)].URN)
		}
	case 2:
		if all := c.Cloud.Topics(); len(all) > 0 {
			c.Cloud.RemoveTopic(all[e.which%len(all)].URN)
		}
	}
}
