# On a machine with nothing but Python and pip: each target makes .venv and installs what it needs.
PYTHON ?= python3
WORKERS ?= 2
MINUTES ?= 60
BIN := .venv/bin

.PHONY: demo test fuzz kills bench check docs coverage soak mutants audit clean
.DEFAULT_GOAL := demo

demo: .venv/package
	$(BIN)/annotrace demo --out runs/demo --overwrite

# One thread per worker: the small matrices of the tests are slower on several threads.
test: export OMP_NUM_THREADS = 1
test: .venv/test
	$(BIN)/python -m pytest -n $(WORKERS) tests
	$(BIN)/python -m pytest -n $(WORKERS) --doctest-modules src

# Lines and branches of the package that the tests execute; at least 95 %.
coverage: export OMP_NUM_THREADS = 1
coverage: .venv/test
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term tests

# Memory of one process that fits, saves and reports for a time: `make soak MINUTES=1`.
soak: export OMP_NUM_THREADS = 1
soak: .venv/test
	$(BIN)/python benchmarks/soak.py --minutes $(MINUTES) $(if $(OUT),--out $(OUT))

# Whether the tests notice changes of the code: all in crowd/, 300 in labels/; `make mutants SAMPLE=9`.
mutants: .venv/test
	mkdir -p runs
	$(BIN)/python benchmarks/mutation.py crowd --workers $(WORKERS) --out runs/mutants.jsonl \
		--tests tests/crowd tests/aggregation tests/diagnosis $(if $(SAMPLE),--sample $(SAMPLE))
	$(BIN)/python benchmarks/mutation.py labels --workers $(WORKERS) --out runs/mutants.jsonl \
		--sample $(or $(SAMPLE),300)

# Known vulnerabilities of the installed packages. Builds such as torch 2.13+cpu are audited as 2.13;
# --strict fails if the database does not know a package, which otherwise counts as no finding.
audit: .venv/audit
	mkdir -p runs
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+[a-z0-9.]*$$//' > runs/requirements.txt
	$(BIN)/pip-audit --strict --disable-pip --no-deps --requirement runs/requirements.txt

# The tests of damaged files with many more examples than in `make test`.
fuzz: export OMP_NUM_THREADS = 1
fuzz: export ANNOTRACE_FUZZ_EXAMPLES ?= 5000
fuzz: .venv/test
	$(BIN)/python -m pytest -n $(WORKERS) -m fuzz tests

# Kills 200 commands at random moments, runs 64 at once into 8 folders, and kills an encoding 5 times.
kills: .venv/test
	$(BIN)/python tests/kill_runs.py
	$(BIN)/python benchmarks/encoding_kills.py

# Time and memory against other libraries, and growth curves, drawn into the docs; half an hour.
# `make bench SIZES=S` compares on a small crowd only, in three minutes, and leaves the docs alone.
bench: OUT ?= $(if $(SIZES),runs,results)/bench.jsonl
bench: REFERENCE ?= $(wildcard ../shared/bench/reference_dawid_skene.py)
bench: .venv/package
	$(BIN)/python benchmarks/bench.py $(SIZES) --out $(OUT) $(if $(REFERENCE),--reference $(REFERENCE))
	$(if $(filter results/bench.jsonl,$(OUT)),$(BIN)/python docs/generated.py)

check: .venv/check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site is docs/_build/html/index.html; a warning is an error.
docs: .venv/docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage build dist runs docs/_build
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

.venv/audit: .venv/package
	$(BIN)/python -m pip install --quiet --group audit
	touch $@
