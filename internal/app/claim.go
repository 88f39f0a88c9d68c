// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/k8s"
)

// claim returns what this installation claims. The lease of its leader identifies it, so that --public-url can change
// in a rolling update.
func claim(o Options) (k8s.Claim, error) {
	namespace, err := k8s.LeaseNamespace(o.LeaseNamespace)
	return k8s.Claim{Release: namespace + "/" + o.LeaseName, PublicURL: o.PublicURL.Redacted(), Namespaces: o.Namespaces},
		err
}

// checkClaim returns an error if another installation manages one of the watched namespaces. Without leader election
// there is no lease that identifies this installation, so nothing is claimed. A claim that cannot be read is only
// logged, for example if the rights are those of an older release: the databases must not depend on this check.
func checkClaim(ctx context.Context, o Options, kube *k8s.Cluster) error {
	if !o.LeaderElect {
		return nil
	}
	own, err := claim(o)
	if err != nil {
		return err
	}
	err = kube.CheckClaim(ctx, own)
	if _, claimed := errors.AsType[*k8s.ClaimedError](err); claimed {
		return err
	}
	if err != nil {
		o.Log.Warn("check the claims of other installations", zap.Error(err))
	}
	return nil
}
