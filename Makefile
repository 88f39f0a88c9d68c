# Requirements: Go and make; for the race detector a C compiler. The targets build everything else from pinned Go modules on
# first use.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
GENTOOL := go tool -modfile=test/tools/gen/go.mod
LINTTOOL := .cache/golangci-lint
FUZZTIME ?= 30s
SOAK_TIME ?= 10m

# Without cgo and with -trimpath, all targets and all checkouts share what is compiled. A C compiler is not needed then.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

# gotestsum prints each test as it ends, and then the slowest ten. It uses colours on a terminal. -p 4 runs more packages than
# there are cores, because some mostly wait. GOGC=400 and -ldflags=-s save time: tests have memory to spare, and nobody debugs
# the binaries. -vet=off too, because make lint vets.
TESTTOOL := go tool -modfile=test/tools/test/go.mod gotestsum
TESTS = rm -f .cache/tests/$@.* && $(TESTTOOL) --format testname --hide-summary skipped,output $(if $(MAKE_TERMOUT),--no-color=false) \
  --jsonfile .cache/tests/$@.json --junitfile .cache/tests/$@.xml -- -ldflags=-s -vet=off
SLOWEST = code=$$?; echo "── the slowest ten"; $(TESTTOOL) tool slowest --num 10 --threshold 1s < .cache/tests/$@.json; exit $$code
# The packages with tests that ask for a real API server, without those of make test-install.
KUBETESTS = $(filter-out $(INSTALLTESTS),$(sort $(addprefix ./,$(dir $(shell grep -rlE 'test/(apiserver|world)"|real: true' --include=*_test.go *)))))
INSTALLTESTS := ./test/release/ ./test/docs/
# Packages with tests of the long level.
LONG := ./test/e2e ./test/bubble ./autopilot/controller
# Units and the loop. The other tests wait for processes or pass weeks on a fake clock: there the race detector costs more than
# it finds. make test-long builds the service itself with the race detector.
RACE := ./autopilot/... ./alarms ./flavors ./k8s ./internal/...
# The tests of all packages share one API server, which starts while they are compiled.
RUN := mkdir -p .cache/tests && go build -o .cache/run ./test/apiserver/run && .cache/run

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# KUBE=memory embeds the Kubernetes API in demo and sandbox. KUBE=real runs kube-apiserver and etcd.
KUBE ?= memory

# The service and the sandbox share all compiled packages, because the flags are the same.
.cache/sandbox: build FORCE
	@$(BUILD) -o $@ ./test/sandbox

.PHONY: FORCE
FORCE:

.PHONY: demo
demo: .cache/sandbox ## Run the main job on this machine: alarms arrive, databases grow. KUBE=real uses a real API server
	@exec .cache/sandbox demo -kube $(KUBE) -binary bin/rds-autopilot

.PHONY: sandbox
sandbox: .cache/sandbox ## Keep the demo's world running, with the status page. It prints how you change the load of a database
	@exec .cache/sandbox up -kube $(KUBE) -binary bin/rds-autopilot

.PHONY: test
test: ## Run the tests of every change: units, the loop, the swarm, and the binary, with Kubernetes in memory
	@echo "── all tests that need no real API server; the first run also compiles for some minutes"
	@mkdir -p .cache/tests; export KUBE=memory GOGC=400; $(TESTS) -p 4 -parallel 8 -timeout 20m ./...; $(SLOWEST)

.PHONY: test-kube
test-kube: ## Run what a real kube-apiserver and etcd can show: rights, CRDs, conflicts, admission, the binary
	@export GOGC=400; $(RUN) bash -c '$(TESTS) -p 4 -parallel 8 -timeout 40m $(KUBETESTS)'; $(SLOWEST)

# KUBE_CACHE_MUTATION_DETECTOR makes client-go panic if code changes a cached object.
# The race detector empties pools, so what memory costs is tested without it.
.PHONY: test-race
test-race: ## Run units and the loop with the race detector. It needs a C compiler
	@mkdir -p .cache/tests; export CGO_ENABLED=1 KUBE=memory GOGC=400 KUBE_CACHE_MUTATION_DETECTOR=true; $(TESTS) -race -skip CostsAtMost -p 4 -parallel 8 -timeout 40m $(RACE); $(SLOWEST)

