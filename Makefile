# make demo    from problems to a better policy, on this machine's CPU
# make test    the tests
# make check   the linters and type checks
#
# Each installs what it needs into .venv first. PYTHON picks the interpreter (3.11 or newer).

SHELL := bash
.SHELLFLAGS := -o pipefail -ec
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check tiny-model tiny-problems clean

demo: $(VENV)/installed
	@$(MAKE) --no-print-directory -j2 -f pipelines/demo.mk RLVR=$(BIN)/rlvr PYTHON=$(BIN)/python

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest

check: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

tiny-model: $(VENV)/installed
	$(BIN)/python tools/train_tiny.py rlvr_cli/tiny/policy

tiny-problems: $(VENV)/installed
	$(BIN)/python -m rlvr_cli.tiny.problems

clean:
	rm -rf $(VENV) runs build dist *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rlvr needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@
