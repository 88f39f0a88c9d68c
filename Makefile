# Needed: Go, make and a C compiler (for -race). Everything else is built from pinned Go modules on first use.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
GENTOOL := go tool -modfile=internal/tools/gen/go.mod
LINTTOOL := .cache/golangci-lint
FUZZTIME ?= 30s
SOAK_TIME ?= 10m

# The tests of all packages share one API server. Each test is printed as it ends, the slowest in the end. A terminal gets
# colours. Where tests wait for processes or pass weeks on a fake clock, the race detector costs more than it finds: those
# go without, and test-long gives it to the service itself.
TESTTOOL := go tool -modfile=internal/tools/test/go.mod gotestsum
WITHOUT_RACE := ./internal/e2e ./internal/chaos ./internal/bubble
WITH_RACE = $(shell go list ./... | grep -v $(foreach p,$(WITHOUT_RACE),-e $(p:./%=/%)$$))
RUN := mkdir -p .cache/tests && go build -o .cache/run ./internal/kubetest/run && .cache/run
TESTS = $(TESTTOOL) --format testname --hide-summary skipped,output $(if $(MAKE_TERMOUT),--no-color=false) \
  --jsonfile .cache/tests/$(1).json --junitfile .cache/tests/$(1).xml --
SLOWEST = code=$$?; echo "── the slowest ten"; cat .cache/tests/$@.json .cache/tests/$@-race.json 2>/dev/null | $(TESTTOOL) tool slowest --num 10 --threshold 1s; exit $$code

.PHONY: help
help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build servers ## Run the main job on this machine: alarms arrive, databases grow
	@go run ./cmd/sandbox demo

.PHONY: test
test: ## Run what a change can break, on a real API server: 6 minutes
	@echo "── all tests but the long ones; the first time, compiling takes some minutes"
	@rm -f .cache/tests/$@.* .cache/tests/$@-race.*; $(RUN) bash -c '$(call TESTS,$@) -parallel 8 -timeout 20m $(WITHOUT_RACE); code=$$?; \
	  $(call TESTS,$@-race) -race -parallel 8 -timeout 20m $(WITH_RACE) && exit $$code'; $(SLOWEST)

.PHONY: test-long
test-long: ## Run what takes longer: outages, storms, kills, large fleets, the binary with the race detector
	@echo "── ten thousand random histories against the decision"
	@go test -run TestNoHistory ./autopilot -rapid.checks=10000
	@echo "── end to end, chaos, a week of twenty databases, storms of 400 alarms"
	@rm -f .cache/tests/$@.* .cache/tests/$@-race.*; export LEVEL=long; $(RUN) $(call TESTS,$@) -parallel 8 -timeout 60m $(WITHOUT_RACE); $(SLOWEST)

.PHONY: soak
soak: ## Break everything for SOAK_TIME (10m), flood it, and run the largest fleet; SOAK_SEED repeats a run
	@go test -run TestNoHistory ./autopilot -rapid.checks=100000
	@rm -f .cache/tests/$@.* .cache/tests/$@-race.*; export LEVEL=soak SOAK_TIME=$(SOAK_TIME); $(RUN) $(call TESTS,$@) \
	  -count=1 -v -timeout 0 -run 'InChaos$$|Flooded$$|InCPUAlarm$$' ./internal/e2e ./internal/chaos; $(SLOWEST)

.PHONY: build
build: ## Build bin/rds-autopilot
	@mkdir -p bin
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/rds-autopilot ./cmd/rds-autopilot

.PHONY: servers
servers: ## Build the kube-apiserver and etcd that tests and demo use (some minutes, once)
	@go run ./internal/kubetest/run

.PHONY: lint
lint: $(LINTTOOL) ## Check style, imports and common faults
	@$(LINTTOOL) run ./...

$(LINTTOOL): internal/tools/lint/go.mod internal/tools/lint/go.sum
	@echo "── building the linter (some minutes, once)"
	@mkdir -p .cache
	@start=$$SECONDS; cd internal/tools/lint && CGO_ENABLED=0 go build -o ../../../$(LINTTOOL) \
	  github.com/golangci/golangci-lint/v2/cmd/golangci-lint && echo "── built the linter in $$((SECONDS - start)) s"

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what is used; asks vuln.go.dev, so it is no part of lint
	@go tool -modfile=internal/tools/vuln/go.mod govulncheck ./...

.PHONY: generate
generate: ## Write generated files anew: deep copies and the CRD
	@$(GENTOOL) controller-gen object paths=./k8s/api/...
	@$(GENTOOL) controller-gen crd paths=./k8s/api/autopilot/... output:crd:dir=deploy/crds

.PHONY: fresh
fresh: generate ## Fail if generated files are stale
	@git diff --exit-code -- k8s/api deploy/crds || { echo "generated files are stale: run make generate and commit"; exit 1; }

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s)
	@set -e; for p in $$(go list ./autopilot/...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "── $$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; done; done

.PHONY: clean
clean: ## Remove what was built here
	@rm -rf bin .cache