.PHONY: test-long
test-long: ## Run the long tests: outages, storms, kills, the binary with the race detector
	@export LEVEL=long GOGC=400; $(RUN) bash -c '$(TESTS) -p 4 -parallel 6 -timeout 60m $(LONG)'; $(SLOWEST)

# $(call NEEDS,program,what installs it) fails unless a program is there.
NEEDS = command -v $(1) >/dev/null || { echo "make $@ needs $(1): $(2)"; exit 1; };

.PHONY: test-install
test-install: tools ## Run the tests that need make tools: chart, image, release, alerts, dashboards, commands of the documents
	@$(call NEEDS,buildah,apt-get install buildah)
	@export LEVEL=long GOGC=400; $(RUN) bash -c '$(TESTS) -parallel 8 -timeout 60m $(INSTALLTESTS)'; $(SLOWEST)

# The pinned versions of Kubernetes, such as 1.28: one for each module of test/apiserver.
KUBE_VERSIONS = $(shell sed -nE 's|^\tk8s.io/kubernetes v([0-9]+\.[0-9]+)\..*|\1|p' test/apiserver/servers*/go.mod)
SMOKE := '^(TestInstallUpgradeOffUninstall|TestTheAPIServerAcceptsEverySetOfValues|TestAdmissionPolicyLimits.*)$$'

.PHONY: test-versions
test-versions: .cache/bin/helm ## Test chart, CRDs, rights and binary on each of KUBE_VERSIONS, the oldest to the newest
	@export KUBE_VERSION GOGC=400; for KUBE_VERSION in $(KUBE_VERSIONS); do echo "── Kubernetes $$KUBE_VERSION"; \
	  $(RUN) go test -count=1 -ldflags=-s -timeout 60m ./k8s ./deploy || exit 1; \
	  $(RUN) env LEVEL=long go test -count=1 -ldflags=-s -timeout 60m -v -run $(SMOKE) ./test/release || exit 1; done

CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

.PHONY: test-browser
test-browser: ## Test the pages in a headless Chromium: console, keyboard, themes, access. Pictures are in .cache/screenshots
	@$(if $(CHROMIUM),,echo "make $@ needs Chromium: apt-get install chromium"; exit 1)
	@CHROMIUM=$(CHROMIUM) go test -count=1 -timeout 30m ./test/browser

.PHONY: pictures
pictures: ## Make the pictures of the README, docs/images/*.png, with a headless Chromium
	@$(if $(CHROMIUM),,echo "make $@ needs Chromium: apt-get install chromium"; exit 1)
	@CHROMIUM=$(CHROMIUM) go test -count=1 -timeout 30m -run With400Databases ./test/browser
	@cp .cache/screenshots/{overview-light,database-dark}.png docs/images/

.PHONY: soak
soak: ## Explore orders of events (10 minutes), run every fault at every call of every story, and new seeds of the swarm for SOAK_TIME (10m)
	@LEVEL=soak go test -count=1 -v -timeout 0 ./test/explore
	@mkdir -p .cache/tests; export LEVEL=soak SOAK_TIME=$(SOAK_TIME); $(TESTS) -count=1 -v -timeout 0 -run '^(TestEveryFaultAtEveryCall|TestSwarm)$$' ./test/bubble; $(SLOWEST)

BUILD := go build -ldflags '$(LDFLAGS)'

.PHONY: build
build: ## Build bin/rds-autopilot
	@mkdir -p bin
	@$(BUILD) -o bin/rds-autopilot ./cmd/rds-autopilot

.PHONY: servers
servers: ## Build the kube-apiserver and etcd of the tests and the demo (some minutes, once)
	@go run ./test/apiserver/run

.PHONY: lint
lint: $(LINTTOOL) ## Check style, imports and common mistakes
	@$(LINTTOOL) run ./...

