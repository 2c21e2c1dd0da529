# Counterpoise. `make help` lists what there is. Needs Python 3.11 or newer, git and make.

PORT ?= 8000
VAR ?=
DATA ?=
PYTHON ?=
BIN = .venv/bin

.PHONY: help demo test check browser proofs benchmarks screenshots clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/' | expand -t 22

demo:  ## install, start everything, print ways in; PORT=8001 for another port, VAR=/folder for other data
	@PYTHON='$(PYTHON)' sh scripts/environment.sh laptop
	@exec $(BIN)/python -m backend demo --port '$(PORT)' $(if $(VAR),--var '$(VAR)') --with-parent

test:  ## everything: check, units, laws, a real database, queue and browser
	@PYTHON='$(PYTHON)' sh scripts/environment.sh test
	@sh scripts/chromium.sh
	@$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest

check:  ## format, lint, types, import rules, shape, documents, compose file
	@PYTHON='$(PYTHON)' sh scripts/environment.sh test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/python -m pytest -q tests/shape

browser:  ## install Chromium for the journeys, where that is allowed
	@PYTHON='$(PYTHON)' sh scripts/environment.sh test
	@sh scripts/chromium.sh

proofs:  ## the long simulations that `make test` leaves out; DATA=/folder holds adult.csv and dutch_census_2001.csv
	@PYTHON='$(PYTHON)' sh scripts/environment.sh test
	@[ -n '$(DATA)' ] || echo 'Without DATA=/folder the published tables of Adult and Dutch are left out.'
	DATA='$(DATA)' $(BIN)/python -m pytest -m proofs -s $(if $(DATA),,--ignore=tests/privacy/test_published.py)

benchmarks:  ## figures, never pass or fail
	@PYTHON='$(PYTHON)' sh scripts/environment.sh test
	@for one in benchmarks/[a-z]*.py; do [ -f "$$one" ] || continue; echo "$$one"; $(BIN)/python "$$one" || exit 1; done

screenshots:  ## pictures of the pages, into screenshots/
	@PYTHON='$(PYTHON)' sh scripts/environment.sh test
	@sh scripts/chromium.sh
	$(BIN)/python -m tests.journeys.screenshots

clean:  ## remove the environment and caches; the data in var/ stays
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
