// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

func TestDoctorNamesTheProblemAndTheNextStep(t *testing.T) {
	env := func(key, value string) func(*fleet, *doctor.Options) {
		return func(f *fleet, o *doctor.Options) {
			was := f.env()
			o.Env = func(k string) string {
				if k == key {
					return value
				}
				return was(k)
			}
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*fleet, *doctor.Options)
		check  string
		state  doctor.State
		text   string // a part of what it reports
		do     string // a part of the next step
	}{
		{"wrong password", env("OS_PASSWORD", "wrong"), "credentials", doctor.Failed, "refused the credentials",
			"Check user, password"},
		{"agency", env("OS_AGENCY_NAME", "other"), "credentials", doctor.Failed, "OS_AGENCY_NAME is not supported",
			"Correct the setting"},
		{"wrong region", env("OS_REGION_NAME", "eu-xx"), "credentials", doctor.Failed, "region eu-xx", "Set OS_REGION_NAME"},
		{"quota of rules reached", func(f *fleet, _ *doctor.Options) {
			f.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 3 })
		}, "quotas", doctor.Failed, "3 of 3", "higher quota"},
		{"quota of topics reached", func(f *fleet, _ *doctor.Options) {
			f.sim.Configure(func(s *simcloud.Settings) { s.TopicQuota = 1 })
		}, "topic", doctor.Failed, "SMN.0004", "higher quota"},
		{"private URL", func(f *fleet, o *doctor.Options) {
			f.sim.Configure(func(s *simcloud.Settings) { s.RefusePrivateEndpoints = true })
			o.PublicURL = &url.URL{Scheme: "https", Host: "10.1.2.3", Path: "/smn"}
		}, "subscription", doctor.Failed, "SMN.0069", "public addresses only"},
		{"name with a private address", func(_ *fleet, o *doctor.Options) {
			o.LookUp = resolvesTo("192.168.1.1")
		}, "public-url", doctor.Warning, "192.168.1.1, which is private", "public addresses only"},
		{"unknown name", func(_ *fleet, o *doctor.Options) {
			o.LookUp = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
		}, "public-url", doctor.Failed, "no such host", "DNS record"},
		{"full disk", func(f *fleet, o *doctor.Options) {
			f.withListen(o)
			o.Keep = func(string, []byte) error { return errors.New("no space left on device") }
		}, "capture", doctor.Failed, "no space left", "a directory with free space"},
		{"wrong path", func(_ *fleet, o *doctor.Options) {
			public := *o.PublicURL
			public.Path, o.PublicURL = "/other", &public
		}, "public-url-answer", doctor.Failed, "404", "the path of --public-url"},
		{"no service", func(f *fleet, _ *doctor.Options) { f.receive.Store(nil) }, "subscription", doctor.Failed,
			"No confirmation was accepted", "Its log has a line for each message"},
		{"clock ten minutes ahead", func(_ *fleet, o *doctor.Options) {
			o.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
		}, "clock", doctor.Failed, "10m0s ahead of the cloud's", "NTP"},
		{"clock ten minutes behind", func(_ *fleet, o *doctor.Options) {
			o.Now = func() time.Time { return time.Now().Add(-10 * time.Minute) }
		}, "clock", doctor.Failed, "behind the cloud's", "NTP"},
		{"unknown database", func(_ *fleet, o *doctor.Options) { o.Name = "other" }, "database", doctor.Failed,
			"There is no Rds default/other", "kubectl get rdss"},
		{"missing CRD", func(f *fleet, o *doctor.Options) {
			kube, err := simkube.New(simkube.Options{CRDs: crds[:1], Seed: "x"})
			f.must(err)
			o.Kube = kube.Config()
		}, "kubernetes", doctor.Failed, "rdsautopilots.autopilot.otc.mcsps.de is not installed",
			"kubectl apply -f deploy/crds"},
		{"no kubeconfig", func(_ *fleet, o *doctor.Options) { o.Kube, o.KubeErr = nil, errors.New("no kubeconfig") },
			"kubernetes", doctor.Failed, "no kubeconfig", "--kubeconfig"},
		{"no leader", func(*fleet, *doctor.Options) {}, "lease", doctor.Warning,
			"no service with leader election has run here yet", "--leader-elect=false"},
		{"no leader election", func(_ *fleet, o *doctor.Options) { o.LeaderElect = false }, "lease", doctor.OK,
			"--leader-elect is false", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f := newArmedFleet(t)
				results := f.runDoctor(t.Context(), "db", func(o *doctor.Options) { tc.change(f, o) })
				r := results[tc.check]
				if r.State != tc.state || !strings.Contains(r.Text, tc.text) || !strings.Contains(r.Do, tc.do) ||
					strings.Contains(r.Text+r.Do, "\n") {
					t.Errorf("%+v", r)
				}
				f.checkDoctorLeftNothing()
			})
		})
	}
}

