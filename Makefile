# From a fresh clone `make test` makes its own environment and runs everything; only Python 3.11 to 3.13 is needed.
VENV ?= .venv
PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell $(name) -c 'import sys; print(sys.executable if (3, 11) <= sys.version_info[:2] < (3, 14) else "")' 2>/dev/null)))
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install test lint bench demo build snapshots clean

help:
	@echo "make install    the environment $(VENV) with the development tools"
	@echo "make test       lint, then every suite; says what each took"
	@echo "make lint       ruff, mypy, import contracts"
	@echo "make bench      budgets as ratios, measured in one run"
	@echo "make demo       a real quark-cli with a small model, and the app opened on a job for it"
	@echo "make build      wheel and source distribution under dist/"
	@echo "make snapshots  write the frames of the screens and the pictures anew"
	@echo "make clean      remove what was made here, the environment too"

install: $(STAMP)

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 to 3.13 is needed: make PYTHON=/path/to/python"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $(STAMP)

test: $(STAMP)
	@$(BIN)/python tests/run_suites.py

lint: $(STAMP)
	@$(BIN)/python tests/run_suites.py lint

bench: $(STAMP)
	@$(BIN)/python -m benchmarks

demo: $(STAMP)
	@exec $(BIN)/python -m quark_tui.demo open

build: $(STAMP)
	$(BIN)/python -m build --no-isolation --outdir dist .

snapshots: $(STAMP)
	UPDATE_SNAPSHOTS=1 $(BIN)/python -m pytest -q tests/ui

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
