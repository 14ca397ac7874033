# Noisegate's commands. "make help" lists them.

GO        ?= go
# The longest begin first, so that no core waits for them at the end.
PACKAGES  ?= ./integration ./sqlrewrite ./gateway/httpapi ./...
FUZZTIME  ?= 10000x
BENCHROWS ?= 1000000
BENCHTIME ?= 1s
PROOFS    ?= 500000
EXPRESSIONS ?= 400000
SOAK      ?= 1h
VERSIONS  ?= 14 15 16 17 18
TIMING    ?= 5000

# The linter remembers findings with the paths of the checkout that it saw them in, and then misreads its exceptions in another checkout
# of the same packages: each checkout has a memory of its own.
export GOLANGCI_LINT_CACHE ?= $(CURDIR)/.cache/golangci-lint

.DEFAULT_GOAL := help
.PHONY: help demo build check test integration clients console console-test golden fuzz faults faults-short failover soak audit bench neighbours versions timing totality citus proofs peers reproducible installable static sbom

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## private answers over a PostgreSQL of its own; Ctrl-C ends it
	bin/noisegate demo

build: ## the binary, at bin/noisegate
	$(GO) build -trimpath -o bin/noisegate ./cmd/noisegate

static: ## a binary that needs nothing of its machine, at bin/noisegate-static: what a container holds
	CGO_ENABLED=1 $(GO) build -trimpath -tags netgo,osusergo,timetzdata -ldflags '-linkmode external -extldflags -static' \
		-o bin/noisegate-static ./cmd/noisegate
	@if readelf --program-headers bin/noisegate-static | grep -q INTERP; then echo "bin/noisegate-static needs libraries" >&2; exit 1; fi
	bin/noisegate-static version

sbom: ## what the binary is made of, at bin/noisegate.cdx.json (CycloneDX)
	@mkdir -p bin
	$(GO) run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 app -json -licenses -main cmd/noisegate \
		-output bin/noisegate.cdx.json .

