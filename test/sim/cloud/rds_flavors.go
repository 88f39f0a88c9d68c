// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	_ "embed" // the catalogue
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// flavorData has the documented flavors, and the c2 codes of older instances, which the documents only have in examples.
// RDS umn: db_instance_classes.rst; RDS api: querying_database_specifications.rst.
//
//go:embed data/rds-flavors.json
var flavorData []byte

// States of a flavor in a zone. RDS api: querying_database_specifications.rst.
const (
	FlavorNormal      = "normal"
	FlavorUnsupported = "unsupported"
	FlavorSoldOut     = "sellout"
)

type flavor struct {
	Engine string            `json:"engine"`
	VCPUs  int               `json:"vcpus"`
	RAM    int               `json:"ram"` // GB
	Group  string            `json:"group"`
	Codes  map[string]string `json:"codes"` // by mode: single, ha, replica
}

func modes() []string { return []string{"single", "ha", "replica"} }

// flavor returns the flavor and the mode of a code with its suffix, or nil.
func (c *Cloud) flavor(code string) (*flavor, string) {
	for i := range c.flavors {
		for mode, have := range c.flavors[i].Codes {
			if have == code {
				return &c.flavors[i], mode
			}
		}
	}
	return nil, ""
}

// versions returns the versions that offer the flavor in that mode. SQL Server: the Enterprise Edition has no single
// mode, the Standard Edition no replicas. RDS api: creating_a_db_instance.rst, db_instance_classes.rst.
func (f *flavor) versions(mode string) []string {
	switch f.Engine {
	case "MySQL":
		return []string{"5.7", "8.0"}
	case "PostgreSQL":
		return []string{"12", "13", "14", "15", "16", "17"}
	}
	se, ee := []string{"2017_SE", "2019_SE", "2022_SE"}, []string{"2017_EE", "2019_EE", "2022_EE"}
	switch mode {
	case "single":
		return se
	case "replica":
		return ee
	}
	return append(se, ee...)
}

// SetFlavorStatus sets the status of a flavor in a zone: normal, unsupported or sellout. The code has the suffix of the
// mode.
func (c *Cloud) SetFlavorStatus(code, zone, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.zoneStatus[code] == nil {
		c.zoneStatus[code] = map[string]string{}
	}
	c.zoneStatus[code][zone] = status
}

func (c *Cloud) flavorStatus(code, zone string) string {
	if s := c.zoneStatus[code][zone]; s != "" {
		return s
	}
	return FlavorNormal
}

// engineByName ignores the case. It returns "" for an unknown engine.
func engineByName(name string) string {
	for _, e := range []string{"MySQL", "PostgreSQL", "SQLServer"} {
		if strings.EqualFold(e, name) {
			return e
		}
	}
	return ""
}

func (c *Cloud) listFlavors(q *call) reply {
	engine, version := engineByName(q.PathValue("engine")), q.URL.Query().Get("version_name")
	if engine == "" {
		return rdsError(http.StatusBadRequest, "DBS.200040", "The DB engine or version is not supported.")
	}
	rows := []fields{}
	for i := range c.flavors {
		f := &c.flavors[i]
		for _, mode := range modes() {
			code := f.Codes[mode]
			if f.Engine != engine || code == "" || slices.Contains(c.settings.UnknownFlavors, code) {
				continue
			}
			versions := f.versions(mode)
			if version != "" && !slices.Contains(versions, version) {
				continue
			}
			status, desc := map[string]string{}, map[string]string{}
			for _, z := range c.Zones() {
				status[z], desc[z] = c.flavorStatus(code, z), z
			}
			rows = append(rows, fields{
				"id": flavorID(code), "vcpus": strconv.Itoa(f.VCPUs), "ram": f.RAM, "spec_code": code, "version_name": versions,
				"instance_mode": mode, "group_type": f.Group, "az_status": status, "az_desc": desc,
			})
		}
	}
	return jsonReply(http.StatusOK, fields{"flavors": rows})
}

// listResizeFlavors returns all other flavors of the same engine, version and mode, larger and smaller ones.
// RDS api: querying_available_instance_classes_for_a_db_instance.rst.
func (c *Cloud) listResizeFlavors(q *call, in *instance) reply {
	if c.settings.NoResizeList {
		return gatewayError(http.StatusNotFound, "APIGW.0101", "The API does not exist or has not been published in the environment")
	}
	if rep, refused := c.refused("ListResizeFlavors"); refused {
		return rep
	}
	groups := map[string][]fields{}
	_, mode := c.flavor(in.Flavor)
	for i := range c.flavors {
		f := &c.flavors[i]
		code := f.Codes[mode]
		if f.Engine != in.Engine || code == "" || code == in.Flavor || !slices.Contains(f.versions(mode), in.Version) {
			continue
		}
		status := map[string]string{}
		for _, z := range c.Zones() {
			status[z] = "normal"
			if c.flavorStatus(code, z) != FlavorNormal {
				status[z] = "abandon"
			}
		}
		group := f.Group
		if group == "normal" {
			group = "general"
		}
		groups[group] = append(groups[group], fields{
			"id": flavorID(code), "code": code, "vcpus": strconv.Itoa(f.VCPUs), "ram": strconv.Itoa(f.RAM), "az_status": status,
		})
	}
	out := []fields{}
	for _, g := range []string{"general", "dedicated"} {
		if len(groups[g]) > 0 {
			out = append(out, fields{"group_type": g, "compute_flavors": groups[g]})
		}
	}
	return jsonReply(http.StatusOK, fields{"flavor_groups": out})
}
