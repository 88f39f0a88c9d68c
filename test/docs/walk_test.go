// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/world"
)

// TestAReaderOfTheReadmeGetsADecision types the README's commands, in an empty cluster and an empty home folder.
func TestAReaderOfTheReadmeGetsADecision(t *testing.T) {
	r := newReader(t)
	r.at["The first database"] = func() { // The reader has one already.
		r.must(t, "kubectl create namespace shop; grep -v autopilot: deploy/examples/rds.yaml | kubectl -n shop apply -f -")
	}
	r.walk(t, "README.md")
	r.recommends(t)
}

// TestAReaderOfTheFirstDayGetsADecision types all commands of the first day. The other pages' commands follow in the same
// world, because they are about a service that runs.
func TestAReaderOfTheFirstDayGetsADecision(t *testing.T) {
	r := newReader(t)
	r.at["A week later"] = func() { r.recommends(t) } // This section sets the mode Auto.
	r.walk(t, "docs/first-day.md")
	r.says(t, "kubectl get rap my-rds -o jsonpath='{.status.effectiveMode}'", "Auto")
	r.env = append(r.env, r.world.Cloud.Env()...) // The commands of other pages run on the reader's machine.
	r.otherPages(t)
}

// walk types every block of shell on a page, from the first to the last. A reader replaces the page's example values by
// his own, and so does walk.
func (r *reader) walk(t *testing.T, page string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	typed := 0
	for section := range strings.SplitSeq(string(text), "\n## ") {
		heading, _, _ := strings.Cut(section, "\n")
		for title, do := range r.at {
			if strings.HasSuffix(heading, title) {
				do()
			}
		}
		for _, b := range blocks(section) {
			if b.kind != "sh" && b.kind != "sh run" {
				continue
			}
			typed++
			start := time.Now()
			out := r.must(t, r.own.Replace(b.text))
			t.Logf("%s, %s\n%s%s", heading, time.Since(start).Round(100*time.Millisecond), b.text, out)
			if strings.Contains(b.text, "curl ") && strings.TrimSpace(out) != "400" {
				t.Errorf("%s answers %s, want 400", b.text, out)
			}
		}
	}
	if typed < 5 {
		t.Errorf("%s has only %d blocks of shell", page, typed)
	}
}

// recommends fails the test unless the service has decided to grow the volume, and has not grown it.
func (r *reader) recommends(t *testing.T) {
	t.Helper()
	r.says(t, `kubectl -n shop get rap my-rds -o jsonpath='{.status.effectiveMode} {.status.decisions[0].reason}: {.status.decisions[0].message}'`,
		"Recommend Recommend: Storage 40 → 50 GB")
	if size := r.must(t, "kubectl -n shop get rds my-rds -o jsonpath={.spec.volumesize}"); size != "40" {
		t.Errorf("the Rds requests %s GB in mode Recommend", size)
	}
}

// otherPages types the blocks of all other pages that are marked with "sh run".
func (r *reader) otherPages(t *testing.T) {
	t.Helper()
	typed := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks(string(text)) {
			if b.kind != "sh run" {
				continue
			}
			typed++
			out := r.must(t, b.text)
			if !strings.Contains(b.text, " > ") && strings.Trim(out, " :\n") == "" { // It may have nothing to say yet.
				err := world.Eventually(t.Context(), "it says something", func(ctx context.Context) (bool, error) {
					var err error
					out, err = r.sh(ctx, b.text)
					return strings.Trim(out, " :\n") != "", err
				})
				if err != nil {
					t.Errorf("%s: %s: %v", page, b.text, err)
				}
			}
			t.Logf("%s\n%s%s", filepath.Base(page), b.text, out)
		}
	}
	if typed < 15 {
		t.Errorf("only %d blocks", typed)
	}
}

// reader is a shell in front of an empty cluster. A stand-in for the kubelet runs the pod of the chart's Deployment.
type reader struct {
	*shell
	own *strings.Replacer // from the example values of the pages to those of this world
	at  map[string]func() // runs before the section with that heading
}

func newReader(t *testing.T) *reader {
	t.Helper()
	s := newWorld(t)
	helm, err := filepath.Abs(root + "/.cache/bin/helm")
	if err == nil {
		_, err = os.Stat(helm)
	}
	if err != nil {
		t.Skip("left out, because there is no helm: make tools builds it")
	}
	bin := filepath.Join(s.dir, "bin")
	err = errors.Join(os.Symlink(helm, filepath.Join(bin, "helm")), writeCertificate(s.dir))
	if err != nil {
		t.Fatal(err)
	}
	// The world begins with our definitions and rights. A reader has none of them.
	s.must(t, "kubectl delete -f deploy/rbac.yaml -f deploy/crds --wait")
	cloud := map[string]string{}
	for _, entry := range s.world.Cloud.Env() {
		name, value, _ := strings.Cut(entry, "=")
		cloud[name] = value
	}
	s.env = []string{"KUBECONFIG=" + s.world.AdminKubeconfig(), "HOME=" + s.dir, "PATH=" + bin + ":/usr/bin:/bin"}
	r := &reader{shell: s, at: map[string]func(){}, own: strings.NewReplacer(
		// An Ingress has no IP address as its host.
		"https://autopilot.example.com/smn", strings.Replace(s.world.PublicURL(), "127.0.0.1", "localhost", 1),
		"https://iam.eu-de.otc.t-systems.com/v3", cloud["OS_AUTH_URL"],
		"eu-de_my-project", cloud["OS_PROJECT_NAME"],
		"OTC-EU-DE-00000000000000000000", cloud["OS_USER_DOMAIN_NAME"],
		"username: rds-autopilot", "username: "+cloud["OS_USERNAME"],
		"password: change-me", "password: "+cloud["OS_PASSWORD"],
	)}
	startKubelet(t, s)
	return r
}

// writeCertificate writes the files tls.crt and tls.key that a reader has of his host.
func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"autopilot.example.com"}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: certificate}, "tls.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return fmt.Errorf("write the certificate: %w", err)
		}
	}
	return nil
}
