// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// claimsAnnotation holds the claims of all installations in the cluster. It is on a lease in the system namespace: a
	// user with the right to edit one namespace must not be able to claim the databases of others.
	claimsAnnotation = autopilotv1.Group + "/claims"
	// claimDuration is one minute, so that another installation can start soon after this one was removed.
	claimDuration = time.Minute
	// claimRenewal leaves time for two failed renewals.
	claimRenewal = claimDuration / 3
)

// Claim states which namespaces an installation manages. Two installations over the same namespaces would remove each
// other's subscriptions for ever.
type Claim struct {
	Release    string    `json:"release"` // NAMESPACE/NAME of the lease of its leader
	PublicURL  string    `json:"publicURL"`
	Namespaces []string  `json:"namespaces,omitempty"` // empty means all
	Since      time.Time `json:"since"`
	Renewed    time.Time `json:"renewed"`
}

// ClaimedError means that another installation claimed one of our namespaces first.
type ClaimedError struct{ Other Claim }

func (e *ClaimedError) Error() string {
	namespaces := "all namespaces"
	if len(e.Other.Namespaces) > 0 {
		namespaces = "namespace " + strings.Join(e.Other.Namespaces, ", ")
	}
	return fmt.Sprintf("the installation %s with --public-url=%s already manages %s: stop one of the two, or give them different --watch-namespaces. The claim of a stopped one ends after %s",
		e.Other.Release, e.Other.PublicURL, namespaces, claimDuration)
}

// CheckClaim returns a *ClaimedError if another installation manages one of the claim's namespaces. It stores nothing.
func (c *Cluster) CheckClaim(ctx context.Context, own Claim) error {
	return c.claim(ctx, own, false)
}

// WithClaim stores the claim, and renews it while run runs. If another installation claimed a namespace first, it ends
// run and returns a *ClaimedError. Any other failure is only logged: the databases must not depend on it.
func (c *Cluster) WithClaim(ctx context.Context, own Claim, run func(context.Context)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	renew := func() (lost bool) {
		err := c.claim(ctx, own, true)
		claimed, lost := errors.AsType[*ClaimedError](err)
		switch {
		case lost:
			cancel(claimed)
		case err != nil && ctx.Err() == nil:
			c.log.Warn("renew the claim", zap.Error(err))
		}
		return lost
	}
	if !renew() {
		renewing := make(chan struct{})
		go func() {
			defer close(renewing)
			tick := time.NewTicker(claimRenewal)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					renew()
				}
			}
		}()
		run(ctx)
		cancel(nil)
		<-renewing
	}
	if claimed, lost := errors.AsType[*ClaimedError](context.Cause(ctx)); lost {
		return claimed
	}
	return nil
}

// claim compares our claim with those of other installations, and stores it if hold is set. The resourceVersion of the
// lease decides between two that store at the same time.
func (c *Cluster) claim(ctx context.Context, own Claim, hold bool) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	leases := c.leases.Leases(c.system)
	return autopilot.RetryConflict(ctx, func() error {
		lease, err := leases.Get(ctx, self, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return c.explainLease(err)
		}
		if missing {
			lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.system, Name: self}}
		}
		claims := liveClaims(lease, time.Now())
		c.claims.Store(&claims)
		own = own.renewed(claims, time.Now())
		if first := own.precededBy(claims); first != nil {
			return &ClaimedError{*first}
		}
		if !hold {
			return nil
		}
		claims = append(slices.DeleteFunc(claims, func(o Claim) bool { return o.Release == own.Release }), own)
		text, err := json.Marshal(claims)
		if err != nil {
			return fmt.Errorf("encode the claims: %w", err)
		}
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, claimsAnnotation, string(text))
		if missing {
			_, err = leases.Create(ctx, lease, metav1.CreateOptions{FieldManager: self})
		} else {
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: self})
		}
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%w: %w", autopilot.ErrConflict, err) // another installation has just stored its claim
		}
		return c.explainLease(err)
	})
}

// IsWatched reports whether this installation watches a namespace, or another one whose claim was alive when we last
// renewed ours.
func (c *Cluster) IsWatched(namespace string) bool {
	claims := c.claims.Load()
	return c.watches(namespace) || claims != nil && slices.ContainsFunc(*claims, func(o Claim) bool {
		return o.overlaps(Claim{Namespaces: []string{namespace}})
	})
}

func (c *Cluster) explainLease(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("claim the watched namespaces in lease %s/%s: %w", c.system, self,
		c.explainError(err, "leases", "coordination.k8s.io"))
}

// liveClaims returns the claims that were renewed within claimDuration. Text that is not ours counts as no claim.
func liveClaims(lease *coordinationv1.Lease, now time.Time) (live []Claim) {
	var all []Claim
	if json.Unmarshal([]byte(lease.Annotations[claimsAnnotation]), &all) != nil {
		return nil
	}
	for _, o := range all {
		if now.Sub(o.Renewed).Abs() < claimDuration {
			live = append(live, o)
		}
	}
	return live
}

// renewed returns the claim with its times. It is as old as our live claim, if there is one.
func (c Claim) renewed(live []Claim, now time.Time) Claim {
	c.Since, c.Renewed = now, now
	for _, o := range live {
		if o.Release == c.Release {
			c.Since = o.Since
		}
	}
	return c
}

// precededBy returns an older claim of another installation on one of the namespaces, or nil.
func (c Claim) precededBy(live []Claim) *Claim {
	for _, o := range live {
		older := o.Since.Before(c.Since) || o.Since.Equal(c.Since) && o.Release < c.Release
		if o.Release != c.Release && o.overlaps(c) && older {
			return &o
		}
	}
	return nil
}

func (c Claim) overlaps(other Claim) bool {
	return len(c.Namespaces) == 0 || len(other.Namespaces) == 0 ||
		slices.ContainsFunc(c.Namespaces, func(ns string) bool { return slices.Contains(other.Namespaces, ns) })
}
