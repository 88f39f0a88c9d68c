package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	project  = "0123456789abcdef0123456789abcdef"
	ourTopic = "urn:smn:eu-de:" + project + ":autopilot_ns_db_12345678"
	newTopic = "urn:smn:eu-de:" + project + ":autopilot_ns_new_12345678"
	ruleID   = "al1700000000000AbCdEfGhI"
	instance = "00112233445566778899aabbccddeeffin01"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// book is one database, with the API server's rule that a write goes on top of what was read.
type book struct {
	mu       sync.Mutex
	stored   *v1alpha1.RdsAutopilot
	cached   *v1alpha1.RdsAutopilot // what the cache knows; nil: what is stored
	version  int
	writes   int
	down     error // of every request
	conflict int   // how many writes somebody else comes before
	panics   bool
	expects  string // how topics begin that the cache knows the autopilot of
}

func newBook() *book {
	a := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", ResourceVersion: "0"}}
	a.Status.Alarms = v1alpha1.Alarms{TopicURN: ourTopic, Rules: []v1alpha1.Rule{{Metric: v1alpha1.MetricStorage, AlarmID: ruleID}}}
	a.Status.Instance = &v1alpha1.Instance{ID: instance, NodeIDs: []string{"00112233445566778899aabbccddeeffno01"}}
	return &book{stored: a}
}

func (b *book) view() *v1alpha1.RdsAutopilot {
	if b.cached != nil {
		return b.cached
	}
	return b.stored
}

func (b *book) ByTopic(urn string) []*v1alpha1.RdsAutopilot {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.panics {
		panic("the book is broken")
	}
	if v := b.view(); v.Status.Alarms.TopicURN == urn {
		return []*v1alpha1.RdsAutopilot{v.DeepCopy()}
	}
	return nil
}

func (b *book) ByTopicLive(_ context.Context, urn string) ([]*v1alpha1.RdsAutopilot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down != nil {
		return nil, b.down
	}
	if b.stored.Status.Alarms.TopicURN == urn {
		return []*v1alpha1.RdsAutopilot{b.stored.DeepCopy()}, nil
	}
	return nil, nil
}

func (b *book) Expects(urn string) bool { return strings.HasPrefix(urn, b.expects) && b.expects != "" }

func (b *book) SignedBefore(url string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return url != "" && b.view().Status.Intake.SigningCertURL == url
}

func (b *book) LiveAutopilot(context.Context, string, string) (*v1alpha1.RdsAutopilot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stored.DeepCopy(), b.down
}

func (b *book) WriteIntake(_ context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down != nil {
		return b.down
	}
	if b.conflict > 0 {
		b.conflict--
		b.bump()
	}
	if read.ResourceVersion != b.stored.ResourceVersion {
		return autopilot.ErrConflict
	}
	b.stored.Status.Intake = in
	b.writes++
	b.bump()
	return nil
}

func (b *book) bump() {
	b.version++
	b.stored.ResourceVersion = strconv.Itoa(b.version)
}

// verdicts stands for the signature: what the certificate host and the key would say.
type verdicts struct {
	err   error
	mu    sync.Mutex
	asked int
}

func (v *verdicts) Verify(context.Context, smn.Envelope, bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	return v.err
}

type bench struct {
	*Receiver
	book     *book
	verifier *verdicts
	warnings []string // their reasons
	notes    []string
}

func newBench(t *testing.T) *bench {
	b := &bench{book: newBook(), verifier: &verdicts{}}
	b.Receiver = New(Options{
		Path: "/smn", Book: b.book, Verifier: b.verifier, Confirm: http.DefaultClient, ConfirmHosts: []string{"console.example"},
		OurTopics: TopicPrefix("eu-de", project, "autopilot_"), MaxMessageAge: time.Hour,
		Warn: func(_ *v1alpha1.RdsAutopilot, reason, note string) {
			b.warnings, b.notes = append(b.warnings, reason), append(b.notes, note)
		},
		Log: zap.NewNop(), Reg: prometheus.NewRegistry(), Now: noon,
	})
	return b
}

