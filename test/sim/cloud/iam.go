// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"net/http"
	"time"
)

// tokenValidity: IAM api, obtaining_a_user_token_through_password_authentication.rst.
const tokenValidity = 24 * time.Hour

// identity is the one user and project of the cloud.
type identity struct {
	domainID, domainName   string
	userID, userName       string
	projectID, projectName string
	password               string
	accessKey, secretKey   string
}

func newIdentity(region string) identity {
	return identity{
		domainID: hexID(32), domainName: "OTC00000000001000000001",
		userID: hexID(32), userName: "simulated-user",
		projectID: hexID(32), projectName: region + "_simulated",
		password:  hexID(24),
		accessKey: "SIMULATED" + hexID(11), secretKey: hexID(40),
	}
}

// Env returns the environment with which the SDK authenticates by password.
func (c *Cloud) Env() []string {
	return c.env(func(id identity) []string {
		return []string{
			"OS_USERNAME=" + id.userName, "OS_PASSWORD=" + id.password,
			"OS_USER_DOMAIN_NAME=" + id.domainName, "OS_DOMAIN_NAME=" + id.domainName,
		}
	})
}

// AKSKEnv returns the environment with which the SDK signs its requests.
func (c *Cloud) AKSKEnv() []string {
	return c.env(func(id identity) []string {
		return []string{"OS_ACCESS_KEY=" + id.accessKey, "OS_SECRET_KEY=" + id.secretKey}
	})
}

func (c *Cloud) env(credentials func(identity) []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.identity
	return append(credentials(id), "OS_AUTH_URL="+c.baseURL()+"/iam/v3", "OS_REGION_NAME="+c.opts.Region,
		"OS_PROJECT_NAME="+id.projectName, "OS_TENANT_NAME="+id.projectName)
}

// RenewCredentials gives the user a new password and a new access key. The old ones and all tokens become invalid.
func (c *Cloud) RenewCredentials() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity.password, c.identity.accessKey, c.identity.secretKey = hexID(24), "SIMULATED"+hexID(11), hexID(40)
	clear(c.tokens)
}

func (c *Cloud) iamOperations() []operation {
	return []operation{
		{service: "iam", name: "CreateToken", pattern: "POST /iam/v3/auth/tokens", open: true, run: c.createToken},
		{service: "iam", name: "ListCatalog", pattern: "GET /iam/v3/auth/catalog", run: c.listCatalog},
		{service: "iam", name: "ListProjects", pattern: "GET /iam/v3/projects", run: c.listProjects},
	}
}

// authenticate accepts a token or a signature.
func (c *Cloud) authenticate(q *call) (reply, bool) {
	if token := q.Header.Get("X-Auth-Token"); token != "" {
		if expires, ok := c.tokens[token]; ok && q.now.Before(expires) {
			return reply{}, true
		}
		return gatewayError(http.StatusUnauthorized, "APIGW.0301", "Incorrect IAM authentication information: token expired or unknown"), false
	}
	if err := c.verifySignature(q); err != nil {
		return gatewayError(http.StatusUnauthorized, "APIGW.0301", "Incorrect IAM authentication information: %v", err), false
	}
	return reply{}, true
}

func (c *Cloud) createToken(q *call) reply {
	var in struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct {
						Name     string `json:"name"`
						Password string `json:"password"`
						Domain   struct {
							Name string `json:"name"`
						} `json:"domain"`
					} `json:"user"`
				} `json:"password"`
			} `json:"identity"`
			Scope struct {
				Project struct {
					ID   string `json:"id"`
					Name string `json:"name"`
				} `json:"project"`
			} `json:"scope"`
		} `json:"auth"`
	}
	if err := q.decode(&in); err != nil {
		return iamError(http.StatusBadRequest, "Request body is invalid.")
	}
	id, user, scope := c.identity, in.Auth.Identity.Password.User, in.Auth.Scope.Project
	if user.Name != id.userName || user.Domain.Name != id.domainName || user.Password != id.password {
		return iamError(http.StatusUnauthorized, "The username or password is wrong.")
	}
	if scope.ID != id.projectID && (scope.ID != "" || scope.Name != id.projectName) {
		return iamError(http.StatusUnauthorized, "The project is not one of the user; only tokens scoped to a project are simulated.")
	}
	token := "MIIsimulated" + hexID(64)
	c.tokens[token] = q.now.Add(c.span(tokenValidity))
	const farFuture = "2219-06-05T12:42:20.000000"
	// Captured in eu-de in 2019, with the last three fields of domain and user.
	domain := fields{"id": id.domainID, "name": id.domainName, "xdomain_id": id.domainName[3:], "xdomain_type": "TSI"}
	rep := jsonReply(http.StatusCreated, fields{"token": fields{
		"methods":    []string{"password"},
		"issued_at":  q.now.UTC().Format("2006-01-02T15:04:05.000000Z"),
		"expires_at": c.tokens[token].UTC().Format("2006-01-02T15:04:05.000000Z"),
		"user":       fields{"id": id.userID, "name": id.userName, "domain": domain, "password_expires_at": farFuture},
		"project":    fields{"id": id.projectID, "name": id.projectName, "domain": domain},
		"roles":      []fields{{"id": "0", "name": "te_admin"}},
		"catalog":    c.catalog(),
	}})
	rep.header.Set("X-Subject-Token", token)
	return rep
}

// catalog returns the catalogue of services. The real cloud gives each service a host, and the simulated one a path. In
// both, a client that derives Cloud Eye from volumev2 must replace the name and the version.
func (c *Cloud) catalog() []fields {
	base, project := c.baseURL(), c.identity.projectID
	entries := [][3]string{
		{"keystone", "identity", base + "/iam/v3"},
		{"smnv2", "smnv2", base + "/smn/v2/" + project},
		{"rdsv3", "rdsv3", base + "/rds/v3/" + project},
		{"cinderv2", "volumev2", base + "/evs/v2/" + project},
	}
	if !c.settings.NoCESInCatalog {
		entries = append(entries, [3]string{"cesv1", "cesv1", base + "/ces/V1.0/" + project})
	}
	var out []fields
	for _, e := range entries {
		out = append(out, fields{"id": hexID(32), "name": e[0], "type": e[1], "endpoints": []fields{{
			"id": hexID(32), "interface": "public", "region": c.opts.Region, "region_id": c.opts.Region, "url": e[2],
		}}})
	}
	return out
}

func (c *Cloud) listCatalog(*call) reply {
	return jsonReply(http.StatusOK, fields{"catalog": c.catalog(), "links": fields{"next": nil}})
}

func (c *Cloud) listProjects(q *call) reply {
	id, projects := c.identity, []fields{}
	if name := q.URL.Query().Get("name"); name == "" || name == id.projectName {
		projects = append(projects, fields{"id": id.projectID, "name": id.projectName, "domain_id": id.domainID, "parent_id": id.domainID,
			"is_domain": false, "enabled": true, "description": ""})
	}
	return jsonReply(http.StatusOK, fields{"projects": projects, "links": fields{"next": nil}})
}

func iamError(status int, message string) reply {
	return jsonReply(status, fields{"error": fields{"code": status, "message": message, "title": http.StatusText(status)}})
}
