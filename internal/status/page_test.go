// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"
	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/internal/status"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// cache holds databases as the informers would.
type cache struct {
	autopilots []*v1alpha1.RdsAutopilot
	targets    []*autopilot.Target
	notSynced  bool
}

func (c *cache) HasSynced() bool { return !c.notSynced }

func (c *cache) EachAutopilot(f func(*v1alpha1.RdsAutopilot)) {
	for _, a := range c.autopilots {
		f(a)
	}
}

func (c *cache) EachTarget(f func(*autopilot.Target)) {
	for _, t := range c.targets {
		f(t)
	}
}

func (c *cache) Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool) {
	for _, a := range c.autopilots {
		if a.Namespace == namespace && a.Name == name {
			return a, true
		}
	}
	return nil, false
}

func (c *cache) Target(namespace, name string) *autopilot.Target {
	for _, t := range c.targets {
		if t.Namespace == namespace && t.Name == name {
			return t
		}
	}
	return nil
}

// add adds an armed database of 100 GB with these changes.
func (c *cache) add(namespace, name string, changes ...func(*v1alpha1.RdsAutopilot)) *v1alpha1.RdsAutopilot {
	a := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: autopilot.DefaultSpec()}
	a.Spec.Storage.MaxGB = 500
	a.Status.Instance = &v1alpha1.Instance{ID: "instance-of-" + name, Status: autopilot.StatusActive, VolumeGB: 100, Flavor: "rds.pg.n1.large.4", VCPUs: 2, MemoryGB: 8}
	a.Status.Baseline = &v1alpha1.Baseline{VolumeGB: 100, VCPUs: 2, MemoryGB: 8}
	record.SetCondition(&a.Status, v1alpha1.ConditionArmed, true, autopilot.ArmedReason, "3 alarm rules exist", 1, now())
	for _, m := range autopilot.Metrics() {
		a.Status.Alarms.Rules = append(a.Status.Alarms.Rules, v1alpha1.Rule{Metric: m, AlarmID: "al-" + string(m), ThresholdPercent: 90, State: v1alpha1.StateOK})
	}
	for _, change := range changes {
		change(a)
	}
	c.autopilots = append(c.autopilots, a)
	c.targets = append(c.targets, &autopilot.Target{Namespace: namespace, Name: name, InstanceID: a.Status.Instance.ID, Wanted: autopilot.Wanted{VolumeGB: 100, Flavor: "rds.pg.n1.large.4"}})
	return a
}

func notArmed(a *v1alpha1.RdsAutopilot) {
	record.SetCondition(&a.Status, v1alpha1.ConditionArmed, false, autopilot.SubscriptionPending, "The topic's subscription is not confirmed yet", 1, now())
}

func inAlarm(a *v1alpha1.RdsAutopilot) { a.Status.Alarms.Rules[0].State = v1alpha1.StateAlarm }

func withUsage(percent string, measured time.Time) func(*v1alpha1.RdsAutopilot) {
	return func(a *v1alpha1.RdsAutopilot) {
		a.Status.Intake.Signals = []v1alpha1.Signal{{
			Metric: v1alpha1.MetricStorage, State: v1alpha1.StateAlarm, ValuePercent: percent, MessageID: "m-1",
			DatapointTime: new(metav1.NewMicroTime(measured)), AlarmTime: metav1.NewMicroTime(measured), ReceivedTime: metav1.NewMicroTime(measured),
		}}
	}
}

// newPage returns a page with defaults; change sets the options that a test is about.
func newPage(tb testing.TB, change func(*status.Options)) http.Handler {
	tb.Helper()
	o := status.Options{
		Cache: &cache{}, Metrics: prometheus.NewRegistry(), Leader: func() string { return "pod-2" }, Version: "v1", Documents: documents,
		Mode: v1alpha1.ModeAuto, Sweep: 5 * time.Minute, Recheck: 30 * time.Second, Log: zaptest.NewLogger(tb), Now: now,
	}
	change(&o)
	h, err := status.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

func pageOf(tb testing.TB, c status.Cache) http.Handler {
	tb.Helper()
	return newPage(tb, func(o *status.Options) { o.Cache = c })
}

// get requests a page and returns its tree. It fails the test if the page has anything that no page may have.
func get(t *testing.T, h http.Handler, url string, want int) *html.Node {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	if w.Code != want {
		t.Fatalf("GET %s: %d, want %d: %s", url, w.Code, want, w.Body)
	}
	if n := w.Body.Len(); n > 200_000 {
		t.Errorf("GET %s has %d bytes", url, n)
	}
	csp := w.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'self';") || strings.Contains(csp, "unsafe") {
		t.Errorf("Content-Security-Policy: %s", csp)
	}
	if got := w.Header().Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("Content-Type: %s", got)
	}
	for _, r := range w.Body.String() {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200f {
			t.Errorf("GET %s has the character %U", url, r)
		}
	}
	if !utf8.Valid(w.Body.Bytes()) {
		t.Errorf("GET %s is no UTF-8", url)
	}
	root, err := html.Parse(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		inspect(t, url, n)
	}
	return root
}

// documents is the address of the documents.
const documents = "https://docs.example/v1/"

func documentPage() *regexp.Regexp {
	return regexp.MustCompile(`^docs/runbooks/reasons\.md#[a-z]+$`)
}

