# Two commands do everything on a fresh machine: `make demo` and `make test`.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	&& echo $$p && break; done)
BIN := .venv/bin
READY := .venv/.ready
WORKERS ?= 3
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal

# Hundreds of processes start in the tests, and each reads the byte code.
unexport PYTHONDONTWRITEBYTECODE

# The pure packages, and the tests that must cover every branch of them.
PURE := core drawing forms language model repair source
COVERED := tests/core tests/language tests/forms tests/source tests/drawing tests/model tests/repair \
	tests/replay \
	tests/docs/test_diagrams.py \
	tests/journal/test_codec.py tests/journal/test_snapshots.py tests/work/test_models.py

# What is said of applications in memory or in a home, said of other stores (tests/stores.py).
ELSEWHERE := tests/runtime tests/plans tests/interactions tests/seeds tests/server \
	tests/conversations tests/agents

.PHONY: demo test campaign chaos browser postgresql check bench bench-setup diagrams images messages docs release format clean setup

demo: setup
	@$(BIN)/holdfast demo

# Branches are counted where they must all be taken; property tests run without counting.
UNCOUNTED := hypothesis or uncounted
test: setup browser postgresql
	HOLDFAST_FROZEN=1 $(PYTEST) -m 'not ($(UNCOUNTED))' $(COVERED) $(PURE:%=--cov=holdfast.%) \
		--cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=100
	HOLDFAST_FROZEN=1 $(PYTEST) -m '$(UNCOUNTED)' $(COVERED)
	$(PYTEST) $(COVERED:%=--ignore=%)
	HOLDFAST_TESTS_ON=sqlite $(PYTEST) $(ELSEWHERE)
	HOLDFAST_TESTS_ON=postgresql $(PYTEST) $(ELSEWHERE)

# The same trials with new chance, over and over: power cuts, random runs, races, kills.
SECONDS ?= 600
campaign: setup postgresql
	$(BIN)/python tests/campaign.py $(SECONDS)

# Two servers and four workers in a storm: kills, restarts of PostgreSQL, a minute without it.
RUNS ?= 2000
chaos: setup postgresql
	$(BIN)/python tests/chaos/chaos_campaign.py $(RUNS) $(SEED:%=--seed %)

browser: setup
	@$(BIN)/python tests/chromium.py

postgresql: setup
	@$(BIN)/python tests/postgresql.py

check: setup
	$(BIN)/ruff format --check src tests bench docs examples release.py
	$(BIN)/ruff check src tests bench docs examples release.py
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: bench-setup postgresql
	$(BIN)/python -m bench
	$(BIN)/python -m bench.postgres
	$(BIN)/python -m bench.postgres.journal
	$(BIN)/python -m bench.postgres.many

bench-setup: setup
	$(BIN)/python -m bench.setup

images: setup browser
	$(BIN)/python docs/make_images.py
	$(BIN)/python docs/make_screenshots.py

diagrams: setup
	$(BIN)/python docs/make_diagrams.py
	$(BIN)/python docs/make_walks.py
	$(BIN)/python docs/make_settings.py

messages: setup
	$(BIN)/python docs/make_messages.py

docs: setup
	$(BIN)/sphinx-build -q -W --keep-going -b html -d site/.doctrees docs site
	@echo "site/index.html has the documentation"

release: setup
	$(BIN)/python release.py

format: setup
	$(BIN)/ruff format src tests bench docs examples release.py
	$(BIN)/ruff check --fix src tests bench docs examples release.py

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Holdfast needs Python 3.11 or newer: install it, then run make again."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { rm -rf .venv; \
		echo "Python cannot make virtual environments here: install its venv module (on Debian: apt-get install python3-venv), then run make again."; exit 1; }
	@echo "Setting up .venv (once, about a minute) …"
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -q src
	@touch $@

clean:
	rm -rf .venv .venv-bench site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
