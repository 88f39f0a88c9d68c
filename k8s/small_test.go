package k8s

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

func TestTrimKeepsWhatIsNamed(t *testing.T) {
	rds := &otcv1.Rds{ObjectMeta: metav1.ObjectMeta{
		Name: "one", Namespace: "db", UID: "u", ResourceVersion: "7", Generation: 3,
		Labels: map[string]string{"team": "a"},
		Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"password":"secret"}}`,
			"autopilot.otc.mcsps.de.evil/copy":                 "secret",
			"autopilot.otc.mcsps.de/note":                      "kept",
		},
		Finalizers:    []string{"f"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "operator"}},
	}}
	for range 2 { // a second time changes nothing
		if _, err := transform(rds); err != nil {
			t.Fatal(err)
		}
		want := metav1.ObjectMeta{
			Name: "one", Namespace: "db", UID: "u", ResourceVersion: "7", Generation: 3, Finalizers: []string{"f"},
			Annotations: map[string]string{"autopilot.otc.mcsps.de/note": "kept"},
		}
		if diff := cmp.Diff(want, rds.ObjectMeta); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
	}
	if _, err := transform(&autopilotv1.RdsAutopilotList{}); err == nil {
		t.Error("took what it does not know")
	}
}

func TestLibraryLogHidesAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		level zapcore.Level
		want  []string
	}{
		{"debug", zap.DebugLevel, []string{"info"}},
		{"everything", zapcore.Level(-10), []string{"info"}},
		{"error", zap.ErrorLevel, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			core, seen := observer.New(c.level)
			complaint := &strings.Builder{}
			log := libraryLog(zap.New(core, zap.ErrorOutput(zapcore.AddSync(complaint))))
			log.Info("info")
			log.V(1).Info("detail")
			log.V(8).Info("body with a password")
			var got []string
			for _, e := range seen.All() {
				got = append(got, e.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if complaint.Len() > 0 {
				t.Error(complaint)
			}
		})
	}
}

func TestNoteIsCapped(t *testing.T) {
	for _, note := range []string{strings.Repeat("a", 3000), strings.Repeat("ü", 600), "a" + strings.Repeat("€", 400)} {
		got := capped(note, maxNote)
		if len(got) > maxNote || len(got) < maxNote-8 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
	if got := capped("short", maxNote); got != "short" {
		t.Errorf("got %q", got)
	}
}

func TestOwnNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if _, err := ownNamespace(file); err == nil || !strings.Contains(err.Error(), "not in a pod") {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile(file, []byte("ops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ns, err := ownNamespace(file); ns != "ops" || err != nil {
		t.Errorf("got %q, %v", ns, err)
	}
}
