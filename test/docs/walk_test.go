// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/world"
)

// TestCommandsOfTheReadmeLeadToADecision begins in an empty cluster with an empty home folder.
func TestCommandsOfTheReadmeLeadToADecision(t *testing.T) {
	r := newReader(t)
	r.before["The first database"] = func() { // The reader of this page has one already.
		r.must(t, "kubectl create namespace shop; grep -v autopilot: deploy/examples/rds.yaml | kubectl -n shop apply -f -")
	}
	r.walk(t, "README.md")
	r.recommends(t)
}

// TestCommandsOfTheFirstDayLeadToADecision runs the marked commands of all other pages afterwards, because they are about a
// service that runs.
func TestCommandsOfTheFirstDayLeadToADecision(t *testing.T) {
	r := newReader(t)
	r.before["A week later"] = func() { r.recommends(t) } // This section sets the mode Auto.
	r.walk(t, "docs/first-day.md")
	r.waitFor(t, "kubectl get rap my-rds -o jsonpath='{.status.effectiveMode}'", "Auto")
	r.otherPages(t)
}

// reader runs the commands of a page in a cluster without nodes. When the page has installed the chart, the test starts
// the service with the ServiceAccount and the Secret that the page has created. The replacer changes what needs a node:
// the commands of kubectl exec run on this machine, and the Deployment needs only to exist.
type reader struct {
	*shell
	own     *strings.Replacer
	before  map[string]func() // runs before the section with that heading
	process *world.Process
	access  string // the kubeconfig of the service
}