func (b *bench) post(body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/smn", strings.NewReader(body)))
	return w
}

// fields are those of an alarm for our database, altered.
func fields(alter map[string]string) map[string]string {
	m := map[string]string{
		"type": "Notification", "message_id": "d84bd6629ef04513ad2e37bffd6e17cb", "topic_urn": ourTopic, "subject": "s",
		"message": alarm("alarm", ruleID, "rds039_disk_util", instance, noon()), "timestamp": "2026-11-20T12:00:00Z",
		"signature": "c2ln", "signature_version": "v1", "signing_cert_url": "https://smn.example/smn/x.pem",
	}
	maps.Copy(m, alter)
	for k, v := range m {
		if v == "<none>" {
			delete(m, k)
		}
	}
	return m
}

func message(alter map[string]string) string {
	body, err := json.Marshal(fields(alter))
	if err != nil {
		return err.Error()
	}
	return string(body)
}

func alarm(status, rule, metric, inst string, at time.Time) string {
	return fmt.Sprintf(`{"message_type":"alarm","alarm_id":%q,"alarm_status":%q,"time":%d,"namespace":"SYS.RDS","metric_name":%q,"dimension":"rds_cluster_id:%s","alarmValue":[{"time":%d,"value":93.1}]}`,
		rule, status, at.UnixMilli(), metric, inst, at.Add(-time.Minute).UnixMilli())
}