// The check that needs a missing right names it.
func TestDoctorNamesTheMissingRight(t *testing.T) {
	rights := map[string]string{ // the simulated cloud's name of an operation, and ours
		"ListInstances": "ListInstances", "ShowAutoScale": "GetStoragePolicy", "ListFlavors": "ListFlavors",
		"ListResizeFlavors": "ListResizeTargets", "ListAlarms": "ListRules", "ShowAlarm": "GetRule",
		"CreateAlarm": "CreateRule", "UpdateAlarm": "ModifyRule", "SwitchAlarm": "EnableRule",
		"DeleteAlarm": "DeleteRule", "ListMetrics": "ListMetrics", "BatchMetricData": "QueryMetricData",
		"ShowQuotas": "GetQuotas", "ListTopics": "ListTopics", "ShowTopic": "GetTopic", "CreateTopic": "CreateTopic",
		"UpdateTopic": "UpdateTopic", "DeleteTopic": "DeleteTopic", "ListSubscriptions": "ListSubscriptions",
		"ListTopicSubscriptions": "ListTopicSubscriptions", "Subscribe": "Subscribe",
		"DeleteSubscription": "Unsubscribe", "EnlargeVolume": "EnlargeVolume", "ResizeFlavor": "ResizeFlavor",
	}
	if want := len(otc.Rights()) - len([]string{"Login", "GetJob"}); len(rights) != want {
		t.Errorf("%d operations are refused one by one, want %d", len(rights), want)
	}
	for theirs, ours := range rights {
		t.Run(ours, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f, right := newArmedFleet(t), otc.Rights()[ours]
				const body = `{"error_code":"IAM.0001","error_msg":"Access denied"}`
				clear := f.setFault(faultOf(simcloud.Fault{Status: http.StatusForbidden, Body: body}, theirs))
				failures := ""
				f.runDoctor(t.Context(), "db", func(o *doctor.Options) {
					withApplyCloud(o)
					report := o.Report
					o.Report = func(r doctor.Result) {
						if r.State == doctor.Failed {
							failures += fmt.Sprintf("%+v\n", r)
						}
						report(r)
					}
				})
				has := func(text string) bool { return strings.Contains(failures, text) }
				hasNextStep := has("policy-read-only.json") || has("Run doctor again")
				if right == "" && ours != "ListFlavors" || !has(ours) || !has(right) || !hasNextStep {
					t.Errorf("without %s, which needs the right %q, doctor reports %s", ours, right, failures)
				}
				clear()
				time.Sleep(afterEveryRun)
				f.runDoctor(t.Context(), "", nil) // removes what the first run could not remove
				f.checkDoctorLeftNothing()
			})
		})
	}
}

// Doctor prints a line at least every half minute, even while it waits for a message that never comes.
func TestDoctorReportsProgressEveryHalfMinute(t *testing.T) {
	for _, differs := range []string{"none", "rule-raw", "metric-delay"} {
		t.Run(differs, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f := newArmedFleet(t)
				if differ := simcloud.Differences()[differs]; differ != nil {
					f.sim.Configure(differ)
				}
				last := time.Now()
				line := func(text string) {
					if silent := time.Since(last); silent > 30*time.Second {
						t.Errorf("no line for %s, then %q", silent, text)
					}
					last = time.Now()
				}
				f.runDoctor(t.Context(), "db", func(o *doctor.Options) {
					report := o.Report
					o.Report = func(r doctor.Result) { line(r.Text); report(r) }
					o.Progress = line
				})
				f.checkDoctorLeftNothing()
			})
		})
	}
}

// afterEveryRun is when a run has certainly ended, so that the next one removes what it has left.
const afterEveryRun = 90 * time.Minute

// killed lets most writes through, and then no request. The last write is applied without its reply if most is even.
type killed struct {
	next   http.RoundTripper
	writes *atomic.Int64
	most   int64
}

func (k killed) RoundTrip(r *http.Request) (*http.Response, error) {
	path := r.URL.Path
	isRead := r.Method == http.MethodGet || strings.Contains(path, "auth/tokens") || strings.Contains(path, "batch-query")
	switch {
	case k.writes.Load() > k.most:
		return nil, errors.New("killed")
	case !isRead && k.writes.Add(1) > k.most:
		if k.most%2 == 0 {
			if resp, err := k.next.RoundTrip(r); err == nil {
				_ = resp.Body.Close()
			}
		}
		return nil, errors.New("killed")
	}
	return k.next.RoundTrip(r)
}

