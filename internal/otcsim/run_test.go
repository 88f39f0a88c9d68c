// SPDX-License-Identifier: Apache-2.0

package otcsim

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"
)

// The whole chain on the wall clock: a subscription confirmed by its link, an alarm, growth, the recovery.
func TestRunDeliversAlarmsAsTimePasses(t *testing.T) {
	delivered := make(chan Delivery, 100)
	w := start(t, Options{Now: time.Now, Speed: 6000, OnDelivery: func(d Delivery) { delivered <- d }})
	e := receive(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	next := func() Envelope {
		t.Helper()
		select {
		case d := <-delivered:
			var env Envelope
			if err := json.Unmarshal(d.Body, &env); err != nil || d.State != Delivered {
				t.Fatal(err, d.State)
			}
			return env
		case <-time.After(time.Minute):
			t.Fatal("nothing was delivered")
			return Envelope{}
		}
	}
	topic := w.newTopic("a")
	w.newSubscription(topic, e.URL)
	if status, _ := w.get(next().SubscribeURL); status != 200 {
		t.Fatal(status)
	}
	in := w.newInstance("rds.mysql.c2.medium", 40, Workload{UsedGB: 34})
	w.watch(in, "rds039_disk_util", topic, condition(1, 5, 0, 75))
	if m := decodeAlarm(t, next()); m.AlarmStatus != StateAlarm || time.Since(time.UnixMilli(m.Time)) > time.Minute {
		t.Error(m.AlarmStatus, time.UnixMilli(m.Time))
	}
	w.act(202, in, enlarge(60))
	if m := decodeAlarm(t, next()); m.AlarmStatus != StateOK {
		t.Error(m.AlarmStatus)
	}
	cancel()
	<-done
}

func TestRunEndsWithTheCloud(t *testing.T) {
	c, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(t.Context())
	}()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	<-done
	if _, err := Start(Options{Speed: -1}); err == nil {
		t.Error("a negative speed is accepted")
	}
}

// Everything at once, for the race detector: rules fire together while clients read and write.
func TestManyAlarmsAndClientsAtOnce(t *testing.T) {
	const n = 60
	delivered := make(chan struct{}, 10*n)
	w := start(t, Options{Now: time.Now, Speed: 6000, OnDelivery: func(d Delivery) {
		if d.Type == TypeNotification && d.State == Delivered {
			delivered <- struct{}{}
		}
	}})
	e := receive(t)
	topic := w.subscribed(e)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	var clients sync.WaitGroup
	for i := range n {
		in := w.newInstance("rds.mysql.c2.medium", 40, Workload{})
		w.watch(in, "rds001_cpu_util", topic, condition(1, 2, 0, 90))
		clients.Go(func() {
			if err := w.SetWorkload(in.ID, Workload{CPUDemand: 2}); err != nil {
				t.Error(err)
			}
			for range 5 {
				if res, _ := w.loginAs("wrong"); res.StatusCode != http.StatusUnauthorized {
					t.Error(res.StatusCode)
				}
				_, _, _ = w.Rules(), w.Deliveries(), w.Requests()
			}
			_ = w.Sign(Envelope{Message: "x"})
			w.Configure(func(s *Settings) { s.RuleQuota = 1000 + i })
		})
	}
	clients.Wait()
	for range n {
		select {
		case <-delivered:
		case <-time.After(time.Minute):
			t.Fatal("not all alarms were delivered")
		}
	}
	cancel()
	running.Wait()
	if got := len(e.messages()); got != n {
		t.Errorf("%d messages for %d alarms", got, n)
	}
}
