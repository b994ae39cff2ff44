# On a machine with nothing but Python and pip: each target makes .venv and installs what it needs.
PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin

.PHONY: demo test kills check docs clean
.DEFAULT_GOAL := demo

demo: .venv/package
	$(BIN)/annotrace demo --out runs/demo --overwrite

# One thread per worker: the small matrices of the tests are slower on several threads.
test: export OMP_NUM_THREADS = 1
test: .venv/test
	$(BIN)/python -m pytest -n $(WORKERS) tests
	$(BIN)/python -m pytest -n $(WORKERS) --doctest-modules src

# Kills 200 commands at random moments, and runs 64 at once into 8 folders.
kills: .venv/test
	$(BIN)/python tests/kill_runs.py

check: .venv/check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site is docs/_build/html/index.html; a warning is an error.
docs: .venv/docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist runs docs/_build
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per set of requirements, installed again only when they change.
.venv/pip:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

.venv/package: .venv/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/test: .venv/package
	$(BIN)/python -m pip install --quiet --group test
	touch $@

.venv/docs: .venv/package
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

.venv/check: .venv/package
	$(BIN)/python -m pip install --quiet --group check --group test
	touch $@
