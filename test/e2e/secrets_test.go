// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// TestNoSecretIsEverShown runs the real binary with --log-level debug through a database's life and through messages that it
// refuses. Then it searches all output for every secret.
func TestNoSecretIsEverShown(t *testing.T) {
	level.Short(t)
	w := start(t, world.Options{})
	ctx := world.Within(t)
	p := w.MustServe(t, "--log-level", "debug")
	db := w.MustAdd(t, world.Database{Name: "secretive", Flavor: "rds.mysql.n1.large.4", VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	secrets := map[string]string{"the root password": "Root-Passw0rd-shh", "a user's password": "User-Passw0rd-shh", "a grant": "GRANT-shh"}
	rds := fmt.Sprintf(`{"password":%q,"users":[{"name":"app","host":"%%","password":%q,"privileges":[%q]}]}`,
		secrets["the root password"], secrets["a user's password"], secrets["a grant"])
	annotation, err := json.Marshal(`{"kind":"Rds","spec":` + rds + `}`)
	must(t, err)
	err = db.PatchRds(ctx, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":`+string(annotation)+`}},"spec":`+rds+`}`)
	must(t, err)
	a := waitArmed(t, db)
	must(t, db.SetWorkload(simcloud.Workload{UsedGB: 33}))
	if _, err := db.WaitRds(ctx, "50 GB are requested", func(r *otcv1.Rds) bool { return r.Spec.VolumeSize == 50 }); err != nil {
		t.Fatal(err)
	}
	post := func(e simcloud.Envelope, alter func([]byte) []byte, want int) {
		t.Helper()
		e.TopicURN, e.Timestamp = w.TopicURN(), time.Now().UTC().Format("2006-01-02T15:04:05Z")
		signed := w.Cloud.Sign(e)
		secrets["the signature of a "+e.Type+" "+fmt.Sprint(len(secrets))] = signed.Signature
		body := signed.JSON()
		if alter != nil {
			body = alter(body)
		}
		status, text, err := w.Post(ctx, body)
		for err == nil && status == http.StatusServiceUnavailable { // a slow API server: SMN repeats the message too
			status, text, err = w.Post(ctx, body)
		}
		if err != nil || status != want {
			t.Errorf("%s: status %d (%s), %v, want %d", e.Type, status, text, err, want)
		}
	}
	secrets["the token of a link"] = "link-token-shh"
	link := func(host string) string {
		return "https://" + host + "/smn/subscription/confirm?token=link-token-shh&topic_urn=" + url.QueryEscape(w.TopicURN())
	}
	const notification = simcloud.TypeNotification
	secrets["the text of a message"] = "message-shh"
	post(simcloud.Envelope{Type: notification, Message: "message-shh", UnsubscribeURL: link(w.Cloud.ConfirmHost())}, nil, 200)
	post(simcloud.Envelope{Type: notification, Message: "x"}, func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"message":"x"`), []byte(`"message":"message-shh"`), 1)
	}, 403)
	post(simcloud.Envelope{Type: simcloud.TypeConfirmation, Message: "x", SubscribeURL: link(w.Cloud.ConfirmHost())}, nil, 200)
	post(simcloud.Envelope{Type: simcloud.TypeConfirmation, Message: "x", SubscribeURL: link("evil.example")}, nil, 200)
	post(simcloud.Envelope{Type: simcloud.TypeUnsubscribe, Message: "x", SubscribeURL: link(w.Cloud.ConfirmHost())}, nil, 200)
	post(simcloud.Envelope{Type: notification, Message: "x"}, func(b []byte) []byte { return append(b, `{"message-shh":1}`...) }, 400)
	secrets["a key of a body"] = "key-shh"
	post(simcloud.Envelope{Type: notification, Message: "x"}, func(b []byte) []byte { return bytes.Replace(b, []byte(`"type"`), []byte(`"key-shh":1,"Type"`), 1) }, 400)

	for _, d := range w.Cloud.Deliveries() { // the tokens of real links, and the signatures of the cloud itself
		var e simcloud.Envelope
		if json.Unmarshal(d.Body, &e) == nil {
			secrets["the signature of message "+d.MessageID] = e.Signature
			if u, err := url.Parse(e.SubscribeURL); err == nil && u.Query().Get("token") != "" {
				secrets["the link of message "+d.MessageID] = u.Query().Get("token")
			}
		}
	}
	for _, pair := range w.Cloud.Env() {
		if key, value, _ := strings.Cut(pair, "="); key == "OS_PASSWORD" {
			secrets[key] = value
		}
	}
	kubeconfig, err := os.ReadFile(w.Kubeconfig())
	must(t, err)
	for i, m := range regexp.MustCompile(`"?(?:token|client-key-data)"?: "?([A-Za-z0-9._=/+-]{20,})`).FindAllSubmatch(kubeconfig, -1) {
		secrets[fmt.Sprintf("credential %d of the kubeconfig", i)] = string(m[1])
	}
	secrets["a token of the cloud"] = "MIIsimulated" // the beginning of each
	if len(secrets) < 15 {
		t.Errorf("only %d secrets", len(secrets))
	}

	shown := map[string]string{}
	args := []string{"plan", "--kubeconfig", w.Kubeconfig(), "-n", db.Namespace, db.Name}
	shown["plan"] = output(t, w, args, nil, 0)
	shown["plan with a wrong password"] = output(t, w, args, []string{"OS_PASSWORD=wrong-shh"}, 1)
	secrets["a wrong password"] = "wrong-shh"
	shown["serve with a wrong password"] = refusedLog(t, w, "OS_PASSWORD=wrong-shh")
	secrets["a wrong secret key"] = "secretkey-shh"
	shown["serve with a wrong secret key"] = refusedLog(t, w, "OS_PASSWORD=", "OS_USERNAME=", "OS_ACCESS_KEY=key", "OS_SECRET_KEY=secretkey-shh")

	must(t, db.PatchRds(ctx, `{"spec":{"autopilot":false}}`))
	last, err := db.WaitAutopilot(ctx, "its rules are removed", func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Alarms.Rules) == 0 })
	must(t, err)
	for name, value := range map[string]any{"the RdsAutopilot": last, "the RdsAutopilot when armed": a, "events": events(t, w, db.Namespace)} {
		text, err := json.Marshal(value)
		must(t, err)
		shown[name] = string(text)
	}
	database := "/api/databases/" + db.Namespace + "/" + db.Name
	for _, path := range []string{"/metrics", "/readyz", "/healthz", "/", "/api/databases", database, database + "/series"} {
		_, text, err := p.Get(ctx, path)
		must(t, err)
		shown[path] = text
	}
	shown["the log"] = logOf(p)
	for place, want := range map[string]string{
		"the log": `"result":"forged"`, "events": "secretive", "/metrics": "rds_autopilot_", "plan": "secretive", "/": "page.js",
		"/api/databases": "secretive", database: "GrowVolume", database + "/series": "usedGB", "the RdsAutopilot": "secretive",
	} {
		if !strings.Contains(shown[place], want) {
			t.Errorf("%s lacks %s, so it proves nothing:\n%.2000s", place, want, shown[place])
		}
	}
	for place, text := range shown {
		for name, secret := range secrets {
			if secret != "" && strings.Contains(text, secret) {
				i := strings.Index(text, secret)
				t.Errorf("%s contains %s: …%.300s", place, name, text[max(0, i-200):])
			}
		}
	}
}

// output returns what the binary prints. It fails the test unless the binary ends with that exit code.
func output(t *testing.T, w *world.World, args, env []string, code int) string {
	t.Helper()
	p, err := w.Run(world.Within(t), args, env)
	must(t, err)
	if got, err := p.Wait(world.Within(t)); err != nil || got != code {
		t.Errorf("%s: exit code %d, %v, want %d:\n%s", args[0], got, err, code, logOf(p))
	}
	return logOf(p)
}

// logOf returns what a process has written so far.
func logOf(p *world.Process) string {
	var text []string
	for _, l := range p.Lines() {
		text = append(text, l.Raw)
	}
	return strings.Join(text, "\n")
}

// refusedLog returns the log of a service whose credentials the cloud refuses. It listens and is ready nevertheless.
func refusedLog(t *testing.T, w *world.World, env ...string) string {
	t.Helper()
	p, err := w.ServeIn(world.Within(t), env, "--log-level", "debug")
	must(t, err)
	if status, _, err := p.Get(world.Within(t), "/readyz"); err != nil || status != http.StatusOK {
		t.Errorf("/readyz is %d, %v", status, err)
	}
	if err := p.Stop(world.Within(t)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(logOf(p), "the cloud refused the credentials") {
		t.Errorf("the log does not report the refused login:\n%s", logOf(p))
	}
	return logOf(p)
}

// events returns the events of a namespace.
func events(t *testing.T, w *world.World, namespace string) []unstructured.Unstructured {
	t.Helper()
	client, err := dynamic.NewForConfig(w.Kube.Config())
	must(t, err)
	resource := schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	list, err := client.Resource(resource).Namespace(namespace).List(world.Within(t), metav1.ListOptions{})
	must(t, err)
	return list.Items
}
