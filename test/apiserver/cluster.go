// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// startTimeout bounds the start of both servers on a busy machine.
const startTimeout = 5 * time.Minute

// Options of a cluster. The zero value is a cluster without custom resources.
type Options struct {
	// CRDs are files with CustomResourceDefinitions, installed before Start returns.
	CRDs []string
}

// Cluster is a running kube-apiserver with its etcd. Its methods may be called from several goroutines.
type Cluster struct {
	binaries string
	dir      string // working directory of both servers: keys, data, logs
	port     int
	roots    *x509.CertPool
	config   *rest.Config
	reaper   *Reaper // nil where another process has started the cluster

	mu        sync.Mutex // guards what follows
	etcd      *process
	apiServer *process
	stopped   bool
}

// Start starts a cluster with RBAC in a few seconds. The first start on a machine also compiles the servers for minutes. ctx bounds
// the start only. The cluster ends, and its files are removed, with Stop or when this process is killed.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	binaries, err := Servers(ctx)
	if err != nil {
		return nil, err
	}
	c := &Cluster{binaries: binaries}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start a cluster: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	dir, err := os.MkdirTemp("", "apiserver-")
	if err != nil {
		return fmt.Errorf("temporary folder: %w", err)
	}
	c.dir = dir
	if c.reaper, err = StartReaper(dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.writeKeys(); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.startAPIServerAnywhere(ctx); err != nil {
		return err
	}
	if err := WriteKubeconfig(c.Kubeconfig(), c.config); err != nil {
		return err
	}
	if err := c.waitForNamespaces(ctx); err != nil {
		return err
	}
	if len(o.CRDs) > 0 {
		if _, err := c.Apply(ctx, ApplyOptions{}, o.CRDs...); err != nil {
			return err
		}
	}
	return nil
}

// writeKeys creates the server's certificate, the key of ServiceAccount tokens and the token of the admin.
func (c *Cluster) writeKeys() error {
	server, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, []string{"localhost"})
	if err != nil {
		return fmt.Errorf("certificate of the server: %w", err)
	}
	tokens, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("key for tokens: %w", err)
	}
	admin := rand.Text()
	users := admin + ",apiserver-admin,apiserver-admin,system:masters\n"
	for name, content := range map[string][]byte{
		"server.crt": server, "server.key": key, "tokens.key": tokens, "users.csv": []byte(users),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o600); err != nil {
			return fmt.Errorf("keys: %w", err)
		}
	}
	c.roots = x509.NewCertPool()
	c.roots.AppendCertsFromPEM(server) // its authority is in the same file
	c.config = &rest.Config{
		QPS:             -1, // no limit of the client
		BearerToken:     admin,
		TLSClientConfig: rest.TLSClientConfig{CAData: server},
	}
	return nil
}

// Stop ends both servers and removes their files. It may be called twice. It does not stop the cluster of another process.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.reaper == nil {
		return nil
	}
	c.stopped = true
	for _, p := range []*process{c.apiServer, c.etcd} {
		if p == nil {
			continue
		}
		p.kill()
		if err := c.reaper.Watch(p.cmd.Process.Pid, false); err != nil {
			return fmt.Errorf("stop a cluster: %w", err)
		}
	}
	if err := c.reaper.Stop(); err != nil {
		return fmt.Errorf("stop a cluster: %w", err)
	}
	return nil
}
