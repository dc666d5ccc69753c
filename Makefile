# Everything happens in .venv, which is made on first use and renewed when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Of the suite `hard`, from a list of the hardest that players know: tdoku guesses about 87 times.
HARD := .7.....8......7..1..35..4..1...9...4..43..2..8......9......26...4.6....5..6.53.4.

.PHONY: demo test lint types unit bench format clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo    install, then watch a hard Sudoku being solved"
	@echo "make test    install, then lint, check types and run the tests"
	@echo "make bench   measure the game beside a SAT solver (a minute or two)"
	@echo "make format  let ruff rewrite the code"
	@echo "make clean   remove .venv, compiled kernels and caches"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || \
		{ echo "Ronri needs Python 3.11 to 3.13: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/ronri solve "$(HARD)" --watch

test: lint types unit

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

unit: $(VENV)/.installed-dev
	$(BIN)/python -m pytest

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/game.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
