// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// own is the namespace of the service.
const own = "kube-public"

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// rehearsal is a world for doctor: a service, a managed database, and an instance that nobody manages.
type rehearsal struct {
	*fleet
	service flags
	free    string // id of that instance
	change  func(*doctor.Options)
	stop    func()
	lines   []doctor.Line
}

func newRehearsal(t *testing.T) *rehearsal {
	t.Helper()
	r := &rehearsal{fleet: newFleet(t, simcloud.Settings{}), service: flags{sweep: 2 * time.Minute, own: own}}
	r.free = r.addInstance(simcloud.Instance{Flavor: twoVCPUs, VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40, CPUDemand: 0.6}}).ID
	r.change = func(*doctor.Options) {}
	return r
}

// run runs doctor beside the service, and returns whether it succeeded.
func (r *rehearsal) run(ctx context.Context) bool {
	r.t.Helper()
	r.database("default", "db", smallInstance())
	r.stop = r.start(r.service).stop
	time.Sleep(30 * time.Minute) // until there is data
	return r.runDoctor(ctx)
}

func (r *rehearsal) runDoctor(ctx context.Context) bool {
	o := r.options(r.sim)
	o.LeaseNamespace, o.System, o.CloudRate, o.Allowed = own, "kube-system", 1000, r.service.allowed
	with := doctor.Options{
		Options: o, Kube: r.kube.Config(), Web: &http.Client{Transport: r.routes},
		Report: func(l doctor.Line) { r.lines = append(r.lines, l) },
	}
	if r.service.smn != nil {
		with.SMNClient = smnClient(r.service.smn)
	}
	r.change(&with)
	r.lines = nil
	return doctor.Run(ctx, with)
}

// after calls f as soon as doctor has reported a step.
func (r *rehearsal) after(step string, f func()) {
	r.change = func(o *doctor.Options) {
		report := o.Report
		o.Report = func(l doctor.Line) {
			if report(l); l.Step == step {
				f()
			}
		}
	}
}

func (r *rehearsal) output() string {
	var all strings.Builder
	for _, l := range r.lines {
		all.WriteString(l.String())
	}
	return all.String()
}

// checkLeftNothing fails if anything of the rehearsal is in the cluster or in the cloud.
func (r *rehearsal) checkLeftNothing() {
	r.t.Helper()
	for _, a := range r.autopilots() {
		if a.Name == doctor.Name {
			r.t.Errorf("RdsAutopilot %s/%s is left", a.Namespace, a.Name)
		}
	}
	for _, rule := range r.sim.Rules() {
		if strings.Contains(rule.Name, doctor.Name) {
			r.t.Errorf("the rule %s is left", rule.Name)
		}
	}
}

func TestDoctorRehearsesAnAlarmAndLeavesNothing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		r := newRehearsal(t)
		r.service.namespaces = []string{"default"} // the service watches its own namespace as well
		if !r.run(t.Context()) {
			t.Errorf("doctor fails:\n%s", r.output())
		}
		want := []string{"kubernetes", "login", "hosts", "url", "lists", "quota", "leftover", "instance", "created", "armed", "topic", "alarm", "decision", "removed"}
		var steps []string
		for _, l := range r.lines {
			if steps = append(steps, l.Step); l.State != doctor.OK || l.Do != "" {
				t.Errorf("%+v", l)
			}
		}
		if !slices.Equal(steps, want) {
			t.Errorf("the steps are %v, want %v", steps, want)
		}
		r.checkLeftNothing()
	})
}

// A run that was killed leaves its RdsAutopilot in Recommend. The next run removes it, but no object of a person.
func TestDoctorRemovesWhatAKilledRunHasLeft(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		r := newRehearsal(t)
		spec := `{"mode":"Recommend","apply":"Cloud","instanceID":"` + r.free + `"}`
		r.createAutopilot(own, doctor.Name, spec)
		if r.run(t.Context()) || !strings.Contains(r.output(), "is not doctor's") || r.autopilot(own, doctor.Name) == nil {
			t.Errorf("it deletes an object of a person:\n%s", r.output())
		}
		r.patch(r.raps(own), doctor.Name, `{"metadata":{"annotations":{"`+doctor.Annotation+`":"left"}}}`)
		left := r.autopilot(own, doctor.Name).UID
		if !r.runDoctor(t.Context()) {
			t.Errorf("after a killed run, doctor fails:\n%s", r.output())
		}
		if a := r.autopilot(own, doctor.Name); a != nil {
			t.Errorf("%s is left, and was %s", a.UID, left)
		}
		r.checkLeftNothing()
	})
}

func TestDoctorRemovesItsObjectWhenItIsInterruptedAtAnyStep(t *testing.T) {
	for _, step := range []string{"kubernetes", "leftover", "created", "decision"} {
		t.Run(step, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				r := newRehearsal(t)
				ctx, interrupt := context.WithCancel(t.Context())
				r.after(step, interrupt)
				if r.run(ctx) {
					t.Error("an interrupted run succeeds")
				}
				if last := r.lines[len(r.lines)-1].Step; last != step && last != "removed" {
					t.Errorf("a step follows the interruption:\n%s", r.output())
				}
				r.checkLeftNothing()
			})
		})
	}
}

func TestDoctorSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	const denied = `{"error_code":"IAM.0001","error_msg":"Access denied"}`
	forbid := func(operation string) func(*rehearsal) {
		return func(r *rehearsal) {
			r.setFault(faultOf(simcloud.Fault{Status: http.StatusForbidden, Body: denied}, operation))
		}
	}
	for name, tc := range map[string]struct {
		change         func(*rehearsal)
		step, text, do string
	}{
		"wrong password": {func(r *rehearsal) {
			r.change = func(o *doctor.Options) {
				was := o.Env
				o.Env = func(key string) string { return map[string]string{"OS_PASSWORD": "wrong"}[key] + was(key) }
			}
		}, "login", "refused the credentials", "Check user, password"},
		"missing right to read":           {forbid("ListAlarms"), "lists", "ListRules: 403", "the right ces:alarms:list"},
		"missing right to create":         {forbid("CreateAlarm"), "armed", "CreateRule: 403", "the right ces:alarms:create"},
		"missing right to create a topic": {forbid("CreateTopic"), "armed", "CreateTopic: 403", "the right smn:topic:create"},
		"the object disappears": {func(r *rehearsal) {
			r.sim.Configure(func(s *simcloud.Settings) { s.NoPublishByCloudEye = true })
			r.after("topic", func() { r.delete(r.raps(own), doctor.Name) })
		}, "alarm", "Cannot read the RdsAutopilot any more", "Somebody has deleted it"},
		"a rule cannot be read": {func(r *rehearsal) {
			r.sim.Configure(func(s *simcloud.Settings) { s.NoPublishByCloudEye = true })
			r.after("topic", func() { forbid("ShowAlarm")(r) })
		}, "alarm", "a rule cannot be read: ces GetRule: 403", "the right ces:alarms:get"},
		"the ConfigMap disappears": {func(r *rehearsal) {
			r.after("armed", func() {
				client, err := kubernetes.NewForConfig(r.kube.Config())
				r.must(err)
				r.must(client.CoreV1().ConfigMaps(own).Delete(r.t.Context(), k8s.TopicConfigMap, metav1.DeleteOptions{}))
			})
		}, "topic", "Somebody has deleted the ConfigMap rds-autopilot-topic", "The leader writes it again"},
		"no CRD": {func(r *rehearsal) {
			kube, err := simkube.New(simkube.Options{CRDs: crds[:1], Seed: "x"})
			r.must(err)
			r.change = func(o *doctor.Options) { o.Kube = kube.Config() }
		}, "kubernetes", "rdsautopilots.autopilot.otc.mcsps.de is not installed", "kubectl apply -f deploy/crds"},
		"quota of rules": {func(r *rehearsal) {
			r.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 3 })
		}, "quota", "3 of 3", "higher quota"},
		"no instance": {func(r *rehearsal) { r.sim.RemoveInstance(r.free) }, "instance", "All instances are managed", "create a small one"},
		"no service":  {func(r *rehearsal) { r.change = func(*doctor.Options) { r.stop() } }, "armed", "No running service", "pods"},
		"certificate host not reachable": {func(r *rehearsal) {
			r.service.smn = roundTrip(func(req *http.Request) (*http.Response, error) {
				if req.URL.Host == r.sim.CertHost() {
					return nil, errors.New("dial tcp: connection refused")
				}
				return r.sim.RoundTrip(req)
			})
		}, "hosts", "The host of --smn-cert-hosts is not reachable", "Allow the pod"},
		"confirmation host not allowed": {func(r *rehearsal) {
			r.sim.Configure(func(s *simcloud.Settings) { s.ConfirmOnOtherHost = true })
		}, "armed", `is not in --smn-confirm-hosts`, "--smn-confirm-hosts"},
		"DNS": {func(r *rehearsal) { r.routes.refuse = &net.DNSError{Err: "no such host", IsNotFound: true} }, "armed",
			"SubscriptionPending", "DNS record"},
		"public URL refused": {func(r *rehearsal) {
			const refusal = `{"code":"SMN.0009","message":"The endpoint is not a public address"}`
			r.setFault(faultOf(simcloud.Fault{Status: http.StatusBadRequest, Body: refusal}, "Subscribe"))
		}, "armed", "not a public address", "--public-url"},
		"service in another namespace": {func(r *rehearsal) { r.service.own = "default" }, "armed", "NotAllowed", "--lease-namespace"},
		"Ingress path": {func(r *rehearsal) {
			r.change = func(o *doctor.Options) {
				o.PublicURL = &url.URL{Scheme: "https", Host: o.PublicURL.Host, Path: "/other"}
			}
		}, "topic", "and not to", "the same --public-url"},
		"mode Off": {func(r *rehearsal) { r.service.mode = v1alpha1.ModeOff }, "armed", "NotEnabled", "--mode"},
		"alarms do not arrive": {func(r *rehearsal) {
			r.sim.Configure(func(s *simcloud.Settings) { s.NoPublishByCloudEye = true })
		}, "alarm", "is in alarm", "load balancer"},
		"rules are not evaluated": {func(r *rehearsal) {
			r.sim.Configure(func(s *simcloud.Settings) { s.RawRulesSleep = true })
		}, "alarm", "is in ok", "Cloud Eye's console"},
	} {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				r := newRehearsal(t)
				tc.change(r)
				if r.run(t.Context()) {
					t.Error("doctor succeeds")
				}
				i := slices.IndexFunc(r.lines, func(l doctor.Line) bool { return l.State == doctor.Failed })
				if i < 0 || r.lines[i].Step != tc.step || !strings.Contains(r.lines[i].Text, tc.text) || !strings.Contains(r.lines[i].Do, tc.do) {
					t.Errorf("want %q %q %q:\n%s", tc.step, tc.text, tc.do, r.output())
				}
				r.checkLeftNothing()
			})
		})
	}
}
