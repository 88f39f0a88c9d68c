// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	service  = "rds-autopilot" // the Deployment, its ServiceAccount and their namespace
	lookTime = 200 * time.Millisecond
)

// kubelet stands in for the controllers and the kubelet of a cluster. It runs one process for the chart's Deployment, with
// the environment of the container, the credentials of the Secret and the rights of the ServiceAccount. It starts the
// process again when the Deployment changes or the process ends.
type kubelet struct {
	world   *world.World
	client  kubernetes.Interface
	dir     string // the pod's: env, log, and the access to the API server
	process *world.Process
	done    int64 // the generation of the Deployment that runs
}

// startKubelet starts it, and puts a kubectl in front of the real one whose exec and logs reach the pod.
func startKubelet(t *testing.T, s *shell) {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.world.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{world: s.world, client: client, dir: filepath.Dir(s.world.Kubeconfig())}
	kubectl := filepath.Join(s.dir, "bin", "kubectl")
	script := fmt.Sprintf(`#!/bin/bash
for word; do
  case "$word" in
  exec) while [ "$1" != -- ]; do shift; done; shift; cd %[1]q; . ./pod.env; exec "$@" ;;
  logs) exec cat %[1]q/pod.log ;;
  --) break ;;
  esac
done
exec %[2]q "$@"
`, k.dir, kubectl+".real")
	if err := errors.Join(os.Rename(kubectl, kubectl+".real"), os.WriteFile(kubectl, []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if err := k.look(ctx); err != nil && ctx.Err() == nil {
				t.Logf("the kubelet: %v", err)
			}
			select {
			case <-time.After(lookTime):
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
}

// look starts the pod of a Deployment that is new or has changed, and reports that it is ready.
func (k *kubelet) look(ctx context.Context) error {
	list, err := k.client.AppsV1().Deployments(service).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 || list.Items[0].Generation == k.done {
		return err
	}
	d := &list.Items[0]
	if k.process != nil {
		if err := k.process.Stop(ctx); err != nil {
			return err
		}
		k.process = nil
	}
	env, err := k.prepare(ctx, d)
	if err != nil {
		return err
	}
	// The world's own flags would win over the environment.
	flags := []string{"--kubeconfig", k.file("pod.kubeconfig"), "--public-url", publicURL(env)}
	if k.process, err = k.world.ServeIn(ctx, env, flags...); err != nil {
		return errors.Join(err, os.WriteFile(k.file("pod.log"), []byte(err.Error()), 0o600))
	}
	err = world.Eventually(ctx, "the pod is ready", func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.process.AdminURL+"/readyz", nil)
		if err != nil {
			return false, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	if err != nil {
		return err
	}
	lines := k.process.Lines()
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas,
		ReadyReplicas: *d.Spec.Replicas, AvailableReplicas: *d.Spec.Replicas,
	}
	_, err = k.client.AppsV1().Deployments(service).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	if err = errors.Join(err, os.WriteFile(k.file("pod.log"), []byte(lines[len(lines)-1].Raw+"\n"), 0o600)); err == nil {
		k.done = d.Generation
	}
	return err
}

// prepare writes the files of the pod, and returns its environment. The simulated cloud's own settings come first: a
// certificate authority and hosts that no reader needs, and its speed.
func (k *kubelet) prepare(ctx context.Context, d *appsv1.Deployment) (env []string, err error) {
	pod := d.Spec.Template.Spec
	for _, v := range pod.Volumes {
		if v.Secret == nil {
			continue
		}
		secret, err := k.client.CoreV1().Secrets(service).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("mount the Secret: %w", err)
		}
		for name, content := range secret.Data {
			if err := os.WriteFile(k.file(name), content, 0o600); err != nil {
				return nil, fmt.Errorf("mount the Secret: %w", err)
			}
		}
	}
	access, err := k.world.Kube.ServiceAccountConfig(ctx, service, pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	if err := apiserver.WriteKubeconfig(k.file("pod.kubeconfig"), access); err != nil {
		return nil, err
	}
	for _, entry := range k.world.Cloud.Env() {
		name, _, _ := strings.Cut(entry, "=")
		env = append(env, name+"=") // The credentials of the pod are those of the Secret alone.
	}
	args := k.world.ServeArgs()[1:]
	for pair := range slices.Chunk(args, 2) {
		name := strings.TrimPrefix(pair[0], "--")
		if name != "public-url" && name != "kubeconfig" {
			env = append(env, "RDS_AUTOPILOT_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+pair[1])
		}
	}
	env = append(env, "RDS_AUTOPILOT_WAIT=3m") // of doctor
	env = append(env, "KUBECONFIG="+k.file("pod.kubeconfig"))
	for _, v := range pod.Containers[0].Env {
		if v.ValueFrom == nil && !strings.Contains(v.Value, "$(") {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	return env, os.WriteFile(k.file("pod.env"), []byte(exports(env)), 0o600)
}

func (k *kubelet) file(name string) string { return filepath.Join(k.dir, name) }

func publicURL(env []string) (url string) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "RDS_AUTOPILOT_PUBLIC_URL="); ok {
			url = value
		}
	}
	return url
}

// exports is an environment as a script.
func exports(env []string) string {
	var text strings.Builder
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return text.String()
}
