.DEFAULT_GOAL := help
STATICCHECK_VERSION := v0.8.2
TOOLS := $(CURDIR)/.tools

.PHONY: help
help: ## Show what can be made
	@grep -hE '^[a-z/]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: run
run: ## Run everything on this machine
	go run ./cmd/tollgate

.PHONY: dev
dev: ## Run, and build again whenever a page changes
	go tool templ generate -watch -proxy=http://127.0.0.1:8080 -cmd "go run ./cmd/tollgate --addr 127.0.0.1:8080"

.PHONY: test
test: ## Run the whole test suite
	go test ./...

.PHONY: race
race: ## Test engine, jobs, ledger and tenants with the race detector
	go test -race ./app/engine/... ./jobs/... ./billing/... ./tenants/...

.PHONY: races
races: ## Try each race between people, deadlines and steps a thousand times
	TOLLGATE_RACES=1000 go test ./app/engine -count=1 -timeout 2h -v -run Rac

.PHONY: tree
tree: ## Cancel a tree of 3 levels of runs, 1,001 in all, with calls in flight
	TOLLGATE_TREE=50 go test ./app/engine -count=1 -v -run TestCancelGoesDownATreeOfRuns

.PHONY: operations
operations: ## Measure each operation on a run of 10,000 step runs
	TOLLGATE_ROUNDS=100 go test ./app/engine -count=1 -v -run TestOperationsOnALargeRun

.PHONY: redrive
redrive: ## Try 1,000 failed runs again by filter, with a kill -9 half-way
	TOLLGATE_REDRIVE=1000 go test ./cmd/tollgate -count=1 -v -run TestKillHalfWayThroughABulk

.PHONY: paced
paced: ## Keep 300 calls within 60,000 tokens a minute of a provider, at its true pace
	TOLLGATE_PACED=300 go test ./app/engine -count=1 -timeout 20m -v -run TestRateLimitedCalls

.PHONY: fuzz
fuzz: ## Fuzz each parser and rule for a minute
	@for target in $$(grep -rlE '^func Fuzz' --include=*_test.go . | xargs -n1 dirname | sort -u); do \
		for name in $$(grep -hoE '^func Fuzz[A-Za-z]+' $$target/*_test.go | sed 's/func //'); do \
			echo "$$target $$name"; go test $$target -run '^$$' -fuzz "^$$name\$$" -fuzztime 60s || exit 1; \
		done; \
	done

.PHONY: chaos
chaos: ## Kill, freeze and crash everything for ten minutes; the result goes to docs/measures/
	TOLLGATE_CHAOS_REPORT=$(CURDIR)/docs/measures go test ./cmd/tollgate -run '^TestChaos$$' -count=1 -timeout 30m -v

.PHONY: generate
generate: ## Generate Go code from the templ pages
	go tool templ generate

.PHONY: verify
verify: ## Check that generated files are fresh
	go tool templ generate -check

.PHONY: lint
lint: $(TOOLS)/staticcheck ## Run go vet and staticcheck
	go vet ./...
	$(TOOLS)/staticcheck -checks inherit,-ST1005 ./... # errors that people read are whole sentences

$(TOOLS)/staticcheck:
	GOBIN=$(TOOLS) go install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)

.PHONY: shots
shots: ## Take pictures of all pages, both widths and themes, into shots/
	TOLLGATE_SHOTS=$(CURDIR)/shots go test -count=1 ./web ./web/ui/gallery ./cmd/tollgate -run 'Look|Gallery|Walk'

.PHONY: bench
bench: ## Measure the engine (MEASURE=W1,W2 some of it), the pages at 1,000 runs of 20 steps, and the ledger
	go test ./jobs/bench -count=1 -timeout 2h -v -run 'Measures$$' -args -measure $(or $(MEASURE),W1,W2,W3,W4,W5,W6,W7,W8) -note $(CURDIR)/docs/measures
	go test ./web -run '^$$' -bench Pages -benchtime 200x
	go test ./billing/ledger -run '^$$' -bench . -benchtime 3s
	TOLLGATE_CHARGES=1000000 go test ./billing/ledger -count=1 -v -run TestLargeMonth

.PHONY: lists
lists: ## Measure lists of runs, and finding some, with a million runs in the table
	TOLLGATE_RUNS=1000000 go test ./web -run '^$$' -bench Lists -benchtime 100x -timeout 1h

.PHONY: image
image: ## Run the steps of the Dockerfile without Docker
	.ci/image

.PHONY: ci
ci: ## Run what a submission must pass
	.ci/run
