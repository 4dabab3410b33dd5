# Lance Federator. `make` alone says what there is.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := 0.13.8
STAMP := $(VENV)/.installed
# One pytest worker a core. The tests of a file share its fixtures, so they stay on one worker. Files keep their order, because pytest-xdist
# would begin with the files of many tests: those with one test of some minutes would end the run, on one worker. A worker that dies ends
# the run: its replacement would begin the same file again.
WORKERS := -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0
# Tests of single modules. Those of whole services take longer, and many start PostgreSQL, Java or commands.
MODULES := $(filter-out $(addprefix tests/unit/,__pycache__/ api/ audit/ cli/ notify/ worker/),$(wildcard tests/unit/*/))
# Without cached byte code, each command compiles its libraries again, which costs more CPU time than a whole run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup check test test-quick pythons test-integrations bench prove adversary cluster fuzz-access interop demo docs helm toxiproxy stores lock servers release clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with everything pinned; the command is .venv/bin/federator

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; make setup PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV)
	$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --no-deps --no-build-isolation --editable .
	$(BIN)/python -m federator.worker.prepare_class_archive
	@touch $@

servers: setup ## install what the tests' real servers need: Maven (for Hive 3.1.3) and PostgreSQL
	@.ci/servers

check: setup ## lint, types (of the page, too), import directions, names, sizes of modules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/check_names.py
	@.ci/page_types

test: servers check pythons helm toxiproxy stores ## everything: checks, then the whole suite against real servers, with the 20 slowest tests at the end
	$(BIN)/python -m pytest $(WORKERS) --durations=20

test-quick: setup ## single modules and invariants, without Spark and servers
	$(BIN)/python -m pytest -q $(WORKERS) -m quick $(MODULES) tests/property

pythons: setup ## the quick tests on other minor versions of Python: Debian's own, and the newest one that is installed
	@.ci/pythons $(MODULES)

bench: servers ## speed, as ratios measured in one run: make bench BENCHMARKS=scale N=100000 RECORD=docs/reference/benchmarks.md
	$(if $(N),BENCH_TABLES=$(N)) $(BIN)/python -m tests.bench $(if $(RECORD),--record $(RECORD)) $(BENCHMARKS)

prove: setup ## mirroring, by random stories and an oracle that knows the truth: make prove N=1000000
	$(BIN)/python -m tests.prove --runs $(or $(N),10000) $(PROVE_ARGS)

adversary: servers ## faults, races and lies against real servers: make adversary PARTS='creates kills'
	$(BIN)/python -m tests.adversary $(PARTS)

fuzz-access: servers ## every route as every role in every scope, against services that hold only what is visible: make fuzz-access FUZZ_ARGS='--share 0.1'
	$(BIN)/python -m tests.fuzz_access $(FUZZ_ARGS)

interop: servers ## other projects' clients, from PyPI, npm and Maven Central: make interop CLIENTS='impls spark' CATALOGS='hive2 glue'
	$(BIN)/python -m tests.interop $(if $(CLIENTS),--clients $(CLIENTS)) $(if $(CATALOGS),--catalogs $(CATALOGS))

test-integrations: setup ## Airflow, Dagster, DataHub and OpenMetadata, each in its own environment, against a real service: make test-integrations PROJECTS='dagster'
	$(BIN)/python -m tests.integrations $(PROJECTS)

cluster: servers ## the pipeline on a Spark cluster and HDFS that share nothing with the driver (as root, 5 minutes)
	CI=1 $(BIN)/python -m pytest -o faulthandler_timeout=0 tests/cluster

demo: setup ## the whole way on real servers, in a temporary folder
	$(BIN)/federator demo $(DEMO_ARGS)

docs: .venv-docs/.installed ## build the documentation into build/docs; a broken link is an error
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	@echo "build/docs/index.html"

.venv-docs/.installed: requirements-docs.lock .ci/docs/mermaid $(STAMP)
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-docs
	$(BIN)/uv pip install --quiet --system-certs --python .venv-docs/bin/python --require-hashes -r requirements-docs.lock
	@.ci/docs/mermaid
	@touch $@

helm: setup ## helm, kubeconform and Kubernetes' schemas from the Go module proxy, which the tests of deploy/helm need
	@.ci/helm

toxiproxy: setup ## a fault injector from the Go module proxy, which tests/adversary needs
	@.ci/toxiproxy >/dev/null

stores: setup ## emulators of Azure (npm) and Google Cloud Storage (Go module proxy), which tests/servers/dir needs
	@.ci/stores >/dev/null

lock: setup ## pin the newest allowed versions into requirements.lock and requirements-docs.lock
	$(BIN)/uv pip compile --system-certs pyproject.toml --all-extras --group dev --universal --generate-hashes --no-emit-index-url --upgrade --quiet --output-file requirements.lock
	$(BIN)/uv pip compile --system-certs --group docs --universal --generate-hashes --no-emit-index-url --upgrade --quiet --output-file requirements-docs.lock

release: setup ## build and check dist/ as for PyPI, install it elsewhere, list its parts (SBOM); uploads nothing
	@.ci/release

clean: ## remove what setup and the tests made
	rm -rf $(VENV) .venv-docs dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
