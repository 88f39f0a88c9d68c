// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
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

// patient is a cluster with one database that is armed.
func patient(t *testing.T) (f *fleet, ended func()) {
	t.Helper()
	f = newFleet(t, simcloud.Settings{})
	f.runCloud()
	s := f.start(flags{sweep: 2 * time.Minute})
	f.database("default", "db", simcloud.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40}})
	time.Sleep(20 * time.Minute)
	return f, s.stop
}

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
		says   string // in the text
		do     string
	}{
		{"a wrong password", env("OS_PASSWORD", "wrong"), "credentials", doctor.Failed, "refused the credentials", "Check user, password"},
		{"an agency, which is not supported", env("OS_AGENCY_NAME", "other"), "credentials", doctor.Failed, "OS_AGENCY_NAME is not supported", "Correct the setting"},
		{"a wrong region", env("OS_REGION_NAME", "eu-xx"), "credentials", doctor.Failed, "region eu-xx", "Set OS_REGION_NAME"},
		{"no room for rules", func(f *fleet, _ *doctor.Options) {
			f.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 3 })
		}, "quotas", doctor.Failed, "3 of 3", "higher quota"},
		{"no room for topics", func(f *fleet, _ *doctor.Options) {
			f.sim.Configure(func(s *simcloud.Settings) { s.TopicQuota = 1 })
		}, "topic", doctor.Failed, "SMN.0004", "higher quota"},
		{"a private URL", func(f *fleet, o *doctor.Options) {
			f.sim.Configure(func(s *simcloud.Settings) { s.RefusePrivateEndpoints = true })
			o.PublicURL = &url.URL{Scheme: "https", Host: "10.1.2.3", Path: "/smn"}
		}, "subscription", doctor.Failed, "SMN.0069", "public addresses only"},
		{"a name that is private from here", func(_ *fleet, o *doctor.Options) {
			o.LookUp = func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("192.168.1.1")}, nil
			}
		}, "public-url", doctor.Warning, "192.168.1.1, which is private", "public addresses only"},
		{"a name that is nobody's", func(_ *fleet, o *doctor.Options) {
			o.LookUp = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
		}, "public-url", doctor.Failed, "no such host", "DNS record"},
		{"no room for messages that are kept", func(f *fleet, o *doctor.Options) {
			f.listening(o)
			o.Keep = func(string, []byte) error { return errors.New("no space left on device") }
		}, "capture", doctor.Failed, "no space left", "a directory with free space"},
		{"another path", func(_ *fleet, o *doctor.Options) {
			public := *o.PublicURL
			public.Path, o.PublicURL = "/other", &public
		}, "public-url-answer", doctor.Failed, "404", "the path of --public-url"},
		{"no service", func(f *fleet, _ *doctor.Options) { f.receive.Store(nil) }, "subscription", doctor.Failed, "No confirmation was accepted", "Its log has a line for each message"},
		{"a clock ten minutes ahead", func(_ *fleet, o *doctor.Options) {
			o.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
		}, "clock", doctor.Failed, "10m0s ahead of the cloud's", "NTP"},
		{"a clock ten minutes behind", func(_ *fleet, o *doctor.Options) {
			o.Now = func() time.Time { return time.Now().Add(-10 * time.Minute) }
		}, "clock", doctor.Failed, "behind the cloud's", "NTP"},
		{"no such database", func(_ *fleet, o *doctor.Options) { o.Name = "other" }, "database", doctor.Failed, "There is no Rds default/other", "kubectl get rdss"},
		{"a CRD is missing", func(f *fleet, o *doctor.Options) {
			kube, err := simkube.New(simkube.Options{CRDs: crds[:1], Seed: "x"})
			f.must(err)
			o.Kube = kube.Config()
		}, "kubernetes", doctor.Failed, "rdsautopilots.autopilot.otc.mcsps.de is not installed", "kubectl apply -f deploy/crds"},
		{"no cluster", func(_ *fleet, o *doctor.Options) { o.Kube, o.KubeErr = nil, errors.New("no kubeconfig") }, "kubernetes", doctor.Failed, "no kubeconfig", "--kubeconfig"},
		{"nobody leads", func(*fleet, *doctor.Options) {}, "lease", doctor.Warning, "no service with leader election has run here yet", "--leader-elect=false"},
		{"nobody is elected", func(_ *fleet, o *doctor.Options) { o.LeaderElect = false }, "lease", doctor.OK, "--leader-elect is false", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f, ended := patient(t)
				defer ended()
				found := f.examine(t.Context(), "db", func(o *doctor.Options) { tc.change(f, o) })
				r := found[tc.check]
				if r.State != tc.state || !strings.Contains(r.Text, tc.says) || !strings.Contains(r.Do, tc.do) || strings.Contains(r.Text+r.Do, "\n") {
					t.Errorf("%+v", r)
				}
				f.clean(t)
			})
		})
	}
}

