# Axon Edge. `make run` runs the rover, `make test` the tests; both set up what they need the first time.
#   make run [FOR=20s] [SUMMARY=out.json] [AGENT=examples/rover]
#   make test   make lint   make bench   make setup   make clean   make plug [N=200]   make crash [N=100000]

AGENT   ?= examples/rover
VENV    := .venv
BIN     := $(VENV)/bin
FITS    := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
# The first that runs and is new enough: a name alone may be a shim for a Python that isn't there.
PYTHON  ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
             $$name -c '$(FITS)' >/dev/null 2>&1 && { echo $$name; break; }; done)
READY   := $(VENV)/.ready

.PHONY: run test lint bench plug crash setup check-system clean
.DEFAULT_GOAL := help

help:
	@sed -n '2,4p' Makefile | sed 's/^# *//'

run: $(READY)
	@$(BIN)/axon run "$(AGENT)" $(if $(FOR),--for "$(FOR)") $(if $(SUMMARY),--summary "$(SUMMARY)") $(ARGS)

test: $(READY)
	@$(BIN)/python -m pytest $(ARGS)

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(READY)
	@$(BIN)/python -m bench $(ARGS)

plug: $(READY)
	@$(BIN)/python -m plug --cuts $(or $(N),200) $(ARGS)

crash: $(READY)
	@$(BIN)/python -m crash $(or $(N),100000) $(ARGS)

setup: $(READY)

# The marker is written last: a set-up that was interrupted begins again.
$(READY): pyproject.toml
	@$(MAKE) --no-print-directory check-system
	@echo "Setting up $(VENV) with $(PYTHON); this takes a minute the first time."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

check-system:
	@test -n "$(PYTHON)" && command -v "$(PYTHON)" >/dev/null || \
	  { echo "No Python 3.11 to 3.13$(if $(PYTHON), under the name $(PYTHON)): sudo apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c '$(FITS)' || \
	  { echo "$(PYTHON) is $$($(PYTHON) -V); Axon Edge needs 3.11 to 3.13, as Debian 12 and 13 have: sudo apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python can't make virtual environments: sudo apt install $$($(PYTHON) -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')"; exit 1; }

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
