// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/internal/recording"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// seed makes what the recording lists before it makes anything itself: instances, topics, subscriptions and rules.
func (p *player) seed(ctx context.Context, lines []recording.Exchange) error {
	login := recording.Exchange{Method: http.MethodPost, Path: "/v3/auth/tokens"}
	for _, x := range lines {
		if x.Method == http.MethodPost && strings.HasSuffix(x.Path, "/auth/tokens") && x.Status < 300 {
			login = x
			break
		}
	}
	_, _, reply, err := p.send(ctx, login)
	if err != nil {
		return err
	}
	p.bind(decode(login.Reply), decode(reply))
	for _, row := range rows(first(lines, "/instances"), "instances") {
		in, err := p.sim.AddInstance(p.instance(row))
		if err != nil {
			return err
		}
		p.bind(at(row, "id"), in.ID)
		for i, n := range rows(row, "nodes") {
			if i < len(in.Nodes) {
				p.bind(at(n, "id"), in.Nodes[i].ID)
			}
		}
	}
	made := createdIn(lines)
	for _, kind := range []struct{ list, rows, id, path string }{
		{"/topics", "topics", "topic_urn", "/v2/{project}/notifications/topics"},
		{"/subscriptions", "subscriptions", "subscription_urn", "/v2/{project}/notifications/topics/{topic}/subscriptions"},
		{"/alarms", "metric_alarms", "alarm_id", "/V1.0/{project}/alarms"},
	} {
		list := rows(first(lines, kind.list), kind.rows)
		if kind.rows != "subscriptions" {
			slices.Reverse(list) // the list begins with the newest
		}
		for _, row := range list {
			path := strings.NewReplacer("{project}", p.sim.ProjectID(), "{topic}", text(at(row, "topic_urn"))).Replace(kind.path)
			if made[text(at(row, kind.id))] {
				continue
			}
			if err := p.make(ctx, path, kind.id, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// createdIn returns the ids that the recording's own requests return, so that seed does not make them too early.
func createdIn(lines []recording.Exchange) map[string]bool {
	made := map[string]bool{}
	for _, x := range lines {
		for _, key := range []string{"topic_urn", "subscription_urn", "alarm_id"} {
			if id := text(at(decode(x.Reply), key)); x.Method == http.MethodPost && id != "" {
				made[id] = true
			}
		}
	}
	return made
}

// make creates a topic, a subscription or a rule like a listed one, and binds its id.
func (p *player) make(ctx context.Context, path, id string, row any) error {
	body, err := json.Marshal(row)
	if err != nil {
		return err
	}
	status, _, reply, err := p.send(ctx, recording.Exchange{Method: http.MethodPost, Path: path, Request: body})
	if err == nil && status >= 300 {
		err = fmt.Errorf("POST %s: %d: %s", path, status, reply)
	}
	p.bind(at(row, id), at(decode(reply), id))
	return err
}

// instance returns an instance of the simulation like a listed one. Two fifths of the volume are used.
func (p *player) instance(row any) simcloud.Instance {
	size := number(at(row, "volume", "size"))
	in := simcloud.Instance{
		Flavor: text(at(row, "flavor_ref")), VolumeGB: int(size), VolumeType: text(at(row, "volume", "type")),
		Version: text(at(row, "datastore", "version")), Workload: simcloud.Workload{UsedGB: 0.4 * size, CPUDemand: 0.6},
	}
	codes := p.sim.FlavorCodes()
	if !slices.Contains(codes, in.Flavor) { // the real catalogue has more flavors
		engine := map[string]string{"PostgreSQL": "rds.pg.", "SQLServer": "rds.mssql."}[text(at(row, "datastore", "type"))]
		if engine == "" {
			engine = "rds.mysql."
		}
		ha := text(at(row, "type")) == "Ha"
		in.Version = ""
		if i := slices.IndexFunc(codes, func(c string) bool { return strings.HasPrefix(c, engine) && strings.HasSuffix(c, ".ha") == ha }); i >= 0 {
			in.Flavor = codes[i]
		}
	}
	return in
}

func decode(body []byte) (v any) {
	if err := json.Unmarshal(body, &v); err != nil {
		return nil
	}
	return v
}

// at returns a value below a decoded one, or nil.
func at(v any, keys ...string) any {
	for _, key := range keys {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func rows(v any, key string) []any {
	list, _ := at(v, key).([]any)
	return list
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func number(v any) float64 {
	n, _ := v.(float64)
	return n
}
