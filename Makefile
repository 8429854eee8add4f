# Two commands on a fresh machine: `make run` and `make test`. Needs Python 3.11 or later, nothing else.
PY   ?= python3
VENV ?= .venv
BIN  := $(VENV)/bin
UV   := $(shell command -v uv 2>/dev/null)
PG   := $(or $(wildcard /usr/lib/postgresql/*/bin/initdb),$(shell command -v initdb 2>/dev/null))
CONS := $(if $(wildcard constraints.txt),-c constraints.txt)

.DEFAULT_GOAL := help
.PHONY: help run test check prove bench clean

help: ## show this help
	@echo "evenhand: an even hand over uneven GPUs"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-14s%s\n", $$1, $$2}'

run: $(VENV)/.stamp ## install, serve on this machine, solve a real cluster's round and show the plan
	@$(BIN)/python examples/first_round.py $(RUN)

test: $(VENV)/.stamp ## install and run the tests (minutes)
	@$(if $(PG),:,echo "PostgreSQL is not installed: the tests of the ledger run on SQLite alone (.ci/run installs it)")
	$(BIN)/python -m pytest -m "not heavy$(if $(PG),, and not postgres)" $(T)

check: $(VENV)/.stamp ## lint, types, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

prove: $(VENV)/.stamp ## the heavy tests: random sweeps at the sizes the documentation quotes
	@$(if $(PG),:,echo "PostgreSQL is not installed: the tests of the ledger run on SQLite alone (.ci/run installs it)")
	$(BIN)/python -m pytest -m "heavy$(if $(PG),, and not postgres)" $(T)

bench: $(VENV)/.stamp ## rounds by size and contention, with tables (an hour; see docs/performance.md)
	$(BIN)/python benchmarks/rounds/figures.py --peers-s 30 --doc docs/performance.md $(BENCH)

clean: ## remove what was installed and built
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/.stamp: pyproject.toml $(wildcard constraints.txt)
	@echo "installing into $(VENV) ..."
ifdef UV
	@$(UV) venv -q --allow-existing --python $(PY) $(VENV)
	@$(UV) pip install -q --python $(BIN)/python --group dev $(CONS) -e .
else
	@$(PY) -m venv $(VENV)
	@$(BIN)/python -m pip install -q -U "pip>=25.1"
	@$(BIN)/python -m pip install -q --group dev $(CONS) -e .
endif
	@touch $@
