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
generate: generate-code install-manifests ## Write generated files anew: deep copies, the CRD, its reference and the manifests

.PHONY: generate-code
generate-code:
	@$(GENTOOL) controller-gen object paths=./k8s/api/...
	@$(GENTOOL) controller-gen crd paths=./k8s/api/autopilot/... output:crd:dir=deploy/crds
	@cp deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml deploy/chart/files/rdsautopilots.yaml
	@cp deploy/alerts.yaml deploy/chart/files/
	@rm -rf deploy/chart/files/dashboards && mkdir deploy/chart/files/dashboards
	@for f in $(wildcard deploy/dashboards/*.json); do cp $$f deploy/chart/files/dashboards/; done
	@go test ./deploy -run TestTheReferenceIsGenerated -update >/dev/null

.PHONY: fresh
fresh: generate-code ## Fail if generated files are stale
	@git diff --exit-code -- k8s/api deploy/crds deploy/chart docs/reference.md && test -z "$$(git ls-files --others --exclude-standard -- deploy/chart)" || { echo "generated files are stale: run make generate and commit"; exit 1; }

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s)
	@set -e; for p in $$(go list ./autopilot/...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "── $$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; done; done

.PHONY: clean
clean: ## Remove what was built here
	@rm -rf bin .cache

# Chart, image and release. Their tools are built from pinned modules on first use, some minutes each.
INSTALLTOOLS := $(addprefix .cache/bin/,helm helm-unittest kustomize kube-score actionlint ko crane)

.cache/bin/%: internal/tools/%/go.mod internal/tools/%/go.sum
	@echo "── building $* (some minutes, once)"
	@mkdir -p .cache/bin
	@cd internal/tools/$* && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../../../$@ tool

# What install.yaml depends on. A test compares their checksum with the one in its head.
INSTALLFILES = $(sort deploy/namespace.yaml deploy/chart/Chart.yaml deploy/chart/values.yaml deploy/chart/ci/install-values.yaml \
  deploy/chart/files/rdsautopilots.yaml $(wildcard deploy/chart/templates/*.yaml deploy/chart/templates/*.tpl))
RENDER = .cache/bin/helm template rds-autopilot $(1) --namespace rds-autopilot --values deploy/chart/ci/install-values.yaml --skip-tests
HEAD = echo "\# Rendered from the chart by make generate; do not edit. Checksum of its sources: $$(cat $(INSTALLFILES) | sha256sum | cut -d' ' -f1)"

.PHONY: install-manifests
install-manifests: .cache/bin/helm generate-code ## Render deploy/install.yaml and its parts from the chart
	@{ $(HEAD); cat deploy/namespace.yaml; $(call RENDER,deploy/chart); } > deploy/install.yaml
	@{ $(HEAD); $(call RENDER,deploy/chart) -s templates/serviceaccount.yaml -s templates/rbac.yaml -s templates/aggregate.yaml; } > deploy/rbac.yaml
	@{ $(HEAD); $(call RENDER,deploy/chart) --set monitoring.serviceMonitor.enabled=true -s templates/servicemonitor.yaml; } > deploy/servicemonitor.yaml

.PHONY: test-install
test-install: servers $(INSTALLTOOLS) ## Test chart, upgrade, image and release with the real tools
	@command -v nginx >/dev/null || echo "── left out: 10,000 messages through nginx, which is not installed (Debian: nginx-light)"
	@LONG=1 go test -race -count=1 -timeout 60m ./internal/install

.PHONY: release-files
release-files: .cache/bin/helm ## Write chart, install.yaml and checksums of VERSION to dist
	@rm -rf dist && mkdir dist
	@.cache/bin/helm package deploy/chart --version $(VERSION:v%=%) --app-version $(VERSION) --destination dist
	@{ cat deploy/namespace.yaml; $(call RENDER,dist/rds-autopilot-$(VERSION:v%=%).tgz); } > dist/install.yaml
	@cp deploy/crds/rds.yaml dist/
	@cd dist && sha256sum -- * > checksums.txt

.PHONY: release-notes
release-notes: ## Write what CHANGELOG.md says about VERSION to .cache/release-notes.md
	@mkdir -p .cache
	@awk -v head='## $(VERSION)' '/^## /{on = index($$0 " ", head " ") == 1; next} on' CHANGELOG.md > .cache/release-notes.md
	@grep -q . .cache/release-notes.md || { echo "CHANGELOG.md has no section $(VERSION)"; exit 1; }

IMAGE ?= ghcr.io/mcsps/rds-autopilot

.PHONY: release-image
release-image: .cache/bin/ko ## Build the image of VERSION for two platforms, with its SBOM, and push it to IMAGE
	@KO_DOCKER_REPO=$(IMAGE) VERSION=$(VERSION) COMMIT=$(COMMIT) .cache/bin/ko build ./cmd/rds-autopilot --bare --tags $(VERSION) --sbom spdx \
	  --image-label org.opencontainers.image.title=rds-autopilot,org.opencontainers.image.source=https://github.com/mcsps/rds-autopilot \
	  --image-label org.opencontainers.image.licenses=Apache-2.0,org.opencontainers.image.version=$(VERSION),org.opencontainers.image.revision=$(COMMIT)

# The tools of those who run it. Tests in internal/monitoring and internal/manual need them, and say so where they are missing.
USERTOOLS := $(addprefix .cache/bin/,prometheus promtool kubectl)

.PHONY: usertools
usertools: $(USERTOOLS) ## Build the prometheus, promtool and kubectl that tests use (some minutes, once)

.cache/bin/prometheus .cache/bin/promtool &: internal/tools/prometheus/go.mod internal/tools/prometheus/go.sum
	@echo "── building prometheus and promtool (some ten minutes, once)"
	@mkdir -p .cache/bin
	@cd internal/tools/prometheus && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../../../.cache/bin/ tool
	@touch .cache/bin/prometheus .cache/bin/promtool

.cache/bin/kubectl: internal/tools/kubectl/go.mod internal/tools/kubectl/go.sum
	@echo "── building kubectl (some four minutes, once)"
	@mkdir -p .cache/bin
	@cd internal/tools/kubectl && v=$$(go list -m -f '{{.Version}}' k8s.io/kubernetes) && \
	  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$v" -o ../../../$@ tool
	@touch $@
