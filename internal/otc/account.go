// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"
)

// account holds the credentials (user or access key), project and region, from OS_* and clouds.yaml.
type account struct {
	authURL                             string // ends with /v3/
	userName, userID, password          string
	accessKey, secretKey, securityToken string
	domainName, domainID                string
	projectName, projectID, region      string
	caFile                              string
	insecure                            bool
}

func (a account) byKey() bool { return a.password == "" }

func (a account) secrets() []string { return []string{a.password, a.secretKey, a.securityToken} }

// findAccount reads OS_*, and what is missing there from clouds.yaml. Each group (URL, credentials, project, region)
// comes from one source only. So OS_AUTH_URL alone can point elsewhere, and a user is never paired with another
// user's password. The SDK's own reader is not used, because it stores the user's domain id as the project id and
// drops security tokens.
func findAccount(env func(string) string) (account, error) {
	first := func(keys ...string) string {
		for _, k := range keys {
			if v := env("OS_" + k); v != "" {
				return v
			}
		}
		return ""
	}
	a := account{
		authURL:       first("AUTH_URL"),
		userName:      first("USERNAME"),
		userID:        first("USER_ID", "USERID"),
		password:      first("PASSWORD"),
		accessKey:     first("ACCESS_KEY", "ACCESS_KEY_ID", "AK"),
		secretKey:     first("SECRET_KEY", "ACCESS_KEY_SECRET", "SK"),
		securityToken: first("SECURITY_TOKEN"),
		domainName:    first("USER_DOMAIN_NAME", "DOMAIN_NAME", "PROJECT_DOMAIN_NAME"),
		domainID:      first("USER_DOMAIN_ID", "DOMAIN_ID", "PROJECT_DOMAIN_ID"),
		projectName:   first("PROJECT_NAME", "TENANT_NAME"),
		projectID:     first("PROJECT_ID", "TENANT_ID"),
		region:        first("REGION_NAME", "REGION_ID"),
		caFile:        first("CACERT", "CA_CERT"),
	}
	insecure := first("INSECURE")
	a.insecure = insecure == "1" || insecure == "true"
	authType := first("AUTH_TYPE")
	if name := env("OS_CLOUD"); name != "" || a.authURL == "" {
		file, err := readClouds(name)
		if err != nil {
			return account{}, err
		}
		authType = a.fill(file, authType)
	}
	return a.validated(authType, first("TOKEN", "TOKEN_ID") != "")
}

func (a account) validated(authType string, token bool) (account, error) {
	if a.authURL == "" {
		return account{}, errors.New("cloud credentials: OS_AUTH_URL is not set, and clouds.yaml has no auth_url for the cloud in OS_CLOUD")
	}
	u, err := url.Parse(a.authURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return account{}, errors.New("cloud credentials: OS_AUTH_URL is not an http(s) URL")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v3") + "/v3/" // IAM of OTC has only v3
	u.RawQuery, u.Fragment, u.User = "", "", nil
	a.authURL = u.String()

	if a.userID != "" { // the SDK refuses a name beside an id
		a.userName = ""
	}
	if a.domainID != "" {
		a.domainName = ""
	}
	user := (a.userName != "" || a.userID != "") && a.password != ""
	key := a.accessKey != "" && a.secretKey != ""
	byPassword, byKey := authType == "password" || authType == "v3password", authType == "aksk"
	switch {
	case authType != "" && !byPassword && !byKey:
		return account{}, fmt.Errorf("cloud credentials: the authentication type %q (OS_AUTH_TYPE, auth_type) is not supported: use password or aksk", authType)
	case key && !byPassword && (!user || byKey):
		a.userName, a.userID, a.password, a.domainName, a.domainID = "", "", "", "", ""
	case user && !byKey:
		a.accessKey, a.secretKey, a.securityToken = "", "", ""
	case token:
		return account{}, errors.New("cloud credentials: a token alone (OS_TOKEN) expires within 24 h and cannot be renewed: set a password or an access key")
	default:
		return account{}, errors.New("cloud credentials: neither OS_USERNAME with OS_PASSWORD nor OS_ACCESS_KEY with OS_SECRET_KEY is set")
	}
	if a.projectName == "" && a.projectID == "" {
		return account{}, errors.New("cloud credentials: OS_PROJECT_NAME or OS_PROJECT_ID is not set")
	}
	if !a.byKey() && a.domainName == "" && a.domainID == "" && (a.userID == "" || a.projectID == "") {
		return account{}, errors.New("cloud credentials: OS_USER_DOMAIN_NAME or OS_DOMAIN_NAME is not set")
	}
	if a.region == "" { // the name of a project begins with its region: eu-de, eu-de_name
		a.region, _, _ = strings.Cut(a.projectName, "_")
	}
	return a, nil
}

func (a account) httpTransport(log *zap.Logger) (http.RoundTripper, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.caFile != "" {
		var err error
		if config.RootCAs, err = TrustRoots(a.caFile); err != nil {
			return nil, fmt.Errorf("cloud credentials: OS_CACERT: %w", err)
		}
	}
	if a.insecure {
		log.Warn("the cloud's TLS certificates are not verified, because OS_INSECURE is set")
		config.InsecureSkipVerify = true
	}
	return Proxied{&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
	}, http.ProxyFromEnvironment}, nil
}

// Proxied is a connection whose errors name the proxy. net/http returns only the proxy's answer, such as "Forbidden",
// which reads as an answer of the server.
type Proxied struct {
	http.RoundTripper
	Proxy func(*http.Request) (*url.URL, error)
}

// RoundTrip sends a request.
func (p Proxied) RoundTrip(req *http.Request) (*http.Response, error) {
	via, err := p.Proxy(req)
	if err != nil {
		return nil, errors.New("the proxy in the environment is not a URL") // err may quote its password
	}
	resp, err := p.RoundTripper.RoundTrip(req)
	if err != nil && via != nil {
		err = fmt.Errorf("through the proxy %s: %w", via.Host, err)
	}
	return resp, err
}

// TrustRoots returns the system's trust roots and those of a PEM file.
func TrustRoots(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file) //nolint:gosec // the administrator names it
	if err != nil {
		return nil, fmt.Errorf("read trust roots: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read trust roots: %s contains no certificate", file)
	}
	return pool, nil
}