$(LINTTOOL): test/tools/lint/go.mod test/tools/lint/go.sum
	@echo "── building the linter (some minutes, once)"
	@mkdir -p .cache
	@start=$$SECONDS; cd test/tools/lint && go build -o ../../../$(LINTTOOL) \
	  github.com/golangci/golangci-lint/v2/cmd/golangci-lint && echo "── built the linter in $$((SECONDS - start)) s"

.PHONY: vulncheck
vulncheck: ## Report known vulnerabilities of dependencies. It needs vuln.go.dev, so lint does not include it
	@go tool -modfile=test/tools/vuln/go.mod govulncheck ./...

.PHONY: generate
generate: generate-code install-manifests ## Generate deep copies, the CRD, the references and the manifests

.PHONY: generate-code
generate-code:
	@$(GENTOOL) controller-gen object:headerFile=test/tools/gen/header.txt paths=./k8s/api/...
	@$(GENTOOL) controller-gen crd paths=./k8s/api/autopilot/... output:crd:dir=deploy/crds
	@cp deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml deploy/chart/files/rdsautopilots.yaml
	@cp deploy/kube-state-metrics.yaml deploy/chart/files/
	@rm -rf deploy/chart/files/dashboards && mkdir deploy/chart/files/dashboards
	@for f in $(wildcard deploy/dashboards/*.json); do cp $$f deploy/chart/files/dashboards/; done
	@go test ./deploy -run Generated -update >/dev/null
	@go test ./cmd/rds-autopilot -run TestTheTablesOfFlagsAreGenerated -update >/dev/null
	@go test ./internal/app -run TestTheReferenceOfMetricsIsGenerated -update >/dev/null

.PHONY: fresh
fresh: generate-code ## Fail if generated files are stale
	@git diff --exit-code -- k8s/api deploy/crds deploy/chart docs/reference.md docs/command-line.md docs/metrics.md && test -z "$$(git ls-files --others --exclude-standard -- deploy/chart)" || { echo "Generated files are stale. Run make generate and commit."; exit 1; }

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s; 100000x is a number of inputs)
	@set -e; for p in $$(go list ./autopilot/...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "── $$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; done; done

.PHONY: score
score: ## Compare the rules with those of other systems. It writes docs/scoreboard.md (a minute)
	@GOGC=400 go run ./test/score

.PHONY: bench
bench: ## Measure each step five times, and a message through the binary beside the floor
	@mkdir -p .cache/bench
	@go test -run '^$$' -bench . -count 5 ./autopilot/... | tee .cache/bench/steps.txt
	@KUBE=real go test -run '^$$' -bench Messages -benchtime 1x ./test/e2e | tee .cache/bench/messages.txt
	@go tool -modfile=test/tools/bench/go.mod benchstat .cache/bench/steps.txt

DATABASES ?= 400

.PHONY: bench-storm
bench-storm: build servers ## Measure the binary with DATABASES (400): start, idle, alarm storms, arming (25 minutes)
	@mkdir -p .cache/bench
	@echo "binary: $$(( $$(wc -c < bin/rds-autopilot) / 1000000 )) MB"
	@KUBE=real DATABASES=$(DATABASES) go test -run '^$$' -bench Fleet -benchtime 1x -timeout 0 ./test/e2e | tee .cache/bench/fleet-$(DATABASES).txt

.PHONY: clean
clean: ## Remove bin and .cache
	@rm -rf bin .cache

# Tools for chart, image and release. Each takes some minutes to build, once.
INSTALLTOOLS := $(addprefix .cache/bin/,helm helm-unittest actionlint ko crane)

.cache/bin/%: test/tools/%/go.mod test/tools/%/go.sum
	@echo "── building $* (some minutes, once)"
	@mkdir -p .cache/bin
	@cd test/tools/$* && go build -ldflags '-s -w' -o ../../../$@ tool

RENDER = .cache/bin/helm template rds-autopilot $(1) --namespace rds-autopilot --values deploy/chart/ci/install-values.yaml
HEAD = echo "\# Rendered from the chart by make generate; do not edit."

.PHONY: install-manifests
install-manifests: .cache/bin/helm generate-code ## Render deploy/install.yaml, its parts and the defaults from the chart
	@{ $(HEAD); cat deploy/namespace.yaml; $(call RENDER,deploy/chart); } > deploy/install.yaml
	@{ $(HEAD); $(call RENDER,deploy/chart) -s templates/serviceaccount.yaml -s templates/rbac.yaml -s templates/aggregate.yaml; } > deploy/rbac.yaml
	@{ $(HEAD); $(call RENDER,deploy/chart) --set serviceMonitor.enabled=true -s templates/servicemonitor.yaml; } > deploy/servicemonitor.yaml
	@{ $(HEAD); $(call RENDER,deploy/chart) --set prometheusRule.enabled=true --set prometheusRule.changes=true -s templates/prometheusrule.yaml; } \
	  > deploy/alerts.yaml
	@{ $(HEAD); .cache/bin/helm template rds-autopilot deploy/chart --namespace rds-autopilot --values deploy/chart/ci/default-values.yaml \
	  --set crds.enabled=false; } > deploy/testdata/rendered-defaults.yaml

DIGEST_KEY := autopilot.otc.mcsps.de/image-digest

.PHONY: release-files
release-files: .cache/bin/helm ## Write chart, install.yaml and checksums of VERSION to dist. Both name IMAGE by its DIGEST
	@[[ "$(DIGEST)" =~ ^sha256:[0-9a-f]{64}$$ ]] || { echo "DIGEST is required: the digest of the image, sha256:…"; exit 1; }
	@rm -rf dist .cache/release && mkdir -p dist .cache && cp -r deploy/chart .cache/release
	@sed 's|^  $(DIGEST_KEY): ""$$|  $(DIGEST_KEY): $(DIGEST)|' deploy/chart/Chart.yaml > .cache/release/Chart.yaml
	@i='$(IMAGE)'; sed "s|^  repository: .*|  repository: $$i|" deploy/chart/values.yaml > .cache/release/values.yaml
	@.cache/bin/helm package .cache/release --version $(VERSION:v%=%) --app-version $(VERSION) --destination dist
	@{ cat deploy/namespace.yaml; $(call RENDER,dist/rds-autopilot-$(VERSION:v%=%).tgz); } > dist/install.yaml
	@cp deploy/crds/rds.yaml deploy/namespace.yaml dist/
	@cd dist && sha256sum -- * > checksums.txt

.PHONY: release-notes
release-notes: ## Write the section of VERSION in CHANGELOG.md to .cache/release-notes.md
	@mkdir -p .cache
	@awk -v head='## $(VERSION)' '/^## /{on = index($$0 " ", head " ") == 1; next} on' CHANGELOG.md > .cache/release-notes.md
	@grep -q . .cache/release-notes.md || { echo "CHANGELOG.md has no section $(VERSION)"; exit 1; }

IMAGE ?= ghcr.io/mcsps/rds-autopilot

.PHONY: release-image
release-image: .cache/bin/ko ## Build the image of VERSION for two platforms, with its SBOM, and push it to IMAGE
	@KO_DOCKER_REPO=$(IMAGE) VERSION=$(VERSION) COMMIT=$(COMMIT) .cache/bin/ko build ./cmd/rds-autopilot --bare --tags $(VERSION) --sbom spdx --sbom-dir .cache/sbom \
	  --image-label org.opencontainers.image.title=rds-autopilot,org.opencontainers.image.source=https://github.com/mcsps/rds-autopilot \
	  --image-label org.opencontainers.image.licenses=Apache-2.0,org.opencontainers.image.version=$(VERSION),org.opencontainers.image.revision=$(COMMIT)

# Tools that users run beside the service. A test of test/release or test/docs fails if its tool is missing.
.PHONY: tools
tools: $(INSTALLTOOLS) $(addprefix .cache/bin/,promtool kubectl kube-state-metrics) ## Build helm, kubectl, promtool and the other tools of make test-install (half an hour, once)

.cache/bin/kubectl: test/tools/kubectl/go.mod test/tools/kubectl/go.sum
	@echo "── building kubectl (some four minutes, once)"
	@mkdir -p .cache/bin
	@cd test/tools/kubectl && v=$$(go list -m -f '{{.Version}}' k8s.io/kubernetes) && \
	  go build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$v" -o ../../../$@ tool
	@touch $@
