module github.com/mcsps/rds-autopilot/test/tools/acceptance

go 1.26.0

toolchain go1.26.8

require github.com/opentelekomcloud/gophertelekomcloud v0.9.5 // indirect

require gopkg.in/yaml.v2 v2.3.0 // indirect

tool (
	github.com/opentelekomcloud/gophertelekomcloud/acceptance/openstack/rds/v3
	github.com/opentelekomcloud/gophertelekomcloud/acceptance/openstack/smn/v2
)
