// SPDX-License-Identifier: Apache-2.0

// Package autopilot is the vocabulary of the domain: metrics and reasons, the policy, the case and its facts,
// decisions, sizes and thresholds, and how far a change has come. It is plain data and arithmetic. Time is an argument;
// the package has no I/O and no state.
//
// Data flows one way: message → signal → decision → intent → patch → outcome. The rooms below this package do the work:
// decide walks through the guards, record keeps what follows, plan shows the same walk as a dry run, and controller is
// the loop around them. This package must not import any of them, nor HTTP, Kubernetes clients or the cloud's APIs.
//
// Start with Case in case.go, and then read the table of guards in decide/guards.go.
package autopilot

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Case holds everything that a decision depends on. Functions that take a Case by value do not modify what it refers
// to.
type Case struct {
	Now  time.Time
	Mode v1alpha1.Mode // the stricter of the policy's and --mode
	Spec v1alpha1.Spec
	// Off says why autopilot is off for this database, or why it is not allowed. The zero value means that it is on.
	Off Off
	// Generation is that of the spec. Contests and ineffective changes are forgotten when it changes.
	Generation int64
	Wanted     Wanted        // what the spec of the Rds requests
	Recheck    time.Duration // the next check while an instance is busy or a change is pending
	// IsSweep means that a sweep requested this check. It reads the used space of every database.
	IsSweep bool

	Instance   *Instance      // nil if it is not known, or not in the cloud
	FormerSeen time.Time      // when this process last saw the size before this one; zero if it never did
	NodeOf     string         // the instance of the node that has the id in place of an instance's; else empty
	Claim      v1alpha1.Claim // who manages this instance, by the rules in the cloud
	// NoRds means that there is no Rds to patch. Wanted is what the instance has.
	NoRds bool
	// Jobs holds the cloud's jobs for pending changes by id, as far as they could be read. The instance was read after
	// them.
	Jobs map[string]Job
	// Accepted is the request time of our last patch of the Rds that the API server has accepted. It makes a text better.
	Accepted *metav1.MicroTime
	// IsSpecLive means that Wanted was read from the API server, not from a cache.
	IsSpecLive bool
	// LastSeen is when this process last saw the instance before this check; zero if it never did, nil if that does not
	// matter.
	LastSeen *time.Time

	Alarms []Alarm
	Status v1alpha1.Status // with the results of the changes that were in progress

	// What follows are facts, which a guard reads when it needs them. Facts has the result of each read: nil, or why the
	// fact could not be read.
	Facts map[Fact]error
	// SizeWriter and FlavorWriter are the field managers that replaced our size and flavor in the Rds; empty if they are
	// not known.
	SizeWriter, FlavorWriter string
	// Catalogue holds the flavors of the instance's engine and version.
	Catalogue []flavors.Flavor
	// Offered holds the codes in the instance's own resize list. IsOffered is false if the cloud has no such list. Then
	// NotOffered is the cloud's text.
	Offered    []string
	IsOffered  bool
	NotOffered string
	// HasPlace means that the change has a place among the --max-flavor-changes flavors that may change at a time.
	HasPlace bool
}

// MayAct reports whether the RdsAutopilot may decide as far as claims are concerned: one of its own rules watches the
// instance, or Cloud Eye has refused to create one, or the mode is not Auto, so that nothing is changed.
func (c Case) MayAct() bool {
	return c.Claim.Holds || c.Status.Alarms.Refused != "" || c.Mode != v1alpha1.ModeAuto
}

// Wanted is the size and flavor that the spec of an Rds requests.
type Wanted struct {
	VolumeGB int
	Flavor   string
}

// Of returns the size in GB or the flavor that the spec requests; empty if it requests none.
func (w Wanted) Of(kind v1alpha1.ChangeKind) string {
	return Instance{VolumeGB: w.VolumeGB, Flavor: w.Flavor}.Of(kind)
}

// Fact names something that a guard reads when it needs it.
type Fact string

// The facts, in the order in which a walk through the guards may need them.
const (
	FactAlarmState   Fact = "alarm state"   // the state of each alarm rule in Cloud Eye
	FactUsedSpace    Fact = "used space"    // the newest measurement of the used space
	FactUsage        Fact = "usage"         // the newest measurement of CPU and memory for each alarm in force
	FactCatalogue    Fact = "catalogue"     // the flavors that the cloud sells for this engine and version
	FactSizeWriter   Fact = "size writer"   // the field manager that wrote spec.volumesize
	FactFlavorWriter Fact = "flavor writer" // the field manager that wrote spec.flavorref
	FactPlace        Fact = "place"         // a place among the flavors that may change at a time
	FactResizeList   Fact = "resize list"   // the flavors that this instance can change to
)

// Reader reads a fact into a case: the loop's from the cloud, a test's from values. If it returns an error, the case may
// have a substitute for the fact, such as the value in a message.
type Reader func(ctx context.Context, c *Case, f Fact) error

// ReadFact reads a fact into the case, unless it was read before, and returns the error of that read. Copies of the case
// made before are not affected.
func (c *Case) ReadFact(ctx context.Context, read Reader, f Fact) error {
	err, isRead := c.Facts[f]
	if isRead {
		return err
	}
	facts := make(map[Fact]error)
	maps.Copy(facts, c.Facts)
	err = read(ctx, c, f)
	facts[f], c.Facts = err, facts
	return err
}

// Knows reports whether a fact was read successfully.
func (c Case) Knows(f Fact) bool {
	err, isRead := c.Facts[f]
	return isRead && err == nil
}

// ReadError returns the errors of all facts that could not be read, or nil.
func (c Case) ReadError() error {
	var failed []error
	for _, f := range slices.Sorted(maps.Keys(c.Facts)) {
		failed = append(failed, c.Facts[f])
	}
	return errors.Join(failed...)
}