func newReader(t *testing.T) *reader {
	t.Helper()
	s := newWorld(t)
	bin := filepath.Join(s.dir, "bin")
	if err := errors.Join(os.Symlink(tool(t, "helm"), filepath.Join(bin, "helm")), writeCertificate(s.dir)); err != nil {
		t.Fatal(err)
	}
	// The world begins with our definitions and rights. A reader has none of them.
	s.must(t, "kubectl delete -f deploy/rbac.yaml -f deploy/crds --wait")
	s.env = []string{"KUBECONFIG=" + s.world.AdminKubeconfig(), "HOME=" + s.dir, "PATH=" + bin + ":/usr/bin:/bin"}
	// kubectl exec has the environment of the container: its flags, and the simulated cloud's hosts and speed.
	s.env = append(s.env, "OS_CLOUD=otc", "RDS_AUTOPILOT_WAIT=3m")
	for pair := range slices.Chunk(s.world.ServeArgs()[1:], 2) {
		if name := strings.TrimPrefix(pair[0], "--"); name != "kubeconfig" {
			s.env = append(s.env, "RDS_AUTOPILOT_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+pair[1])
		}
	}
	cloud := map[string]string{}
	for _, entry := range s.world.Cloud.Env() {
		name, value, _ := strings.Cut(entry, "=")
		cloud[name] = value
	}
	access := filepath.Join(s.dir, "service.kubeconfig")
	return &reader{shell: s, access: access, before: map[string]func(){}, own: strings.NewReplacer(
		"--data '' https://autopilot.example.com/smn", "--data '' "+s.world.PublicURL(),
		"https://iam.eu-de.otc.t-systems.com/v3", cloud["OS_AUTH_URL"],
		"eu-de_my-project", cloud["OS_PROJECT_NAME"],
		"OTC-EU-DE-00000000000000000000", cloud["OS_USER_DOMAIN_NAME"],
		"username: rds-autopilot", "username: "+cloud["OS_USERNAME"],
		"password: change-me", "password: "+cloud["OS_PASSWORD"],
		"kubectl -n rds-autopilot exec deploy/rds-autopilot -- ", "KUBECONFIG="+access+" ",
		"rollout status deployment/rds-autopilot", "get deployment/rds-autopilot",
	)}
}

// serve starts the service again with a mode.
func (r *reader) serve(t *testing.T, mode string) {
	t.Helper()
	if r.process != nil {
		if err := r.process.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	config, err := r.world.Kube.ServiceAccountConfig(t.Context(), "rds-autopilot", "rds-autopilot")
	if err == nil {
		err = apiserver.WriteKubeconfig(r.access, config)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.must(t, `kubectl -n rds-autopilot get secret otc-credentials -o go-template='{{index .data "clouds.yaml" | base64decode}}' > clouds.yaml`)
	env := []string{"OS_CLOUD=otc", "OS_CLIENT_CONFIG_FILE=" + filepath.Join(r.dir, "clouds.yaml")}
	for _, entry := range r.world.Cloud.Env() {
		name, _, _ := strings.Cut(entry, "=")
		env = append(env, name+"=") // The credentials are those of the Secret alone.
	}
	if r.process, err = r.world.ServeIn(t.Context(), env, "--kubeconfig", r.access, "--mode", mode); err != nil {
		t.Fatal(err)
	}
}

// walk runs every block of shell on a page, from the first to the last.
func (r *reader) walk(t *testing.T, page string) {
	t.Helper()
	count := 0
	for section := range strings.SplitSeq(read(t, page), "\n## ") {
		heading, _, _ := strings.Cut(section, "\n")
		for title, do := range r.before {
			if strings.HasSuffix(heading, title) {
				do()
			}
		}
		for _, b := range blocks(section) {
			if b.kind != "sh" && b.kind != "sh run" {
				continue
			}
			count++
			start := time.Now()
			out := r.must(t, r.own.Replace(b.text))
			t.Logf("%s, %s\n%s%s", heading, time.Since(start).Round(100*time.Millisecond), b.text, out)
			switch {
			case strings.Contains(b.text, "curl ") && strings.TrimSpace(out) != "400":
				t.Errorf("%s answers %s, want 400", b.text, out)
			case strings.Contains(b.text, "helm install"):
				r.serve(t, "Recommend")
			case strings.Contains(b.text, "helm upgrade"):
				r.serve(t, "Auto")
			}
		}
	}
	if count < 5 || r.process == nil {
		t.Errorf("%s has only %d blocks of shell", page, count)
	}
}

// recommends fails the test unless the service has decided to grow the volume, and has not grown it.
func (r *reader) recommends(t *testing.T) {
	t.Helper()
	r.waitFor(t, `kubectl -n shop get rap my-rds -o jsonpath='{.status.effectiveMode} {.status.decisions[0].reason}: {.status.decisions[0].message}'`,
		"Recommend Recommend: Storage 40 → 50 GB")
	r.waitFor(t, "kubectl -n shop get rap", "NAME MODE ARMED VOLUME MAX FLAVOR LAST CHANGE LAST DECISION AGE",
		"my-rds Recommend True 40 GB 200 GB rds.mysql.n1.medium.4 Recommend (storage)")
	r.waitFor(t, "kubectl -n shop get rds", "NAME ENGINE VERSION VOLUME FLAVOR STATUS AGE", "my-rds MySQL 8.0 40 rds.mysql.n1.medium.4 ACTIVE")
	if size := r.must(t, "kubectl -n shop get rds my-rds -o jsonpath={.spec.volumesize}"); size != "40" {
		t.Errorf("the Rds requests %s GB in mode Recommend", size)
	}
}

// otherPages runs the blocks of all other pages that are marked with "sh run". A command that reads must print something.
func (r *reader) otherPages(t *testing.T) {
	t.Helper()
	count := 0
	for _, pattern := range []string{"docs/*.md", "docs/runbooks/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(pages) == 0 {
			t.Fatalf("no %s, %v", pattern, err)
		}
		for _, page := range pages {
			for _, b := range blocks(read(t, strings.TrimPrefix(page, root+"/"))) {
				if b.kind != "sh run" || strings.HasSuffix(page, "first-day.md") {
					continue
				}
				count++
				var out string
				err := world.Eventually(t.Context(), "it prints something", func(ctx context.Context) (done bool, err error) {
					out, err = r.sh(ctx, b.text)
					return strings.Contains(b.text, " > ") || strings.Trim(out, " :\n") != "", err
				})
				if err != nil {
					t.Fatalf("%s: %s: %v", page, b.text, err)
				}
				t.Logf("%s\n%s%s", filepath.Base(page), b.text, out)
			}
		}
	}
	if count < 15 {
		t.Errorf("only %d blocks", count)
	}
}

// writeCertificate writes the files tls.crt and tls.key that a reader has for the host.
func writeCertificate(dir string) error {
	server := httptest.NewTLSServer(nil)
	server.Close()
	certificate := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}
