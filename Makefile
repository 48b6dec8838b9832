# `make run` shows what undershoot does, `make test` runs all checks. Both set up .venv by themselves.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test clean

run: .venv/installed
	$(BIN)/undershoot solve cube-2x2 "R U F2 R' U2 F R2"
	@for puzzle in lights-out-3x3 lights-out-5x5 tiles-3x3 cube-2x2; do echo; $(BIN)/undershoot oracle $$puzzle || exit; done
	@echo
	$(BIN)/undershoot train lights-out-3x3 --steps 2000 --out runs/first --resume
	@echo
	$(BIN)/undershoot calibrate runs/first --method exhaustive
	$(BIN)/undershoot certify runs/first
	@echo
	$(BIN)/undershoot bench tiles-3x3 --heuristics zero,base,linear-conflict,table --random 100

test: .venv/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("undershoot needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

.venv/installed-test: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@

clean:
	rm -rf .venv
