// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// sandbox starts the program of make sandbox, and returns the URL of its status page.
func sandbox(t *testing.T) (address string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "sandbox")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../test/sandbox").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(binary, "up")
	stdout, err := cmd.StdoutPipe()
	cmd.Stderr = cmd.Stdout
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // fails only if the process has ended
		_, _ = io.Copy(&output, stdout)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("the sandbox ended with %v\n%s", err, output.String())
		}
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); { // the few lines after that one fit the pipe
		output.WriteString(lines.Text() + "\n")
		if m := regexp.MustCompile(`Status page +(http://\S+)/`).FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	t.Fatal("the sandbox ended without printing the URL of its page")
	return ""
}

func TestSandboxInABrowser(t *testing.T) {
	t.Parallel()
	if os.Getenv("CHROMIUM") == "" {
		open(t, "light") // skips the test
	}
	address := sandbox(t)
	b := open(t, "light", strings.TrimPrefix(address, "http://"))
	b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`//button[contains(., "3 Armed")]`)) // without a reload

	// The disk of orders fills up by itself. The alarm is at 30 of 40 GB.
	b.do(chromedp.EmulateViewport(1200, 900))
	b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`//tbody//div[text()="Storage 40 → 50 GB"]`)) // without a reload
	b.do(chromedp.Navigate(address+"/#/default/orders"), chromedp.WaitVisible(`svg.plot .letter`))
	if got := b.text("main"); !strings.Contains(got, "Completed") || !strings.Contains(got, "% used, alarm at 75 %") {
		t.Errorf("the database is\n%s", got)
	}
	b.checkAccessibility("a database that has grown")
	b.saveScreenshot("grown-light")
}