func TestStatusContract(t *testing.T) {
	confirmation := map[string]string{
		"type": "SubscriptionConfirmation", "subject": "<none>",
		"subscribe_url": "https://console.example/smn/subscription/confirm?token=t&topic_urn=" + ourTopic,
	}
	with := func(base map[string]string, key, value string) string {
		m := maps.Clone(base)
		m[key] = value
		return message(m)
	}
	for _, tc := range []struct {
		name     string
		body     string
		before   func(*bench)
		status   int
		result   result
		typ      string
		verified bool // whether anything was asked of the certificate host
		writes   int
	}{
		{"an alarm", message(nil), nil, 200, resultStored, "Notification", true, 1},
		{"an ok", message(map[string]string{"message": alarm("ok", ruleID, "rds039_disk_util", instance, noon())}), nil, 200, resultStored, "Notification", true, 1},
		{"an alarm that names a node", message(map[string]string{"message": alarm("alarm", ruleID, "rds039_disk_util", "00112233445566778899aabbccddeeffno01", noon())}), nil, 200, resultStored, "Notification", true, 1},
		{"the same message again", message(nil), again, 200, resultDuplicate, "Notification", true, 1},
		{"an older alarm", message(map[string]string{"message_id": strings.Repeat("0", 32), "message": alarm("alarm", ruleID, "rds039_disk_util", instance, noon().Add(-time.Minute))}), again, 200, resultStale, "Notification", true, 1},
		{"others write at the same time", message(nil), func(b *bench) { b.book.conflict = 3 }, 200, resultStored, "Notification", true, 1},
		{"a topic that the cache lacks", message(nil), func(b *bench) { b.book.cached = &v1alpha1.RdsAutopilot{} }, 200, resultStored, "Notification", true, 1},
		{"a rule that the cache lacks", message(nil), oldCache, 200, resultStored, "Notification", true, 1},

		{"a foreign topic", message(map[string]string{"topic_urn": "urn:smn:eu-de:" + strings.Repeat("f", 32) + ":autopilot_ns_db_12345678"}), nil, 200, resultForeign, "Notification", false, 0},
		{"our name in another region", message(map[string]string{"topic_urn": "urn:smn:eu-nl:" + project + ":autopilot_ns_db_12345678"}), nil, 200, resultForeign, "Notification", false, 0},
		{"a topic of ours that is gone", message(map[string]string{"topic_urn": newTopic}), nil, 200, resultForeign, "Notification", false, 0},
		{"a foreign confirmation", with(confirmation, "topic_urn", newTopic), nil, 200, resultForeign, "SubscriptionConfirmation", false, 0},
		{"an unknown type", message(map[string]string{"type": "HttpSubscriptionUserConfirm"}), nil, 200, resultIgnored, "other", false, 0},
		{"an unknown rule", message(map[string]string{"message": alarm("alarm", "al1700000000000zzzzzzzzz", "rds039_disk_util", instance, noon())}), nil, 200, resultIgnored, "Notification", true, 0},
		{"another metric than the rule's", message(map[string]string{"message": alarm("alarm", ruleID, "rds039_disk_util_x", instance, noon())}), nil, 200, resultIgnored, "Notification", true, 0},
		{"another instance", message(map[string]string{"message": alarm("alarm", ruleID, "rds039_disk_util", "ffff", noon())}), nil, 200, resultIgnored, "Notification", true, 0},
		{"another state", message(map[string]string{"message": alarm("insufficient_data", ruleID, "rds039_disk_util", instance, noon())}), nil, 200, resultIgnored, "Notification", true, 0},
		{"no alarm in it", message(map[string]string{"message": "hello"}), nil, 200, resultUnreadable, "Notification", true, 0},
		{"the template schema", message(map[string]string{"message": `{"version":"v1","data":{}}`}), nil, 200, resultUnreadable, "Notification", true, 0},
		{"an unsubscription", with(confirmation, "type", "UnsubscribeConfirmation"), nil, 200, resultStored, "UnsubscribeConfirmation", true, 1},
		{"a confirmation link elsewhere", with(confirmation, "subscribe_url", "https://evil.example/smn/subscription/confirm?topic_urn="+ourTopic), nil, 200, resultIgnored, "SubscriptionConfirmation", true, 0},
		{"a confirmation link of another topic", with(confirmation, "subscribe_url", "https://console.example/smn/subscription/confirm?topic_urn="+newTopic), nil, 200, resultIgnored, "SubscriptionConfirmation", true, 0},

		{"not JSON", "hello", nil, 400, resultMalformed, "other", false, 0},
		{"no signature", message(map[string]string{"signature": "<none>"}), nil, 400, resultMalformed, "other", false, 0},
		{"a body of 1 MiB", strings.Repeat(" ", MaxBody), nil, 400, resultMalformed, "other", false, 0},
		{"one byte more", strings.Repeat(" ", MaxBody+1), nil, 413, resultTooLarge, "other", false, 0},
		{"a forged one", message(nil), func(b *bench) { b.verifier.err = smn.ErrForged }, 403, resultForged, "Notification", true, 0},
		{"an hour and a second old", message(map[string]string{"timestamp": "2026-11-20T10:59:59Z"}), nil, 403, resultExpired, "Notification", false, 0},
		{"59 minutes old", message(map[string]string{"timestamp": "2026-11-20T11:01:00Z"}), nil, 200, resultStored, "Notification", true, 1},
		{"4 minutes ahead", message(map[string]string{"timestamp": "2026-11-20T12:04:00Z"}), nil, 200, resultStored, "Notification", true, 1},
		{"6 minutes ahead", message(map[string]string{"timestamp": "2026-11-20T12:06:00Z"}), nil, 403, resultExpired, "Notification", false, 0},

		{"the certificate host is away", message(nil), func(b *bench) { b.verifier.err = smn.ErrUnavailable }, 503, resultUnavailable, "Notification", true, 0},
		{"the API server is away", message(nil), func(b *bench) { b.book.down = errors.New("refused") }, 503, resultUnavailable, "Notification", true, 0},
		{"a topic cannot be looked up", message(map[string]string{"topic_urn": newTopic}), func(b *bench) { b.book.down = errors.New("refused") }, 503, resultUnavailable, "Notification", false, 0},
		{"a panic", message(nil), func(b *bench) { b.book.panics = true }, 503, resultUnavailable, "Notification", false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t)
			if tc.before != nil {
				tc.before(b)
			}
			asked := b.verifier.asked
			w := b.post(tc.body)
			if w.Code != tc.status {
				t.Errorf("status %d, want %d", w.Code, tc.status)
			}
			if n := testutil.ToFloat64(b.meters.notifications.WithLabelValues(tc.typ, string(tc.result))); n != 1 {
				t.Errorf("it was not counted once as %s/%s: %s", tc.typ, tc.result, strings.TrimSpace(w.Body.String()))
			}
			if (b.verifier.asked > asked) != tc.verified {
				t.Errorf("verified %d times, want any: %t", b.verifier.asked-asked, tc.verified)
			}
			if b.book.writes != tc.writes {
				t.Errorf("%d writes, want %d", b.book.writes, tc.writes)
			}
			if retry := w.Header().Get("Retry-After"); (retry != "") != (tc.status == 503) {
				t.Errorf("Retry-After %q with status %d", retry, tc.status)
			}
		})
	}
}