// inspect fails the test if the Content-Security-Policy would block the node, or if it leads to another host.
func inspect(t *testing.T, url string, n *html.Node) {
	t.Helper()
	switch n.Data {
	case "script":
		if n.Type == html.ElementNode && (!strings.HasSuffix(attribute(n, "src"), "/status.js") || n.FirstChild != nil) {
			t.Errorf("GET %s has a script that is not ours", url)
		}
	case "iframe", "img", "object", "style", "base", "b-hostile":
		if n.Type == html.ElementNode {
			t.Errorf("GET %s has an element %s", url, n.Data)
		}
	}
	for _, a := range n.Attr {
		switch {
		case a.Key == "style", strings.HasPrefix(a.Key, "on"):
			t.Errorf("GET %s has an attribute %s=%q", url, a.Key, a.Val)
		case a.Key == "href" || a.Key == "src" || a.Key == "action":
			if page, ok := strings.CutPrefix(a.Val, documents); ok && attribute(n, "rel") == "noreferrer" && documentPage().MatchString(page) {
				continue
			}
			if strings.Contains(a.Val, "//") || strings.Contains(a.Val, ":") || strings.HasPrefix(a.Val, "/") {
				t.Errorf("GET %s: %s is not relative, and no page of the documents", url, a.Val)
			}
		}
	}
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		switch d.Data {
		case "td", "th", "dt", "dd", "li", "p", "tr", "caption":
			b.WriteString(" ")
		}
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func elements(n *html.Node, name string) (found []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			found = append(found, d)
		}
	}
	return found
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// names returns the databases in the table, in its order.
func names(root *html.Node) (all []string) {
	for _, th := range elements(root, "th") {
		if attribute(th, "scope") == "row" {
			all = append(all, text(th))
		}
	}
	return all
}

func TestHostileTextsAreEscaped(t *testing.T) {
	t.Parallel()
	const name = `<b-hostile onclick=x>"'&` + "\u202egnp\x00\x1b[31m\u2066\u200f\x9b\xff"
	long := "<script>alert(1)</script>" + strings.Repeat("x", 10_000) + "\x07</td></table><img src=https://evil.example/>"
	c := &cache{}
	a := c.add(name, name, inAlarm, withUsage("91", now()), func(a *v1alpha1.RdsAutopilot) {
		a.Status.Instance.Flavor, a.Status.Instance.Zones = long, []string{long}
		a.Status.Alarms.TopicURN, a.Status.Alarms.Rules[0].Dimension = long, long
		a.Status.Decisions = []v1alpha1.DecisionRecord{{Time: metav1.NewTime(now()), Metric: v1alpha1.Metric(name), Action: "None", Reason: name, Message: long}}
		a.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindFlavor, From: long, To: name, CompletionTime: metav1.NewMicroTime(now()), Outcome: v1alpha1.OutcomeCompleted}}
		a.Status.Pending = &v1alpha1.Intent{Kind: v1alpha1.KindFlavor, From: name, To: name, Message: long}
		record.SetCondition(&a.Status, v1alpha1.ConditionContested, true, "Contested", long, 1, now())
	})
	h := pageOf(t, c)
	root := get(t, h, "/?q="+"%3Cscript%3E%E2%80%AE%22&namespace=%22%3E%3Cscript%3E&sort=%3Cscript%3E&page=-7&state=%00", http.StatusOK)
	if got := attribute(elements(root, "input")[1], "value"); !strings.HasPrefix(got, "<script>") {
		t.Errorf("the filter shows %q", got)
	}
	root = get(t, h, "/", http.StatusOK)
	if got := text(root); !strings.Contains(got, `<b-hostile onclick=x>"'&\u202egnp`) || !strings.Contains(got, `\u001b[31m\u2066\u200f`) || !strings.Contains(got, "<script>alert(1)</script>xxx") {
		t.Errorf("the overview shows %q", got)
	}
	link := attribute(elements(elements(root, "tbody")[0], "a")[0], "href")
	root = get(t, h, "/"+link, http.StatusOK)
	if got := text(root); !strings.Contains(got, long[:10_000]) || !strings.Contains(got, `\u0007</td></table><img src=`) {
		t.Errorf("the page of %q lacks its texts", a.Name)
	}
}

func TestPageRefusesEverythingButGET(t *testing.T) {
	t.Parallel()
	c := &cache{}
	c.add("shop", "orders")
	h := pageOf(t, c)
	for _, path := range []string{"/", "/health", "/databases/shop/orders", "/status.css", "/status.js"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("x=1")))
			if w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
	get(t, h, "/databases/shop/nope", http.StatusNotFound)
	for _, file := range []string{"/status.css", "/status.js", "/icon.svg"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, file, nil))
		body, _ := io.ReadAll(w.Body)
		if w.Code != http.StatusOK || bytes.Contains(body, []byte("url(")) || bytes.Contains(body, []byte("@import")) {
			t.Errorf("%s: %d %s", file, w.Code, body)
		}
	}
}

// blockedCache does not answer until a value arrives on answer.
type blockedCache struct {
	cache
	asked  chan struct{}
	answer chan struct{}
}

func (c *blockedCache) EachTarget(func(*autopilot.Target)) {
	c.asked <- struct{}{}
	<-c.answer
}

// Fifty people who reload take no more of the processor than one, because decisions need it.
func TestPagesAreRenderedOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &blockedCache{asked: make(chan struct{}, 50), answer: make(chan struct{})}
		h := pageOf(t, c)
		codes := make(chan int, 50)
		for range 50 {
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				codes <- w.Code
			}()
		}
		synctest.Wait()
		if n := len(c.asked); n != 1 {
			t.Errorf("%d pages are rendered at once", n)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n := len(codes); n != 49 {
			t.Errorf("%d of 49 requests were refused", n)
		}
		close(c.answer)
		synctest.Wait()
		count := map[int]int{}
		for range 50 {
			count[<-codes]++
		}
		if count[http.StatusOK] != 1 || count[http.StatusServiceUnavailable] != 49 {
			t.Errorf("status codes: %v", count)
		}
	})
}