// The check that needs a missing right names it.
func TestDoctorNamesTheMissingRight(t *testing.T) {
	operations := map[string]string{ // the simulated cloud's name, and ours
		"ListInstances": "ListInstances", "ShowAutoScale": "GetStoragePolicy", "ListFlavors": "ListFlavors", "ListResizeFlavors": "ListResizeTargets",
		"ListAlarms": "ListRules", "ShowAlarm": "GetRule", "CreateAlarm": "CreateRule", "UpdateAlarm": "ModifyRule", "SwitchAlarm": "EnableRule",
		"DeleteAlarm": "DeleteRule", "ListMetrics": "ListMetrics", "BatchMetricData": "QueryMetricData", "ShowQuotas": "GetQuotas",
		"ListTopics": "ListTopics", "ShowTopic": "GetTopic", "CreateTopic": "CreateTopic", "UpdateTopic": "UpdateTopic", "DeleteTopic": "DeleteTopic",
		"ListSubscriptions": "ListSubscriptions", "ListTopicSubscriptions": "ListTopicSubscriptions", "Subscribe": "Subscribe", "DeleteSubscription": "Unsubscribe",
		"EnlargeVolume": "EnlargeVolume", "ResizeFlavor": "ResizeFlavor",
	}
	if want := len(otc.Rights()) - len([]string{"Login", "GetJob"}); len(operations) != want {
		t.Errorf("%d operations are refused one by one, want %d", len(operations), want)
	}
	for theirs, ours := range operations {
		t.Run(ours, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f, ended := patient(t)
				defer ended()
				mend := f.breaks(func(r *http.Request) *simcloud.Fault {
					if _, operation := simcloud.OperationOf(r); operation == theirs {
						return &simcloud.Fault{Status: http.StatusForbidden, Body: `{"error_code":"IAM.0001","error_msg":"Access denied"}`}
					}
					return nil
				})
				said := ""
				found := f.examine(t.Context(), "db", func(o *doctor.Options) {
					withApplyCloud(o)
					report := o.Report
					o.Report = func(r doctor.Result) {
						if r.State == doctor.Failed {
							said += fmt.Sprintf("%+v\n", r)
						}
						report(r)
					}
				})
				right := otc.Rights()[ours]
				if named := strings.Contains(said, ours) && strings.Contains(said, right) && (strings.Contains(said, "policy-read-only.json") || strings.Contains(said, "Run doctor again")); !named || right == "" && ours != "ListFlavors" {
					t.Errorf("it says %s of %s, which needs %q: %v", said, ours, right, found["removed"])
				}
				mend()
				time.Sleep(afterEveryRun)
				f.examine(t.Context(), "", nil) // removes what could not be removed
				f.clean(t)
			})
		})
	}
}

// Doctor prints a line at least every half minute, even while it waits for a message that never comes.
func TestDoctorReportsProgressEveryHalfMinute(t *testing.T) {
	for _, differs := range []string{"", "confirm-again", "sends-again", "rule-raw", "metric-delay"} {
		t.Run(differs, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f, ended := patient(t)
				defer ended()
				if differ := simcloud.Differences()[differs]; differ != nil {
					f.sim.Configure(differ)
				}
				last, told := time.Now(), 0
				said := func(what string) {
					if silent := time.Since(last); silent > 30*time.Second {
						t.Errorf("nothing for %s, then %q", silent, what)
					}
					last = time.Now()
				}
				begin := time.Now()
				f.examine(t.Context(), "db", func(o *doctor.Options) {
					report := o.Report
					o.Report = func(r doctor.Result) { said(r.Text); report(r) }
					o.Progress = func(text string) { told++; said(text) }
				})
				if minutes := int(time.Since(begin).Minutes()); told < minutes {
					t.Errorf("told %d times of progress in %d minutes", told, minutes)
				}
				f.clean(t)
			})
		})
	}
}

// afterEveryRun is when a run has certainly ended, so that the next one removes what it has left.
const afterEveryRun = 90 * time.Minute

// mortal lets so many writes through, the last with or without its answer, and then nothing at all.
type mortal struct {
	next   http.RoundTripper
	writes *atomic.Int64
	most   int64
}

func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.writes.Load() > m.most {
		return nil, errors.New("killed")
	}
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "auth/tokens") && !strings.Contains(r.URL.Path, "batch-query") && m.writes.Add(1) > m.most {
		if m.most%2 == 0 { // killed before the answer came
			if resp, err := m.next.RoundTrip(r); err == nil {
				_ = resp.Body.Close()
			}
		}
		return nil, errors.New("killed")
	}
	return m.next.RoundTrip(r)
}

func TestDoctorRemovesLeftoversOfAKilledRun(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f, ended := patient(t)
		defer ended()
		left := 0
		for most := int64(0); ; most++ {
			writes := &atomic.Int64{}
			f.examine(t.Context(), "db", func(o *doctor.Options) {
				o.Transport = mortal{f.sim, writes, most}
				o.Kube = rest.CopyConfig(o.Kube)
				o.Kube.Transport = mortal{f.kube, writes, most}
				o.Wait = 2 * time.Minute
			})
			if len(f.sim.Topics()) > 1 || len(f.sim.Rules()) > 3 || len(f.autopilots()) > 1 {
				left++
			}
			time.Sleep(afterEveryRun)
			f.examine(t.Context(), "", func(o *doctor.Options) { o.Wait = 2 * time.Minute })
			f.clean(t)
			if t.Failed() {
				t.Fatalf("killed at write %d", most)
			}
			if writes.Load() <= most {
				if most < 12 || left < 8 {
					t.Errorf("%d writes, after %d of which something was left", most, left)
				}
				break
			}
		}
		if f.armed(1); len(f.sim.Topics()) != 1 || len(f.sim.Rules()) != 3 {
			t.Errorf("%d topics and %d rules of the database are there", len(f.sim.Topics()), len(f.sim.Rules()))
		}
	})
}

func TestDoctorCleansUpWhenInterrupted(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f, ended := patient(t)
		defer ended()
		for _, after := range []time.Duration{time.Second, 7 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 90 * time.Second, 3 * time.Minute} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			found := f.examine(ctx, "db", nil)
			cancel()
			if after < 3*time.Minute && found["interrupted"].State != doctor.Failed {
				t.Errorf("after %s: %v", after, found)
			}
			f.clean(t)
		}
	})
}