func again(b *bench) { b.post(message(nil)); b.meters.notifications.Reset() }

func oldCache(b *bench) {
	b.book.cached = b.book.stored.DeepCopy()
	b.book.cached.Status.Alarms.Rules = nil
}

func TestOtherPathsAndMethods(t *testing.T) {
	b := newBench(t)
	for _, tc := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/smn", 405},
		{http.MethodPut, "/smn", 405},
		{http.MethodHead, "/smn", 405},
		{http.MethodPost, "/", 404},
		{http.MethodPost, "/smn/x", 404},
		{http.MethodGet, "/metrics", 404},
	} {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, nil))
		if w.Code != tc.status {
			t.Errorf("%s %s: status %d, want %d", tc.method, tc.path, w.Code, tc.status)
		}
	}
}

func TestConnectionsAreKeptLongerThanAProxyUsesThem(t *testing.T) {
	if idle := newBench(t).Server().IdleTimeout; idle <= time.Minute { // nginx's
		t.Errorf("closed after %s: a proxy may just be sending on it", idle)
	}
}

func TestUnreadableAlarmsAndRefusedLinksWarn(t *testing.T) {
	b := newBench(t)
	b.post(message(map[string]string{"message": "hello"}))
	b.post(message(map[string]string{"type": "SubscriptionConfirmation", "subject": "<none>", "subscribe_url": "https://evil.example/"}))
	if len(b.warnings) != 2 || b.warnings[0] != reasonUnreadable || b.warnings[1] != reasonConfirm {
		t.Errorf("warnings %v", b.warnings)
	}
}

func TestConfirmationCallsTheLinkOnceAndFollowsNothing(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		want   int
		result result
		stored bool
		warned string // somewhere in the warning
	}{
		{"it works", 200, 200, resultConfirmed, true, ""},
		{"it works, and has nothing to say", 204, 200, resultConfirmed, true, ""},
		{"a redirect is not followed", 302, 200, resultUnconfirmed, true, "status 302"},
		{"refused", 403, 200, resultUnconfirmed, true, "status 403"},
		{"expired: the list will tell", 404, 200, resultUnconfirmed, true, "status 404"},
		{"too many requests: try again", 429, 503, resultUnavailable, false, ""},
		{"try again", 500, 503, resultUnavailable, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls := 0
			console := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				if r.URL.Path != confirmPath || r.URL.Query().Get("token") != "secret" {
					t.Errorf("called %s", r.URL)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
			}))
			defer console.Close()
			b := newBench(t)
			u, err := url.Parse(console.URL)
			if err != nil {
				t.Fatal(err)
			}
			b.ConfirmHosts, b.Confirm = []string{u.Host}, console.Client()
			b.Confirm.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			w := b.post(message(map[string]string{
				"type": "SubscriptionConfirmation", "subject": "<none>",
				"subscribe_url": console.URL + confirmPath + "?token=secret&topic_urn=" + ourTopic + "&region=eu-de",
			}))
			if w.Code != tc.want || calls != 1 {
				t.Errorf("status %d after %d calls, want %d after 1", w.Code, calls, tc.want)
			}
			if n := testutil.ToFloat64(b.meters.notifications.WithLabelValues("SubscriptionConfirmation", string(tc.result))); n != 1 {
				t.Errorf("counted as %s %v times, answered %q", tc.result, n, w.Body)
			}
			if stored := b.book.stored.Status.Intake.Subscription != nil; stored != tc.stored {
				t.Errorf("stored %t, want %t", stored, tc.stored)
			}
			if said := strings.Join(b.notes, "\n"); (said == "") != (tc.warned == "") || !strings.Contains(said, tc.warned) || strings.Contains(said, "secret") {
				t.Errorf("warned of %q, want %q", said, tc.warned)
			}
		})
	}
}

