// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// etcdSocket is relative to the working directory, because the path of a socket must be short. Another cluster could take a free
// port before its use, but not a socket. etcd 3.5 requires a port in every URL. It is part of the file's name.
const etcdSocket = "etcd.sock:0"

func (c *Cluster) startEtcd(ctx context.Context) error {
	p, err := startProcess(filepath.Join(c.binaries, etcdName), c.dir,
		"--data-dir=etcd",
		"--listen-client-urls=unix://"+etcdSocket,
		"--advertise-client-urls=http://localhost:2379", // required, and not used
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync=true",
		"--enable-grpc-gateway=false", // that of etcd 3.5 cannot dial a relative socket
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	c.etcd = p
	if err := c.reaper.Watch(p.cmd.Process.Pid, true); err != nil {
		return err
	}
	socket := filepath.Join(c.dir, etcdSocket)
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	return p.waitReady(ctx, client, "http://etcd/health")
}

// startAPIServerAnywhere starts the API server at a free port. It tries another port if another process has taken it first.
func (c *Cluster) startAPIServerAnywhere(ctx context.Context) error {
	for try := 1; ; try++ {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		c.port = listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		c.config.Host = "https://127.0.0.1:" + strconv.Itoa(c.port)
		err = c.startAPIServer(ctx)
		if err == nil {
			return nil
		}
		if try == 5 || !c.apiServer.ended() || !c.apiServer.addressInUse() {
			return err
		}
	}
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	p, err := startProcess(filepath.Join(c.binaries, apiServerName), c.dir,
		"--etcd-servers=unix://"+etcdSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1", // otherwise it needs a route, which a machine without a network lacks
		"--endpoint-reconciler-type=none",
		"--secure-port="+strconv.Itoa(c.port),
		"--tls-cert-file=server.crt",
		"--tls-private-key-file=server.key",
		"--token-auth-file=users.csv",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=tokens.key",
		"--service-account-signing-key-file=tokens.key",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--disable-admission-plugins=ServiceAccount", // it would refuse pods, because there is no default ServiceAccount
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	c.apiServer = p
	if err := c.reaper.Watch(p.cmd.Process.Pid, true); err != nil {
		return err
	}
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: c.roots}, // so that the server of another cluster at this port does not count
	}}
	return p.waitReady(ctx, client, c.config.Host+"/readyz")
}

// waitReady returns once url answers 200, or when the process has ended.
func (p *process) waitReady(ctx context.Context, client *http.Client, url string) error {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		if p.ended() {
			return p.explain(fmt.Errorf("%s ended before it was ready", p.name))
		}
		if answers(ctx, client, url) {
			return nil
		}
		select {
		case <-ctx.Done():
			return p.explain(fmt.Errorf("%s is not ready: %w", p.name, ctx.Err()))
		case <-p.done:
		case <-poll.C:
		}
	}
}

func answers(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// waitForNamespaces waits for the namespaces that the server creates.
func (c *Cluster) waitForNamespaces(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		err := poll(ctx, func(ctx context.Context) error {
			_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for namespace %s: %w", name, err)
		}
	}
	return nil
}

// poll repeats try until it succeeds, and returns its last error when ctx ends.
func poll(ctx context.Context, try func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
