# One word, one act. `make` alone lists the words.

.DEFAULT_GOAL := help
.PHONY: help setup demo factory check test test-fast test-lowest coverage mutants soak bench bench-peers docs dist pictures format clean java

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOWEST := .venv-lowest
FAST := $(addprefix tests/,grammar model policies plan operators evaluators monitor) \
	$(addprefix tests/drivers/test_,local.py late.py batches.py output_order.py reading.py) \
	$(addprefix --ignore=tests/evaluators/test_,approximate.py by_element.py counted.py forgetting.py pairs.py voi.py) \
	--ignore=tests/grammar/test_tables.py --ignore=tests/operators/test_sap.py
PARTS := differential kills damage floods service console steady wheel properties
BENCHMARKS := $(sort $(wildcard benchmarks/bench_*.py))

# The first Python that is recent enough; `make setup PYTHON=...` takes another one.
IS_RECENT := -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
NAMES := python3 python3.13 python3.12 python3.11
PYTHON ?= $(firstword $(foreach name,$(NAMES),$(shell $(name) $(IS_RECENT) && echo $(name))) python3)

help: ## list the words
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile

setup: $(STAMP) ## create .venv and install the package into it, with the tools to develop it

demo: $(STAMP) java ## rank users on Spark under a budget, against a SPARQL server that changes
	$(BIN)/rsp demo

factory: $(STAMP) ## rank the products of a factory for a minute: sensors, mosquitto, an ERP
	$(BIN)/python examples/factory/run.py

check: $(STAMP) ## check format, lint, types, import rules and the examples in docstrings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q --doctest-modules rsp_engine

test: $(STAMP) java ## run the tests, within minutes (needs Java 17 or later: see scripts/java)
	$(BIN)/pytest -n 3 --dist loadscope
	@echo "left out: most examples of the properties, most cases on Spark, kills, floods, hours (make soak)"

test-fast: $(STAMP) ## run the tests that need neither Java nor a process nor a server, within a minute
	RSP_FAST=1 $(BIN)/pytest -q -n 2 --dist worksteal -m "not outside" $(FAST)
	@echo "left out: Spark, servers, processes, formats, checkpoints, experiments, the command line, nine in ten examples (make test)"

test-lowest: ## run the tests without Spark, Java and processes with the lowest versions that pyproject.toml allows
	@$(PYTHON) scripts/lowest.py $(LOWEST)/requirements.txt
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip install -qq --disable-pip-version-check -r $(LOWEST)/requirements.txt
	@$(LOWEST)/bin/python -m pip install -qq --disable-pip-version-check --no-deps -e .
	RSP_FAST=1 $(LOWEST)/bin/python -m pytest -q -n 2 --dist worksteal -W ignore::DeprecationWarning -m "not outside" $(FAST)

coverage: $(STAMP) java ## measure which lines and branches the tests run, list the files they run least (ROOM=plan: of one room)
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -q -n 3 --dist loadscope $(addprefix tests/,$(ROOM))
	$(BIN)/coverage combine -q
	$(BIN)/coverage report $(if $(ROOM),--include='rsp_engine/$(ROOM)/*') | awk 'NR <= 32 || /^TOTAL/'

mutants: $(STAMP) ## put 300 small defects into the policies and into MinTopk; list those that no test notices
	$(BIN)/python scripts/mutants.py

soak: $(STAMP) java ## run the long tests, part by part, each with its time (PART=kills runs one)
	@set -e; for part in $(or $(PART),$(PARTS)); do \
		begun=$$(date +%s); echo "soak: $$part"; \
		case $$part in \
		differential) paths=tests/differential ;; \
		kills) paths="tests/soak/test_kills.py tests/io/delivery/test_kills.py tests/drivers/spark" ;; \
		damage) paths=tests/drivers/test_damage.py ;; \
		floods) paths=tests/io/live ;; \
		service) paths="tests/server --ignore=tests/server/console" ;; \
		console) paths=tests/server/console ;; \
		steady) paths=tests/soak/test_steady.py ;; \
		wheel) paths=tests/soak/test_wheel.py ;; \
		properties) paths="tests --ignore=tests/differential --ignore=tests/soak --ignore=tests/drivers/spark --ignore=tests/io/live --ignore=tests/server --ignore=tests/io/delivery/test_kills.py" ;; \
		*) echo "There is no part $$part; the parts are $(PARTS)." >&2; exit 2 ;; \
		esac; \
		RSP_THOROUGH=1 $(BIN)/pytest -n 2 --dist loadscope -q -rfEP $$paths; \
		echo "soak: $$part took $$(( $$(date +%s) - begun )) s"; \
	done

bench: $(STAMP) java ## run the benchmarks, one after the other, within half an hour (FULL=1: in full, within hours)
	@test -n "$(BENCHMARKS)" || { echo "There is no benchmarks/bench_*.py to run." >&2; exit 1; }
	@set -e; for script in $(BENCHMARKS); do \
		echo "$$script"; RSP_FULL=$(FULL) $(BIN)/python "$$script"; \
	done
	@test -n "$(FULL)" || echo "left out: the full sizes, which docs/explanation/performance.md shows (make bench FULL=1)"

bench-peers: $(STAMP) java ## compare with other programs on the same files (PEERS="duckdb reload" CASES="a b" RUNS=3 SIZE=0.1)
	$(BIN)/python -m benchmarks.peers $(foreach flag,PEERS CASES RUNS SIZE,\
		$(if $($(flag)),--$(shell echo $(flag) | tr A-Z a-z) $($(flag))))

docs: $(STAMP) ## build the site of the documents into site/, with a warning as an error
	@$(BIN)/python -c 'import material' 2>/dev/null || $(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q
	@echo "to read it, with its search: python3 -m http.server --directory site"

dist: $(STAMP) ## build the wheel and the source archive into dist/
	@$(BIN)/python -c 'import build' 2>/dev/null || $(BIN)/python -m pip install -qq --disable-pip-version-check build
	$(BIN)/python -m build -q

pictures: $(STAMP) ## draw the pictures of the documents
	$(BIN)/python scripts/pictures.py
	$(BIN)/python scripts/architecture.py
	$(BIN)/python scripts/screenshots.py

format: $(STAMP) ## format the code and mend what can be mended by machine
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean: ## remove .venv, caches and builds
	rm -rf $(VENV) $(LOWEST) site benchmarks/peers/.venv benchmarks/peers/.streams build dist .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

java:
	@scripts/java

$(STAMP): pyproject.toml
	@$(PYTHON) $(IS_RECENT) || { \
		echo "$(PYTHON) is missing or older than Python 3.11. Install a later one:"; \
		echo "    sudo apt-get install python3 python3-venv          (Debian 12, Ubuntu 24.04 or later)"; \
		echo "    sudo apt-get install python3.11 python3.11-venv    (Ubuntu 22.04)"; \
		echo "or name one that you have: make setup PYTHON=/path/to/python"; \
		exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "$(PYTHON) lacks the module venv. Install it:"; \
		echo "    sudo apt-get install python$$version-venv"; \
		exit 1; } >&2
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing into $(VENV). The first time, this takes a minute or two."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@
