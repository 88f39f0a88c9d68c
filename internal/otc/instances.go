// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"
)

// Instance is a database instance (RDS api: querying_db_instances.rst).
type Instance struct {
	ID         string
	Name       string
	Status     string // as the cloud reports it, such as ACTIVE, MODIFYING, STORAGE FULL
	Mode       string // single, ha or replica
	Engine     string // MySQL, PostgreSQL or SQLServer
	Version    string
	Flavor     string // with the suffix of the mode
	VCPUs      int
	MemoryGB   int
	VolumeGB   int
	VolumeType string
	Nodes      []Node
	ReplicaOf  string   // the primary's id
	Replicas   []string // ids of its read replicas
}

// Node is one machine of an instance.
type Node struct {
	ID     string
	Role   string // master, slave or readreplica
	Status string
	Zone   string
}

// Instances lists all instances of the project.
func (c *Cloud) Instances(ctx context.Context) ([]Instance, error) {
	return c.listInstances(ctx, instances.ListOpts{})
}

// Instance reads one instance. The error wraps ErrNotFound if there is none. The API has no path for one instance,
// only a filter.
func (c *Cloud) Instance(ctx context.Context, id string) (Instance, error) {
	found, err := c.listInstances(ctx, instances.ListOpts{Id: id}, id)
	if err != nil {
		return Instance{}, err
	}
	for _, i := range found {
		if i.ID == id {
			return i, nil
		}
	}
	return Instance{}, &Error{Service: string(serviceRDS), Operation: string(opListInstances), Status: http.StatusNotFound,
		Message: "no instance " + id}
}

func (c *Cloud) listInstances(ctx context.Context, opts instances.ListOpts, ids ...string) ([]Instance, error) {
	return everyPage(
		func(r instances.InstanceResponse) string { return r.Id }, instanceOf,
		func(offset int, _ string) ([]instances.InstanceResponse, int, error) {
			opts.Offset, opts.Limit = offset, PageSize
			page, err := instances.List(c.client(ctx, opListInstances, ids...), opts)
			if err != nil {
				return nil, 0, c.transport.wrapError(opListInstances, err)
			}
			return page.Instances, page.TotalCount, nil
		})
}

func instanceOf(r instances.InstanceResponse) Instance {
	i := Instance{
		ID: r.Id, Name: r.Name, Status: r.Status, Mode: strings.ToLower(r.Type),
		Engine: r.DataStore.Type, Version: r.DataStore.Version, Flavor: r.FlavorRef,
		VCPUs: number(r.Cpu), MemoryGB: number(r.Mem), VolumeGB: r.Volume.Size, VolumeType: r.Volume.Type,
	}
	for _, n := range r.Nodes {
		i.Nodes = append(i.Nodes, Node{ID: n.Id, Role: n.Role, Status: n.Status, Zone: n.AvailabilityZone})
	}
	for _, other := range r.RelatedInstance {
		switch other.Type {
		case "replica_of":
			i.ReplicaOf = other.Id
		case "replica":
			i.Replicas = append(i.Replicas, other.Id)
		}
	}
	return i
}

// number parses a number that the API sends as text; 0 if it is not a number.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}

// missing changes the status of 405 and 501 to 404, because an API that lacks a call may answer with any of them.
func missing(err error) error {
	if e, ok := errors.AsType[*Error](err); ok &&
		(e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented) {
		e.Status = http.StatusNotFound
	}
	return err
}