# In folders with names of different lengths, each with a cache of its own: everything is compiled twice, C too.
reproducible: ## two builds of the last commit have one hash (minutes)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && for copy in one/a two/longer; do \
		mkdir -p $$dir/$${copy%/*} && git clone -q --no-hardlinks . $$dir/$$copy && \
		GOCACHE=$$dir/$${copy%/*}/cache $(MAKE) -s -C $$dir/$$copy build && sha256sum $$dir/$$copy/bin/noisegate || exit 1; \
	done && cmp $$dir/one/a/bin/noisegate $$dir/two/longer/bin/noisegate

# Out of a proxy in front of the real one: a folder that has the last commit as a version, in a proxy's shape.
installable: ## "go install" takes the last commit as it takes a released module
	@module=$$($(GO) list -m) && version=$$(TZ=UTC git log -1 --abbrev=12 --date=format-local:%Y%m%d%H%M%S --format=v0.0.0-%cd-%h) && \
	dir=$$(mktemp -d) && extracted=$$($(GO) env GOMODCACHE)/$$module@$$version && \
	trap 'chmod -Rf u+w "$$extracted"; rm -rf "$$dir" "$$extracted"' EXIT && mkdir -p $$dir/$$module/@v && cd $$dir/$$module/@v && \
	git -C $(CURDIR) archive --format=zip --prefix=$$module@$$version/ -o $$PWD/$$version.zip HEAD && \
	git -C $(CURDIR) show HEAD:go.mod >$$version.mod && echo "{\"Version\": \"$$version\"}" >$$version.info && echo $$version >list && cd $$dir && \
	GOPROXY=file://$$dir,$$($(GO) env GOPROXY) GONOSUMDB=$$module GOBIN=$$dir/bin $(GO) install $$module/cmd/noisegate@$$version && \
	bin/noisegate version | tee /dev/stderr | grep -q $$version

check: ## formatting, vet, architecture, linters when installed, module checksums
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet $(PACKAGES)
	$(GO) test ./internal/archtest
	$(GO) mod verify
	@if command -v golangci-lint >/dev/null; then golangci-lint run --allow-parallel-runners; \
	else echo "golangci-lint (version 2) is not installed: its rules were not checked"; fi

test: check ## everything that must hold before a change lands (starts its own PostgreSQL)
	$(GO) test -timeout 40m $(PACKAGES)

integration: ## the real binary over HTTP, with output per test
	$(GO) test -count=1 -v -timeout 10m ./integration/...

golden: ## rewrite golden files, the list of functions, and the threat model's list of tests, from what is there; read the diff before you commit it
	$(GO) test ./catalog ./sqlrewrite ./sqlrewrite/internal/domain ./sqlrewrite/internal/parse ./sqlrewrite/statement -rewrite
	$(GO) test ./internal/archtest -rewrite

# A count, not a duration: until Go 1.27 a target fails now and then, with "context deadline exceeded", when its time is over (golang/go#75804).
fuzz: ## every fuzz target on FUZZTIME (10000x) inputs
	@grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | sed 's/^func //'); do \
			echo "$$dir $$target $(FUZZTIME)"; \
			$(GO) test $$dir -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

# What a campaign is made of: kills, SIGTERMs (a 20th) and older ledgers (a 100th) of the real binary, kills of a gateway at each of 12 points, stops of PostgreSQL, rounds
# of all else.
CAMPAIGN = $(GO) test -count=1 -v -timeout 120m

faults: ## the fault campaign: 1000 kills, 12 points x 84, 200 stops of PostgreSQL; and histories of 100000 operations for porcupine
	$(CAMPAIGN) -run 'KillsUnderLoad|OlderLedgers|SigtermUnderLoad|SchemaMigrated' ./integration -kills 1000
	$(CAMPAIGN) ./integration/faults -kills-per-point 84 -restarts 200 -rounds 20 -soak 5m
	$(CAMPAIGN) -run Linearizable ./budget/pgledger -operations 100000

faults-short: ## the same with 50 kills, 12 points x 20, 10 stops and a soak of 30 s, for CI
	$(CAMPAIGN) -run 'KillsUnderLoad' ./integration -kills 50
	$(CAMPAIGN) -run 'KillAtEveryPoint|PostgresStoppedUnderLoad|Soak' ./integration/faults -kills-per-point 20 -restarts 10 -soak 30s

failover: ## an asynchronous standby of the control database takes over under load, 50 times
	$(CAMPAIGN) -run 'Failover' ./integration/faults -failovers 50

soak: ## 64 clients at two gateways for SOAK (1h), with a fault every SOAK/60, at most every 30 s
	$(GO) test -count=1 -v -timeout 24h -run Soak ./integration/faults -soak $(SOAK)

audit: ## statistical tests of samplers and of the whole gateway, fresh samples
	NOISEGATE_FRESH=1 $(GO) test -count=1 -v -run 'Audit|Law|Uniform' -timeout 30m $(PACKAGES)

proofs: ## the proofs of the rewriter on 5000 random queries each, with every mutant, for CI; make test runs 300 of each and one mutant in four
	$(GO) test -count=1 -run 'Neighbours$$|OracleRandom|Coupling$$|KillMutants|RandomStatements|RandomExpressions|CostOracle$$|TestTotality|NoKeyVanishes' \
		-timeout 30m ./sqlrewrite -proof-queries 5000 -all-mutants -cost-queries 2000 -total-expressions 20000
	$(GO) test -count=1 -run Mutants -timeout 30m ./sqlrewrite/verify -mutants
	$(GO) test -count=1 -run OthersPurchasesDoNotShowAtRandom ./gateway/httpapi -histories 1000

neighbours: ## the proofs of the rewriter on PROOFS (500000) random queries each, the coupling on 5000
	$(GO) test -count=1 -v -run 'Neighbours$$|OracleRandom|Coupling$$|CostOracle$$' -timeout 12h ./sqlrewrite -proof-queries $(PROOFS) -cost-queries 100000

timing: ## what builtins and rows cost against the planner's table, then neighbouring datasets over HTTP at a quantum of 5 ms, TIMING (5000) questions to each
	$(GO) test -count=1 -v -run 'CostsAreMeasured' -timeout 1h ./sqlrewrite -measure-costs
	$(GO) test -count=1 -v -run 'TestTiming' -timeout 3h ./integration -timing $(TIMING)

# What is run on each major version: tests of these names, and those that are marked with an attack or a rule of the oracles (// covers: B1 E.3 ...). Tests that land later
# are taken by either. The packages of servers and of the reader's statements go along whole.
VERSIONED = TestTotality.*|TestGoldenStatementsRun|TestLedgerOfAnEarlierVersion|Test.*Neighbours|Test.*OracleRandom
MARKED = awk '/^\/\/ covers:/ {marked = /[ :]([BCDHPRW][0-9]|[EWP]\.[0-9])( |$$)/} /^func Test/ {if (marked) {sub(/\(.*/, "", $$2); print $$2}; marked = 0}' \
	$$(git ls-files '*_test.go') | sort -u | tr '\n' '|'

