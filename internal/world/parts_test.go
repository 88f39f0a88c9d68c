// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestIngress(t *testing.T) {
	i, err := startIngress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.close(); err != nil {
			t.Error(err)
		}
	})
	post := func() string {
		t.Helper()
		status, text, err := request(t.Context(), http.MethodPost, i.URL+"/smn", bytes.NewReader([]byte("body")))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(status, " ", text)
	}
	backend := func(name string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, name, " ", r.URL.Path, " ", string(body))
		}))
		t.Cleanup(s.Close)
		return s
	}
	if got := post(); got != "503 no backend\n" {
		t.Errorf("without a backend: %s", got)
	}
	a, b := backend("a"), backend("b")
	i.Set(a.URL)
	i.add(b.URL)
	got := map[string]int{}
	for range 4 {
		got[post()]++
	}
	if diff := cmp.Diff(map[string]int{"403 a /smn body": 2, "403 b /smn body": 2}, got); diff != "" {
		t.Errorf("in turn (-want +got):\n%s", diff)
	}
	i.remove(b.URL)
	a.Close()
	if got := post(); got != "502 " {
		t.Errorf("with a backend that is gone: %s", got)
	}
}

func TestTheWardenEndsWhatOutlivesUs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "world")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := startReaper(dir)
	if err != nil {
		t.Fatal(err)
	}
	start := func() (*exec.Cmd, <-chan struct{}) {
		t.Helper()
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait() // it is killed
			close(ended)
		}()
		return cmd, ended
	}
	kept, keptEnd := start()
	left, leftEnd := start()
	for _, step := range []struct {
		pid     int
		running bool
	}{{kept.Process.Pid, true}, {left.Process.Pid, true}, {kept.Process.Pid, false}} {
		if err := w.watch(step.pid, step.running); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.stop(); err != nil { // closes the pipe, as the end of this process would
		t.Fatal(err)
	}
	select {
	case <-leftEnd:
	case <-time.After(Patience):
		t.Error("a process of the world lives on")
	}
	select {
	case <-keptEnd:
		t.Error("a process that was taken from the list has ended")
	default:
	}
	if err := kept.Process.Kill(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder: %v", err)
	}
}

func TestTranscript(t *testing.T) {
	var told []string
	tr := newTranscript(func(l Line) { told = append(told, l.Raw) })
	_, more := tr.since(0)
	whole := `{"level":"info","time":"2026-03-01T10:00:00.5Z","msg":"listening","webhook":"127.0.0.1:1","leading":true}` + "\nnot JSON\nhalf"
	for i := range whole { // byte by byte, as a pipe may give it
		if n, err := tr.Write([]byte{whole[i]}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	select {
	case <-more:
	default:
		t.Error("nobody was told of the lines")
	}
	got, _ := tr.since(0)
	want := []Line{
		{
			Raw: got[0].Raw, Time: time.Date(2026, 3, 1, 10, 0, 0, 5e8, time.UTC), Level: "info", Msg: "listening",
			Fields: map[string]any{"webhook": "127.0.0.1:1", "leading": true},
		},
		{Raw: "not JSON"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if got[0].Field("webhook") != "127.0.0.1:1" || got[0].Field("leading") != "" || got[1].Field("x") != "" {
		t.Error("fields")
	}
	if diff := cmp.Diff([]string{got[0].Raw, "not JSON"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestSamplesAreSummedByLabels(t *testing.T) {
	s := Samples{`n{result="stored",type="a"}`: 1, `n{result="stored",type="b"}`: 2, `n{result="not stored",type="b"}`: 4, `nn{type="b"}`: 8, "n": 16}
	for _, test := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"n", nil, 23},
		{"n", []string{"type=b"}, 6},
		{"n", []string{"result=stored"}, 3},
		{"n", []string{"type=b", "result=stored"}, 2},
		{"n", []string{"type=c"}, 0},
		{"m", nil, 0},
	} {
		if got := s.Sum(test.name, test.labels...); got != test.want {
			t.Errorf("%s %v: %v, want %v", test.name, test.labels, got, test.want)
		}
	}
}

func TestEventuallyNamesWhatItWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := Eventually(ctx, "pigs fly", func(context.Context) (bool, error) {
		if calls++; calls == 3 {
			cancel()
		}
		return true, fmt.Errorf("call %d failed", min(calls, 2))
	})
	if err == nil || err.Error() != "waited in vain until pigs fly: context canceled\ncall 2 failed" {
		t.Errorf("error %v", err)
	}
	if err := Eventually(t.Context(), "it is so", func(context.Context) (bool, error) { return true, nil }); err != nil {
		t.Error(err)
	}
}
