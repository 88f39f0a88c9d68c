// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/world"
)

// TestPeakMemoryBesideLargeObjects starts the service beside 450 Rds with an annotation of 1 MB each. A proxy adds them to the
// answers of the API server, so that nobody else needs their memory.
func TestPeakMemoryBesideLargeObjects(t *testing.T) {
	t.Parallel()
	w := shared.Start(t, world.Options{})
	target, err := url.Parse(w.Kube.Config().Host)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	if proxy.Transport, err = rest.TransportFor(w.Kube.Config()); err != nil {
		t.Fatal(err)
	}
	const objects = 450
	annotation := strings.Repeat("x", 1e6)
	api := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if !strings.HasSuffix(r.URL.Path, "/rdss") || query.Has("watch") {
			proxy.ServeHTTP(answer, r)
			return
		}
		var items []string
		begin, _ := strconv.Atoi(query.Get("continue"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		end := min(objects, begin+limit)
		for i := begin; i < end; i++ {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"large-%d","namespace":%q,"annotations":{"a":"%s"}},"spec":{"volumesize":40}}`, i, w.Namespace, annotation))
		}
		answer.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(answer, `{"metadata":{"continue":%q},"items":[%s]}`, strings.TrimSuffix(strconv.Itoa(end), strconv.Itoa(objects)), strings.Join(items, ","))
	}))
	t.Cleanup(func() {
		api.CloseClientConnections() // of the watches
		api.Close()
	})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, apiserver.WriteKubeconfig(kubeconfig, &rest.Config{Host: api.URL}))
	p, err := w.ServeIn(world.Within(t), []string{"GOMEMLIMIT=" + fleetMemory}, "--kubeconfig", kubeconfig)
	must(t, err)
	if peak := memoryMiB(t, p.PID, "VmHWM:"); peak > 110 {
		t.Errorf("the peak is %.0f MiB", peak)
	}
	if err := p.Stop(world.Within(t)); err != nil {
		t.Error(err)
	}
}