versions: ## what depends on PostgreSQL's version, on each of VERSIONS ("14 15 16 17 18", fetched when they are not installed), 500 neighbours each
	@names="^($$($(MARKED))$(VERSIONED))$$"; for version in $(VERSIONS); do \
		echo "== PostgreSQL $$version"; export NOISEGATE_POSTGRES_VERSION=$$version; \
		$(GO) test -count=1 -timeout 30m ./internal/pgserver ./internal/pgrole ./migrations ./catalog ./gateway/pgexec || exit 1; \
		$(GO) test -count=1 -timeout 60m -run "$$names" ./sqlrewrite -proof-queries 500 -cost-queries 2000 -total-expressions 20000 || exit 1; \
		$(GO) test -count=1 -timeout 60m -run "$$names" $$($(GO) list $(PACKAGES) | grep -vE '/(sqlrewrite|catalog|migrations|pgserver|pgrole|pgexec)$$') || exit 1; \
	done

totality: ## EXPRESSIONS (400000) random expressions over the worst rows: none raises an error; make test runs 4000
	$(GO) test -count=1 -v -run 'TestTotality|TestNoKeyVanishes' -timeout 2h ./sqlrewrite -total-expressions $(EXPRESSIONS) -proof-seed $$(date +%s)

citus: ## a gateway in front of a coordinator and two workers of Citus, built once from ../shared/engines (skipped where there is no source, compiler or PostgreSQL 15 to build with)
	$(GO) vet -tags citus ./gateway/pgexec ./integration
	$(GO) test -tags citus -count=1 -v -run 'TestCitus' -timeout 30m ./gateway/pgexec ./integration

clients: ## psql, drivers of Python, Java and Node.js, and ODBC over PostgreSQL's protocol: docs/psql-clients.md (each skipped where it is not installed)
	$(GO) vet -tags clients ./integration
	$(GO) test -tags clients -count=1 -v -run 'TestClients' -timeout 5m ./integration

# What node_modules has is what the lock file names, by its hash; no script of a package runs.
NODE_MODULES = gateway/console/node_modules/.package-lock.json

$(NODE_MODULES): gateway/console/package-lock.json gateway/console/.npmrc
	cd gateway/console && npm ci --silent

console: $(NODE_MODULES) ## the console in the browser, built from gateway/console/src into dist, which is committed (needs Node.js 20)
	cd gateway/console && npm run --silent check && npm run --silent build

console-test: build $(NODE_MODULES) ## journeys through the console in Chromium, against the real binary (needs Node.js 20, chromium and psql)
	cd gateway/console && npx playwright test

PEERS = opendp pipelinedp smartnoise tumult diffprivlib qrlew
DRAWS ?= 300
ENTRIES ?= 5000000

peers: ## the same questions to Noisegate and to other programs, DRAWS (300) answers each: docs/comparison.md (installs them; needs Python 3.11, x86-64, Java for one)
	@for peer in $(PEERS); do \
		test -x .cache/peers/$$peer/bin/python || python3 -m venv .cache/peers/$$peer || exit 1; \
		.cache/peers/$$peer/bin/pip install -q --disable-pip-version-check --require-hashes --no-deps -r integration/testdata/peers/$$peer.txt || exit 1; \
	done
	$(GO) test -count=1 -v -timeout 3h -run 'TestPeers$$|TestPeersLatency' ./integration -peers $(DRAWS)

ledger: ## a ledger of ENTRIES (5000000) entries: verified, archived, and how long a start takes (hours on a busy machine)
	$(GO) test -count=1 -v -run 'TestArchiveOfMany$$' -timeout 6h ./budget/pgledger -entries $(ENTRIES)

bench: ## Go benchmarks, then the gateway against plain SQL over BENCHROWS (1000000) rows
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $$($(GO) list $(PACKAGES) | grep -v /integration)
	$(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) -timeout 30m ./integration -rows $(BENCHROWS)
