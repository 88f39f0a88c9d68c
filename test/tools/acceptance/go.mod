module github.com/mcsps/rds-autopilot/test/tools/acceptance

go 1.26.0

require github.com/opentelekomcloud/gophertelekomcloud v0.9.5

require gopkg.in/yaml.v2 v2.3.0 // indirect