func TestConfirmLinkRefuses(t *testing.T) {
	const good = "https://console.example/smn/subscription/confirm?topic_urn=" + ourTopic
	if _, err := ConfirmLink(good, []string{"console.example"}, ourTopic); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{
		strings.Replace(good, "https", "http", 1), strings.Replace(good, "console.example", "console.example:443", 1),
		strings.Replace(good, "console.example", "x@console.example", 1), strings.Replace(good, "console.example", "console.example.evil", 1),
		strings.Replace(good, "confirm", "unsubscribe", 1), strings.Replace(good, "/smn", "/x/../smn", 1), strings.Replace(good, "/smn", "/%73mn", 1),
		good + "&topic_urn=" + newTopic, good + "&topic_urn=" + ourTopic, good + "#x", strings.Replace(good, "topic_urn", "topic", 1), good + "%zz", "//console.example", "",
	} {
		if got, err := ConfirmLink(link, []string{"console.example"}, ourTopic); err == nil {
			t.Errorf("%s became %s", link, got)
		}
	}
}

func TestAnOddValueIsLeftOutAndTheAlarmIsStored(t *testing.T) {
	text := alarm("alarm", ruleID, "rds039_disk_util", instance, noon())
	future := strconv.FormatInt(noon().Add(time.Hour).UnixMilli(), 10)
	for name, swap := range map[string][2]string{
		"over 100":            {"93.1", "100.4"},
		"below 0":             {"93.1", "-1"},
		"null":                {"93.1", "null"},
		"text":                {"93.1", `"93.1"`},
		"words":               {"93.1", `"high"`},
		"no list":             {text[strings.Index(text, "[{") : strings.Index(text, "}]")+2], "null"},
		"a list of text":      {text[strings.Index(text, "[{") : strings.Index(text, "}]")+2], `["93.1"]`},
		"no time":             {`"value":93.1`, `"value":93.1,"x":1`},
		"a time to come":      {`,"value":93.1`, `,"value":93.1},{"time":` + future + `,"value":1`},
		"a second, odd value": {`"value":93.1`, `"value":93.1},{"time":1,"value":null`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			odd := strings.Replace(text, swap[0], swap[1], 1)
			if name == "no time" {
				odd = strings.Replace(odd, `[{"time"`, `[{"when"`, 1)
			}
			if odd == text {
				t.Fatalf("nothing was swapped in %s", text)
			}
			w := b.post(message(map[string]string{"message": odd}))
			signals := b.book.stored.Status.Intake.Signals
			if w.Code != http.StatusOK || len(signals) != 1 {
				t.Fatalf("status %d, %s, signals %+v", w.Code, w.Body, signals)
			}
			if s := signals[0]; s.ValuePercent != "" || s.DatapointTime != nil || s.State != v1alpha1.StateAlarm {
				t.Errorf("stored %+v", s)
			}
		})
	}
}

func TestTheSameMessageAtOnceIsStoredOnce(t *testing.T) {
	b := newBench(t)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if w := b.post(message(nil)); w.Code != http.StatusOK {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	if b.book.writes != 1 || len(b.book.stored.Status.Intake.Signals) != 1 {
		t.Errorf("%d writes, signals %+v", b.book.writes, b.book.stored.Status.Intake.Signals)
	}
}

func TestMetricsAreWellFormed(t *testing.T) {
	reg := prometheus.NewRegistry()
	newMeters(reg)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}
