// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
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
	must(t, errors.Join(os.Symlink(tool(t, "helm"), filepath.Join(bin, "helm")), writeCertificate(s.dir)))
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
		must(t, r.process.Stop(t.Context()))
	}
	config, err := r.world.Kube.ServiceAccountConfig(t.Context(), "rds-autopilot", "rds-autopilot")
	if err == nil {
		err = apiserver.WriteKubeconfig(r.access, config)
	}
	must(t, err)
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

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const root = "../.."

// blockLimit is how long one command, or one block of a document, may take.
const blockLimit = 10 * time.Minute

// shell runs commands beside a world with the service, in a folder with deploy, and with kubectl and rds-autopilot in the path.
type shell struct {
	world *world.World
	dir   string
	env   []string
}

// tool returns the path of a program that make tools builds. It skips the test if the program is missing.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(root + "/.cache/bin/" + name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("left out, because there is no %s: make tools builds it", name)
	}
	return path
}

var worlds world.Shared

// newWorld starts a world without the service. The cloud has an instance named my-rds, whose storage is in alarm as soon
// as it is watched, and Kubernetes has no Rds yet.
func newWorld(t *testing.T) *shell {
	t.Helper()
	level.Long(t)
	apiserver.NeedReal(t)
	kubectl := tool(t, "kubectl")
	deploy, err := filepath.Abs(root + "/deploy")
	must(t, err)
	binary, err := world.Binary(t.Context(), false)
	must(t, err)
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	err = errors.Join(os.Mkdir(bin, 0o755), os.Symlink(deploy, filepath.Join(dir, "deploy")),
		os.Symlink(kubectl, filepath.Join(bin, "kubectl")), os.Symlink(binary, filepath.Join(bin, "rds-autopilot")))
	must(t, err)
	w := worlds.StartAlone(t, world.Options{Binary: binary})
	if _, err := w.Cloud.AddInstance(simcloud.Instance{Name: "my-rds", Flavor: "rds.mysql.n1.medium.4", VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 31}}); err != nil {
		t.Fatal(err)
	}
	env := append(w.Cloud.Env(), "KUBECONFIG="+w.AdminKubeconfig(), "HOME="+dir, "PATH="+bin+":/usr/bin:/bin")
	return &shell{w, dir, env}
}

// sh runs a script as bash does with -e, and returns its output.
func (s *shell) sh(ctx context.Context, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blockLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", script, err, out)
	}
	return string(out), err
}

// must runs a script, and fails the test if the script fails.
func (s *shell) must(t *testing.T, script string) string {
	t.Helper()
	out, err := s.sh(t.Context(), script)
	must(t, err)
	return out
}

// waitFor runs a command until it prints all texts.
func (s *shell) waitFor(t *testing.T, script string, want ...string) {
	t.Helper()
	var last string
	err := world.Eventually(t.Context(), fmt.Sprintf("%s prints %q", script, want), func(ctx context.Context) (bool, error) {
		var err error
		last, err = s.sh(ctx, script)
		words := strings.Join(strings.Fields(last), " ")
		return !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(words, text) }), err
	})
	if err != nil {
		t.Errorf("%v\n%s", err, last)
	}
}

// block is the text of a fenced block, without the indentation of the list that it is in.
type block struct {
	kind, text string
}

func blocks(document string) (found []block) {
	for _, m := range regexp.MustCompile("(?ms)^( *)```([a-z]*(?: run)?)\n(.*?)^ *```$").FindAllStringSubmatch(document, -1) {
		found = append(found, block{m[2], regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[3], "")})
	}
	return found
}

// read returns a file of the checkout.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	must(t, err)
	return string(text)
}
