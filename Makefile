# `make run` solves a cube and makes the paper's tables anew, in some minutes; `make test` runs all checks; `make docs`
# writes the documentation as a site; `make studio` opens the studio in a browser. All set up .venv by themselves.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test docs studio clean

run: .venv/installed
	$(BIN)/undershoot solve cube-2x2 "R U F2 R' U2 F R2"
	@echo
	$(BIN)/undershoot reproduce --profile quick --resume

test: .venv/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest

docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo 'site/index.html; with search: $(PYTHON) -m http.server --directory site'

studio: .venv/installed-studio
	$(BIN)/undershoot studio --puzzles examples

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("undershoot needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

.venv/installed-test: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@

.venv/installed-studio: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[studio]'
	@touch $@

.venv/installed-docs: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

clean:
	rm -rf .venv site
