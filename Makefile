# The targets are for people; "make help" lists them. Go's own tools and the scripts do the work.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

.DEFAULT_GOAL := help
.PHONY: help build test cover lint platforms security release chart fmt bench demo evening fuzz docs faults soak setup clean

help: ## list the targets
	@awk -F ': .*## ' '/^[a-z]+: .*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/rankcache and bin/rankcache-lab
	go build -ldflags '-X rankcache/internal/cli.Version=$(VERSION)' -o bin/ ./cmd/...

test: ## run the tests with -race on a real Redis and Kafka, installed if missing; lists the slowest, and what RANKCACHE_FULL=1 adds
	scripts/test.sh

cover: ## measure the test coverage of each package; writes .cache/cover.html
	scripts/cover.sh

lint: ## check formatting, go vet, staticcheck
	scripts/lint.sh

platforms: ## compile for linux/arm64, and the packages without C for darwin/arm64
	scripts/platforms.sh

security: ## look for insecure code with gosec
	scripts/security.sh

release: ## build the archives of a release into dist/: linux/amd64 and linux/arm64, SBOMs, checksums
	scripts/release.sh build dist

chart: ## make deploy/chart, the Helm chart, from the manifests in deploy/k8s
	cd deploy/check && go run ./chart ../k8s ../chart

fmt: ## format the sources
	gofmt -w .

bench: build ## run all benchmarks, some 20 minutes; nginx is a row if it is installed
	-scripts/setup.sh h2load
	go test -run '^$$' -bench . ./localboard
	bin/rankcache-lab bench replay
	bin/rankcache-lab bench hot
	bin/rankcache-lab bench profile
	bin/rankcache-lab bench read

demo: build ## build, then show an app's own sorted sets in Redis alone, without and with a sidecar
	-scripts/setup.sh redis
	bin/rankcache-lab alone

evening: build ## build, then show a super-hot room with Kafka, Redis, writer and sidecar
	-scripts/setup.sh redis
	bin/rankcache-lab demo

fuzz: ## fuzz every target for 30 s
	scripts/fuzz.sh

docs: build ## generate CONFIG.md, METRICS.md, RESP.md, COMMANDS.md, commands/ and LAB.md in docs/ from the code, and the charts
	bin/rankcache-lab docs config > docs/CONFIG.md
	bin/rankcache-lab docs metrics > docs/METRICS.md
	bin/rankcache-lab docs resp > docs/RESP.md
	rm -rf docs/commands && mkdir docs/commands
	bin/rankcache-lab docs commands --pages docs/commands > docs/COMMANDS.md
	bin/rankcache-lab docs lab > docs/LAB.md
	bin/rankcache-lab bench chart docs/BENCHMARKS.md docs/speed/*.md

faults: ## inject every fault and compare each answer, some ten minutes; writes the table in docs/reliability/FAULTS.md
	scripts/setup.sh
	RANKCACHE_FULL=1 RANKCACHE_REQUIRE_REAL=1 RANKCACHE_ROLLING=20x6s RANKCACHE_FAULTS_TABLE=$(CURDIR)/docs/reliability/FAULTS.md \
		go test -count=1 -timeout 40m -parallel 4 -run '^(TestFaults|TestHiddenAndData|TestSecondRegion|TestDurable|TestRolling|TestRollingSwitch)$$' ./internal/lab/faults

soak: ## read and write for RANKCACHE_SOAK (default 10m) while faults happen at random
	scripts/setup.sh
	RANKCACHE_SOAK=$${RANKCACHE_SOAK:-10m} RANKCACHE_REQUIRE_REAL=1 go test -count=1 -v -timeout 2h -run '^TestSoak$$' ./internal/lab/faults

setup: ## fetch what tests and demo need: redis-server, Java, Kafka's jars, Chromium, a generator of clients
	scripts/setup.sh

clean: ## remove built files; Kafka's jars stay in .cache
	rm -rf bin dist .cache/withservers
