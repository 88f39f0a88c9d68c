// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack"
	"sigs.k8s.io/yaml"
)

// fill adds the groups that OS_* lack and returns the type of authentication. It uses cacert. The SDK's reader drops
// "verify: false", so certificates are verified unless OS_INSECURE is set.
func (a *account) fill(file *openstack.Cloud, authType string) string {
	f := file.AuthInfo
	if a.authURL == "" {
		a.authURL = f.AuthURL
	}
	if a.userName == "" && a.userID == "" && a.password == "" && a.accessKey == "" {
		a.userName, a.userID, a.password = f.Username, f.UserID, f.Password
		a.accessKey, a.secretKey, a.securityToken = f.AccessKey, f.SecretKey, f.SecurityToken
		authType = string(file.AuthType)
	}
	if a.domainName == "" && a.domainID == "" {
		a.domainName, a.domainID = cmp.Or(f.UserDomainName, f.DomainName), cmp.Or(f.UserDomainID, f.DomainID)
	}
	if a.projectName == "" {
		a.region = cmp.Or(a.region, file.RegionName)
	}
	if a.projectName == "" && a.projectID == "" {
		a.projectName, a.projectID = f.ProjectName, f.ProjectID
	}
	a.caFile = cmp.Or(a.caFile, file.CACertFile)
	return authType
}

// readClouds reads clouds.yaml, secure.yaml and clouds-public.yaml with the SDK's reader, which panics on a broken
// file.
func readClouds(name string) (cloud *openstack.Cloud, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("cloud credentials: clouds.yaml cannot be read")
		}
	}()
	if name == "" {
		cloud, err = openstack.NewEnv("OS_").Cloud()
	} else {
		cloud, err = openstack.NewEnv("OS_").Cloud(name)
	}
	if err != nil {
		return nil, fmt.Errorf("cloud credentials: clouds.yaml: %w", err)
	}
	return cloud, addRaw(cloud)
}

// addRaw adds to a cloud what the SDK's reader drops, and returns an error for a setting that the service does not use.
// Without it, the service would log in as another user or to another project than the file says.
func addRaw(cloud *openstack.Cloud) error {
	for _, kind := range []string{"clouds", "secure"} {
		file, entries, err := readEntries(kind)
		if err != nil {
			return fmt.Errorf("cloud credentials: %s: %w", kind+".yaml", err)
		}
		entry, found := entries[cloud.Cloud]
		if !found && kind == "clouds" && file != "" {
			return fmt.Errorf("cloud credentials: OS_CLOUD is %q, and %s has the clouds %q", cloud.Cloud, file, slices.Sorted(maps.Keys(entries)))
		}
		auth, _ := entry["auth"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(auth)) {
			if !slices.Contains(usedAuthKeys(), key) {
				return fmt.Errorf("cloud credentials: %s: the setting auth.%s is not supported", file, key)
			}
		}
		if err := checkDomains(func(key string) string { value, _ := auth[key].(string); return value }); err != nil {
			return err
		}
		for _, key := range []string{"cert", "key"} {
			if entry[key] != nil {
				return fmt.Errorf("cloud credentials: %s: the setting %s is not supported", file, key)
			}
		}
		text := func(key string) string { value, _ := entry[key].(string); return value }
		a := &cloud.AuthInfo
		a.AccessKey, a.SecretKey = cmp.Or(a.AccessKey, text("ak")), cmp.Or(a.SecretKey, text("sk"))
		a.SecurityToken = cmp.Or(a.SecurityToken, text("security_token"))
	}
	return nil
}

// readEntries returns the clouds of the first of the files that the SDK reads, and its name; empty if there is none.
func readEntries(kind string) (file string, entries map[string]map[string]any, err error) {
	home, _ := os.UserHomeDir()
	variable := map[string]string{"clouds": "OS_CLIENT_CONFIG_FILE", "secure": "OS_CLIENT_SECURE_FILE"}[kind]
	files := []string{os.Getenv(variable)}
	for _, dir := range []string{".", filepath.Join(home, ".config/openstack"), "/etc/openstack"} {
		for _, suffix := range []string{".yaml", ".yml", ".json"} {
			files = append(files, filepath.Join(dir, kind+suffix))
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var content struct {
			Clouds map[string]map[string]any `json:"clouds"`
		}
		return file, content.Clouds, yaml.Unmarshal(data, &content)
	}
	return "", nil, nil
}

// usedAuthKeys are the settings below auth that the service uses, or that repeat another one.
func usedAuthKeys() []string {
	return []string{
		"auth_url", "username", "user_id", "password", "token", "ak", "sk", "security_token", "project_name", "project_id",
		"domain_name", "domain_id", "user_domain_name", "user_domain_id", "project_domain_name", "project_domain_id",
		"default_domain",
	}
}

// unsupportedVariable returns an error for the first variable that asks for another user or project than the service
// would use without it.
func unsupportedVariable(env func(string) string) error {
	for _, name := range []string{
		"AGENCY_NAME", "AGENCY_DOMAIN_NAME", "DELEGATED_PROJECT", "TARGET_AGENCY_NAME", "TARGET_DOMAIN_NAME",
		"TARGET_PROJECT_NAME", "PASSCODE", "TRUST_ID", "SYSTEM_SCOPE",
		"APPLICATION_CREDENTIAL_ID", "APPLICATION_CREDENTIAL_NAME", "APPLICATION_CREDENTIAL_SECRET",
	} {
		if env("OS_"+name) != "" {
			return fmt.Errorf("cloud credentials: OS_%s is not supported: unset it, and give the user of the project itself", name)
		}
	}
	return checkDomains(func(key string) string { return env("OS_" + strings.ToUpper(key)) })
}

// checkDomains returns an error if user and project are of different domains, because IAM is asked for one domain only.
func checkDomains(setting func(key string) string) error {
	for _, by := range []string{"name", "id"} {
		user, project := setting("user_domain_"+by), setting("project_domain_"+by)
		if user != "" && project != "" && user != project {
			return fmt.Errorf("cloud credentials: project_domain_%s and user_domain_%[1]s differ: a project of another domain is not supported", by)
		}
	}
	return nil
}
