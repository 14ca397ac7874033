# Noisegate's commands. "make help" lists them.

GO        ?= go
PACKAGES  ?= ./...
FUZZTIME  ?= 10s
BENCHROWS ?= 1000000
BENCHTIME ?= 1s
PROOFS    ?= 500000
SOAK      ?= 1h

# The linter remembers findings with the paths of the checkout that it saw them in, and then misreads its exceptions in another checkout
# of the same packages: each checkout has a memory of its own.
export GOLANGCI_LINT_CACHE ?= $(CURDIR)/.cache/golangci-lint

.DEFAULT_GOAL := help
.PHONY: help demo build check test integration golden fuzz faults faults-short soak audit bench neighbours

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## private answers over a PostgreSQL of its own; Ctrl-C ends it
	bin/noisegate demo

build: ## the binary, at bin/noisegate
	$(GO) build -trimpath -o bin/noisegate ./cmd/noisegate

check: ## formatting, vet, architecture, linters when installed, module checksums
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet $(PACKAGES)
	$(GO) test ./internal/archtest
	$(GO) mod verify
	@if command -v golangci-lint >/dev/null; then golangci-lint run; \
	else echo "golangci-lint (version 2) is not installed: its rules were not checked"; fi

test: check ## everything that must hold before a change lands (starts its own PostgreSQL)
	$(GO) test -timeout 20m $(PACKAGES)

integration: ## the real binary over HTTP, with output per test
	$(GO) test -count=1 -v -timeout 10m ./integration/...

golden: ## rewrite golden files, and the threat model's list of tests, from what is there; read the diff before you commit it
	$(GO) test ./catalog ./sqlrewrite -rewrite
	$(GO) test ./internal/archtest -rewrite

fuzz: ## every fuzz target for FUZZTIME (10s)
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
	$(CAMPAIGN) -run 'F01Kills|F12Older|F20SigtermUnder|F21Schema' ./integration -kills 1000
	$(CAMPAIGN) ./integration/faults -kills-per-point 84 -restarts 200 -rounds 20 -soak 5m
	$(CAMPAIGN) -run Linearizable ./budget -operations 100000

faults-short: ## the same with 50 kills, 12 points x 20, 10 stops and a soak of 30 s, for CI
	$(CAMPAIGN) -run 'F01Kills' ./integration -kills 50
	$(CAMPAIGN) -run 'F02|F03|F24' ./integration/faults -kills-per-point 20 -restarts 10 -soak 30s

soak: ## 64 clients at two gateways for SOAK (1h), with a fault every SOAK/60, at most every 30 s
	$(GO) test -count=1 -v -timeout 24h -run F24 ./integration/faults -soak $(SOAK)

audit: ## statistical tests of samplers and of the whole gateway, fresh samples
	$(GO) test -count=1 -v -run 'Audit|Law|Uniform' -timeout 30m $(PACKAGES)

neighbours: ## the proofs of the rewriter on PROOFS (500000) random queries each, the coupling on 5000; make test runs 5000 of each
	$(GO) test -count=1 -v -run 'Neighbours$$|OracleRandom|Coupling$$' -timeout 12h ./sqlrewrite -proof-queries $(PROOFS)

bench: ## Go benchmarks, then the gateway against plain SQL over BENCHROWS (1000000) rows
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $$($(GO) list $(PACKAGES) | grep -v /integration)
	$(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) -timeout 30m ./integration -rows $(BENCHROWS)
