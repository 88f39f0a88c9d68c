// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack"
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

// readClouds reads clouds.yaml, secure.yaml and clouds-public.yaml with the SDK's reader, which panics on a broken file.
func readClouds(name string) (cloud *openstack.Cloud, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("cloud credentials: clouds.yaml is not valid YAML, or cannot be read")
		}
	}()
	if cloud, err = openstack.NewEnv("OS_").Cloud(name); err != nil {
		return nil, fmt.Errorf("cloud credentials: clouds.yaml: %w", err)
	}
	if cloud.AuthInfo.AgencyName != "" { // without it, the login would be to another project than the file says
		return nil, errors.New("cloud credentials: an agency is not supported: give a user of the project itself")
	}
	return cloud, nil
}
