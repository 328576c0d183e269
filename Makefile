# The commands of the project. Each first installs the tools that it needs (scripts/tools).

.DEFAULT_GOAL := help
.PHONY: help run build web test lint licenses stress cluster load speed units

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Serve the app at http://127.0.0.1:8080 (ARGS="--listen HOST:PORT" for another address)
	target/release/trainplan serve $(ARGS)

build: web ## Build the binary target/release/trainplan with the web app inside
	scripts/tools build cargo build --release

web: dist/index.html ## Build the web app into dist/, for any static host

WEB_SOURCES := $(shell find web shared static runner/data Trunk.toml Cargo.toml Cargo.lock rust-toolchain.toml \
	-name node_modules -prune -o -type f -print)

dist/index.html: $(WEB_SOURCES)
	scripts/tools build trunk build --release

test: ## Run the whole test suite
	scripts/tools packages scripts/test

lint: ## Check formatting, lints, scripts and licences
	scripts/tools test scripts/lint

licenses: ## Update the list of licences after a change of dependencies
	scripts/tools build scripts/npm-ci web
	scripts/tools build scripts/licenses.mjs

cluster: ## Start a loopback cluster of ssh and Slurm for manual tests (as root; stop with Ctrl-C)
	scripts/tools test cargo test --package trainplan-tests --test cluster by_hand -- --ignored --nocapture

load: ## Measure the server with 100,000 runs and a log of 1 GB
	scripts/tools test scripts/load

speed: web ## Measure how fast the Plan page loads and reacts on a slow CPU (ARGS="--path /ADDRESS" for another page)
	scripts/tools test scripts/npm-ci tests/browser
	scripts/tools test scripts/page-speed.mjs $(ARGS)

units: build ## Test the systemd units in a virtual machine (as root, with qemu-system-x86_64 and mmdebstrap)
	scripts/try-units

stress: ## Run long tests: 100,000 cases of every property, fuzzing, benchmarks, 500 jobs
	scripts/tools stress scripts/stress