func TestDoctorRemovesLeftoversOfAKilledRun(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newArmedFleet(t)
		leftovers := 0
		for most := int64(0); ; most++ {
			writes := &atomic.Int64{}
			f.runDoctor(t.Context(), "db", func(o *doctor.Options) {
				o.Transport = killed{f.sim, writes, most}
				o.Kube = rest.CopyConfig(o.Kube)
				o.Kube.Transport = killed{f.kube, writes, most}
				o.Wait = 2 * time.Minute
			})
			if len(f.sim.Topics()) > 1 || len(f.sim.Rules()) > 3 || len(f.autopilots()) > 1 {
				leftovers++
			}
			time.Sleep(afterEveryRun)
			f.runDoctor(t.Context(), "", func(o *doctor.Options) { o.Wait = 2 * time.Minute })
			f.checkDoctorLeftNothing()
			if t.Failed() {
				t.Fatalf("killed at write %d", most)
			}
			if writes.Load() <= most { // it was not killed
				if most < 12 || leftovers < 8 {
					t.Errorf("%d writes, after %d of which an object was left", most, leftovers)
				}
				break
			}
		}
		f.checkAlarms(f.waitArmed("default", "db"))
	})
}

func TestDoctorCleansUpWhenInterrupted(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newArmedFleet(t)
		for _, seconds := range []time.Duration{1, 7, 15, 30, 60, 90} {
			after := seconds * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), after)
			results := f.runDoctor(ctx, "db", nil)
			cancel()
			if results["interrupted"].State != doctor.Failed {
				t.Errorf("after %s: %v", after, results)
			}
			f.checkDoctorLeftNothing()
		}
	})
}

// action is a request that would change an instance.
type action struct {
	instance string
	Enlarge  *struct {
		Size int `json:"size"`
	} `json:"enlarge_volume"`
}

// recordActions returns a function that returns the requests so far that would change an instance. If accept is not
// nil, the cloud answers them with it.
func (f *fleet) recordActions(accept *simcloud.Fault) func() []action {
	var mu sync.Mutex
	var all []action
	f.setFault(func(r *http.Request) *simcloud.Fault {
		path, isAction := strings.CutSuffix(r.URL.Path, "/action")
		if !isAction || !strings.Contains(path, "/instances/") {
			return nil
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		a := action{instance: path[strings.LastIndex(path, "/")+1:]}
		_ = json.Unmarshal(body, &a)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, a)
		return accept
	})
	return func() []action {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// A size is invalid whether the cloud reads it as the new size or as an increment: it is below the smallest of both.
func TestDoctorTriesImpossibleChangesOfTheNamedInstanceOnly(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newArmedFleet(t)
		named := f.database("default", "second", instance(twoVCPUs, 100, 40))
		time.Sleep(20 * time.Minute)
		actions := f.recordActions(nil)
		if r := f.runDoctor(t.Context(), "second", withApplyCloud)["rights-change"]; r.State != doctor.OK {
			t.Errorf("%+v", r)
		}
		if len(actions()) != 2 {
			t.Errorf("%d requests, want one for each right", len(actions()))
		}
		for _, a := range actions() {
			if a.instance != named.ID || a.Enlarge != nil && (a.Enlarge.Size > 0 || a.Enlarge.Size%10 == 0) {
				t.Errorf("doctor requests %+v, want impossible changes of %s", a, named.ID)
			}
		}
		f.runDoctor(t.Context(), "", withApplyCloud)
		f.runDoctor(t.Context(), "second", nil)
		if len(actions()) != 2 {
			t.Errorf("without a name, or without --allow-apply=Cloud, doctor requests %+v", actions()[2:])
		}
	})
}

func TestDoctorFailsIfTheCloudAcceptsAnImpossibleChange(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newArmedFleet(t)
		actions := f.recordActions(&simcloud.Fault{Status: http.StatusAccepted, Body: `{"job_id":"job-of-a-surprise"}`})
		r := f.runDoctor(t.Context(), "db", withApplyCloud)["rights-change"]
		if r.State != doctor.Failed || !strings.Contains(r.Do, "console") ||
			!strings.Contains(r.Text, "job-of-a-surprise") || !strings.Contains(r.Text, "size -1 GB") {
			t.Errorf("%+v", r)
		}
		if len(actions()) != 1 {
			t.Errorf("%d requests, want none after the first that the cloud accepts", len(actions()))
		}
	})
}

// Two people run doctor in one project, the second during the first one's run.
func TestTwoDoctorsInOneProjectDoNotRemoveEachOthersObjects(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newArmedFleet(t)
		for _, delay := range []time.Duration{5 * time.Second, 20 * time.Second, time.Minute} {
			var first, second map[string]doctor.Result
			var running sync.WaitGroup
			running.Go(func() { first = f.runDoctor(t.Context(), "db", nil) })
			time.Sleep(delay)
			running.Go(func() { second = f.runDoctor(t.Context(), "db", nil) })
			running.Wait()
			for _, results := range []map[string]doctor.Result{first, second} {
				if failed := checksIn(results, doctor.Failed); len(failed) > 0 {
					t.Errorf("after %s: %v: %+v", delay, failed, results[failed[0]])
				}
			}
			r := second["leftovers"]
			isWarned := r.State == doctor.Warning && strings.Contains(r.Do, "If nobody else runs doctor")
			if delay > 10*time.Second && !isWarned {
				t.Errorf("the second run reports %+v", r)
			}
			f.checkDoctorLeftNothing()
		}
	})
}
