# Needed: Go, make and a C compiler (for -race). Everything else is built from pinned Go modules on first use.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
GENTOOL := go tool -modfile=internal/tools/gen/go.mod
LINTTOOL := .cache/golangci-lint
FUZZTIME ?= 30s

.PHONY: help
help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build servers ## Run the main job on this machine: alarms arrive, databases grow
	@go run ./cmd/sandbox demo

.PHONY: test
test: servers ## Run all tests, with -race and on a real API server
	@echo "── go test -race ./... (the first build with -race takes some minutes)"
	@go test -race -timeout 45m ./...
	@echo "── ten thousand random histories against the decision"
	@go test -run TestNoHistory ./autopilot -rapid.checks=10000
	@echo "── a week of twenty databases, and storms of 400 alarms (minutes of work; too much for -race)"
	@go test -run 'TestAWeek|TestAStormOf' -timeout 30m ./internal/bubble

CHAOS_TIME ?= 3m

.PHONY: chaos
chaos: servers ## Break everything at random for CHAOS_TIME (3m); CHAOS_SEED repeats a run
	@CHAOS_TIME=$(CHAOS_TIME) go test -race -count=1 -v -timeout 30m -run 'InChaos$$' ./internal/chaos

.PHONY: build
build: ## Build bin/rds-autopilot
	@mkdir -p bin
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/rds-autopilot ./cmd/rds-autopilot

.PHONY: servers
servers: ## Build the kube-apiserver and etcd that tests and demo use (some minutes, once)
	@go run ./internal/kubetest/build

.PHONY: lint
lint: $(LINTTOOL) ## Check style, imports and common faults
	@$(LINTTOOL) run ./...

$(LINTTOOL): internal/tools/lint/go.mod internal/tools/lint/go.sum
	@echo "── building the linter (some minutes, once)"
	@mkdir -p .cache
	@cd internal/tools/lint && CGO_ENABLED=0 go build -o ../../../$(LINTTOOL) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

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
