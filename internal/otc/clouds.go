// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"cmp"
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

// readClouds reads clouds.yaml, secure.yaml and clouds-public.yaml with the SDK's reader. It adds what that drops, and
// returns an error for a setting that the service does not use. Without it, the service would log in as another user or
// to another project than the file says.
func readClouds(name string) (*openstack.Cloud, error) {
	file, clouds, err := readEntries("clouds", "OS_CLIENT_CONFIG_FILE")
	secureFile, secure, err2 := readEntries("secure", "OS_CLIENT_SECURE_FILE")
	if err := cmp.Or(err, err2); err != nil { // the SDK's reader panics on a broken file
		return nil, fmt.Errorf("cloud credentials: clouds.yaml: %w", err)
	}
	cloud, err := openstack.NewEnv("OS_").Cloud(name)
	if err != nil {
		return nil, fmt.Errorf("cloud credentials: clouds.yaml: %w", err)
	}
	if clouds[cloud.Cloud] == nil && file != "" {
		return nil, fmt.Errorf("cloud credentials: OS_CLOUD is %q, and %s has the clouds %q", cloud.Cloud, file, slices.Sorted(maps.Keys(clouds)))
	}
	for file, entry := range map[string]map[string]any{file: clouds[cloud.Cloud], secureFile: secure[cloud.Cloud]} {
		auth, _ := entry["auth"].(map[string]any)
		for key := range auth {
			if !slices.Contains(strings.Fields(usedAuthKeys), key) {
				return nil, fmt.Errorf("cloud credentials: %s: the setting auth.%s is not supported", file, key)
			}
		}
		text := func(key string) string { value, _ := entry[key].(string); return value }
		a := &cloud.AuthInfo
		a.AccessKey, a.SecretKey = cmp.Or(a.AccessKey, text("ak")), cmp.Or(a.SecretKey, text("sk"))
		a.SecurityToken = cmp.Or(a.SecurityToken, text("security_token"))
	}
	return cloud, nil
}

// readEntries returns the clouds of the first of the files that the SDK reads, and its name; empty if there is none.
func readEntries(kind, variable string) (file string, entries map[string]map[string]any, err error) {
	home, _ := os.UserHomeDir()
	files := []string{os.Getenv(variable)}
	for _, dir := range []string{".", filepath.Join(home, ".config/openstack"), "/etc/openstack"} {
		for _, suffix := range []string{".yaml", ".yml", ".json"} {
			files = append(files, filepath.Join(dir, kind+suffix))
		}
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			var content struct {
				Clouds map[string]map[string]any `json:"clouds"`
			}
			err = yaml.Unmarshal(data, &content)
			return file, content.Clouds, err
		}
	}
	return "", nil, nil
}

// usedAuthKeys are the settings below auth that the service uses, or that repeat another one.
const usedAuthKeys = `auth_url username user_id password token ak sk security_token project_name project_id domain_name
	domain_id user_domain_name user_domain_id project_domain_name project_domain_id default_domain`

// unsupportedVariables ask for another user or project than the service would use without them.
const unsupportedVariables = `OS_AGENCY_NAME OS_AGENCY_DOMAIN_NAME OS_DELEGATED_PROJECT OS_TARGET_AGENCY_NAME
	OS_TARGET_DOMAIN_NAME OS_TARGET_PROJECT_NAME OS_PASSCODE OS_TRUST_ID OS_SYSTEM_SCOPE OS_APPLICATION_CREDENTIAL_ID
	OS_APPLICATION_CREDENTIAL_NAME OS_APPLICATION_CREDENTIAL_SECRET`
