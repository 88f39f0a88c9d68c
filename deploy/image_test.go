// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// stage is one FROM of the Dockerfile and its instructions, one per line.
type stage struct {
	from  string
	lines []string
}

func (s stage) all(instruction string) []string {
	var found []string
	for _, l := range s.lines {
		if rest, ok := strings.CutPrefix(l, instruction+" "); ok {
			found = append(found, rest)
		}
	}
	return found
}

func stages(t *testing.T) []stage {
	t.Helper()
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var found []stage
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		line = strings.Join(strings.Fields(line), " ")
		switch from, ok := strings.CutPrefix(line, "FROM "); {
		case ok:
			found = append(found, stage{from: from})
		case len(found) > 0 && line != "" && !strings.HasPrefix(line, "#"):
			last := &found[len(found)-1]
			last.lines = append(last.lines, line)
		}
	}
	if len(found) < 2 {
		t.Fatalf("%d stages, want one that builds and one that runs", len(found))
	}
	return found
}

// inPath is where kubectl exec finds the binary by its name. The base image has /usr/local/bin in its path.
const inPath = "/usr/local/bin/rds-autopilot"

func TestImageHoldsOneBinaryAndRunsItWithoutRoot(t *testing.T) {
	all := stages(t)
	final := all[len(all)-1]
	if !regexp.MustCompile(`^gcr\.io/distroless/static-debian\d+:nonroot@`).MatchString(final.from) {
		t.Errorf("it stands on %s, want distroless/static: no shell, no package manager", final.from)
	}
	for _, s := range all {
		if !regexp.MustCompile(`@sha256:[0-9a-f]{64}( AS \w+)?$`).MatchString(s.from) {
			t.Errorf("%s is not pinned by its digest", s.from)
		}
	}
	if base := "defaultBaseImage: " + final.from + "\n"; !strings.Contains(document(t, ".ko.yaml"), base) {
		t.Errorf(".ko.yaml builds releases on another base, want %s", base)
	}
	for _, l := range final.lines {
		if what, _, _ := strings.Cut(l, " "); !slices.Contains([]string{"ARG", "LABEL", "COPY", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}, what) {
			t.Errorf("its last stage has %q", l)
		}
	}
	if copied := final.all("COPY"); len(copied) != 1 || copied[0] != "--from=build /rds-autopilot "+inPath {
		t.Errorf("it copies %q, want the binary alone", copied)
	}
	if entry := final.all("ENTRYPOINT"); len(entry) != 1 || entry[0] != `["`+inPath+`"]` {
		t.Errorf("its entrypoint is %q, want the binary without a shell", entry)
	}
	user := final.all("USER")
	pod := podSpec(t).SecurityContext
	if len(user) != 1 || pod.RunAsUser == nil || pod.RunAsGroup == nil || *pod.RunAsUser == 0 || *pod.RunAsGroup == 0 ||
		user[0] != strconv.FormatInt(*pod.RunAsUser, 10)+":"+strconv.FormatInt(*pod.RunAsGroup, 10) {
		t.Errorf("it runs as %q: want the numbers of the pod, and not root's", user)
	}
	built := false
	for _, s := range all[:len(all)-1] {
		for _, run := range s.all("RUN") {
			built = built || strings.Contains(run, "CGO_ENABLED=0") && strings.Contains(run, "go build") && strings.Contains(run, "-trimpath")
		}
	}
	if !built {
		t.Error("nothing builds the binary with CGO_ENABLED=0 and -trimpath")
	}
}

// TestPodHasNoMoreThanItNeeds checks what the restricted standard does not, see TestPodsPassTheRestrictedStandard.
func TestPodHasNoMoreThanItNeeds(t *testing.T) {
	pod := podSpec(t)
	if len(pod.Containers) != 1 || len(pod.InitContainers)+len(pod.EphemeralContainers) > 0 {
		t.Fatal("more than one container")
	}
	c := pod.Containers[0]
	yes := func(b *bool) bool { return b != nil && *b }
	for what, ok := range map[string]bool{
		"its root file system can be written":    yes(c.SecurityContext.ReadOnlyRootFilesystem),
		"the container undoes the pod's context": c.SecurityContext.RunAsUser == nil && c.SecurityContext.RunAsNonRoot == nil && c.SecurityContext.SeccompProfile == nil,
		// The token of its ServiceAccount is mounted by Kubernetes, and needed.
		"it mounts more than its credentials, or for writing": len(pod.Volumes) == 1 && pod.Volumes[0].Secret != nil && len(c.VolumeMounts) == 1 && c.VolumeMounts[0].ReadOnly,
		"others in the container may read its credentials":    len(pod.Volumes) == 1 && pod.Volumes[0].Secret != nil && pod.Volumes[0].Secret.DefaultMode != nil && *pod.Volumes[0].Secret.DefaultMode&0o007 == 0,
		"it shares the default account":                       pod.ServiceAccountName == own,
		"its memory has no limit":                             !c.Resources.Limits.Memory().IsZero(),
		"its requests are not set":                            !c.Resources.Requests.Memory().IsZero() && !c.Resources.Requests.Cpu().IsZero(),
		"its environment holds more than flags, the names of cloud and pod and the limit of its memory": len(c.EnvFrom) == 0 && !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return !strings.HasPrefix(e.Name, "RDS_AUTOPILOT_") && !slices.Contains([]string{"OS_CLOUD", "POD_NAME", "MEMORY_LIMIT_MIB", "GOMEMLIMIT"}, e.Name) || e.ValueFrom != nil && e.ValueFrom.ResourceFieldRef == nil && e.ValueFrom.FieldRef == nil
		}),
	} {
		if !ok {
			t.Error(what)
		}
	}
}
