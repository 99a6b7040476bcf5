# make reproduce        everything from a fresh clone: environment, then every claim into report/
# make reproduce-quick  the same with smaller problems, in five to seven minutes
# make reproduce-thorough  with the experiments that are too expensive for the full run
# make reproduce-images | reproduce-images-quick  the claims on real images (Section 6): 130 MB more
# make test | test-fast | snapshot | lint | bench | package | docs | clean
# make test ALL=1 COVERAGE=1   with the slow tests, and the coverage measured, as in CI
#
# The environment lives in .venv and is set up once per change of pyproject.toml.
# Another interpreter: make PYTHON=/path/to/python3.12 reproduce

CANDIDATES := python3 python3.13 python3.12 python3.11
RECENT := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in $(CANDIDATES); do \
	"$$python" -c '$(RECENT)' 2>/dev/null && { echo "$$python"; break; }; done)
VENV := .venv
# tests of one package or tool each, about a minute in all
FAST := tests/symbolic/core tests/dynamics/core tests/dynamics/masked tests/simulations/test_files.py \
	tests/simulations/test_reproduce.py tests/simulations/test_report.py tests/simulations/test_falsify_language.py \
	tests/simulations/test_intervals.py tests/simulations/test_falsify_search.py \
	tests/simulations/test_sweep_config.py tests/dynamics/positional/test_problem.py tests/test_closeness.py
BIN := $(VENV)/bin
# write bytecode whatever the environment sets: importing the packages of a claim takes 2.6 s of
# processor time with bytecode, 8.8 s without
unexport PYTHONDONTWRITEBYTECODE
# pip does not compile bytecode of modules that are never imported, which saves half a minute
QUIETLY := --quiet --disable-pip-version-check --no-compile

.PHONY: reproduce reproduce-quick reproduce-thorough reproduce-images reproduce-images-quick test test-fast snapshot lint bench package docs clean
.DELETE_ON_ERROR:

reproduce: $(VENV)/.compiled
	$(BIN)/patchdyn reproduce --out report

reproduce-quick: $(VENV)/.compiled
	$(BIN)/patchdyn reproduce --quick --out report-quick

reproduce-thorough: $(VENV)/.compiled
	$(BIN)/patchdyn reproduce --thorough --out report-thorough

reproduce-images: $(VENV)/.installed-images $(VENV)/.compiled
	$(BIN)/patchdyn reproduce --images --out report-images

reproduce-images-quick: $(VENV)/.installed-images $(VENV)/.compiled
	$(BIN)/patchdyn reproduce --images --quick --out report-images-quick

# kernels are compiled first, so that no two processes compile the same one; the tests of a file run
# in one process and share their fixtures. ALL=1 adds the tests marked slow, COVERAGE=1 measures the
# coverage; CI does both
test: $(VENV)/.installed-dev
	$(BIN)/python -m dynamics.precompile
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder \
		$(if $(ALL),,-m "not slow") $(if $(COVERAGE),--cov --cov-report=term)

test-fast: $(VENV)/.installed-dev
	$(BIN)/python -m dynamics.precompile
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(FAST)

# run after a change of the claims: stores their texts, verdicts and numbers from fresh reports
snapshot: $(VENV)/.compiled
	$(BIN)/patchdyn reproduce --out report
	$(BIN)/patchdyn reproduce --quick --out report-quick
	$(BIN)/python -m simulations.reproduction.snapshot --pages . report report-quick

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-bench
	$(BIN)/python -m pytest tests/benchmarks --benchmark-enable --benchmark-only

# build the sdist, and the wheel from it; then run one claim in an empty environment
package: $(VENV)/.installed-dev
	rm -rf build/package
	$(BIN)/python -m build --outdir build/package/dist .
	"$(PYTHON)" -m venv build/package/empty
	build/package/empty/bin/python -m pip install $(QUIETLY) build/package/dist/*.whl
	cd build/package && empty/bin/patchdyn reproduce --quick --only figure-3 --out report
	cd build/package && empty/bin/patchdyn derive attention > derivation.txt

# the book; REPORT=report shows the results of that report. Warnings are errors, doctests run, links
# are checked, and nothing is loaded from the network
docs: $(VENV)/.installed-docs
	PATCHDYN_NOTEBOOKS=off $(BIN)/python -m sphinx -b doctest -W -q notebooks/book build/docs/doctest
	rm -rf build/docs/html
	PATCHDYN_REPORT=$(REPORT) $(BIN)/python -m sphinx -b html -W --keep-going -q notebooks/book build/docs/html
	$(BIN)/python notebooks/book/check_links.py build/docs/html

clean:
	rm -rf $(VENV) build *.egg-info .benchmarks .coverage .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "patchdyn needs Python 3.11 or later, but found none of \
	$(CANDIDATES): install one, or pass it as in 'make PYTHON=/path/to/python3.12'" >&2; exit 1; }
	@"$(PYTHON)" -c '$(RECENT)' || { echo "patchdyn needs Python 3.11 or later, but \
	$(PYTHON) is older: pass another as in 'make PYTHON=/path/to/python3.12'" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install $(QUIETLY) --editable .
	@touch $@

# the kernels, compiled by several processes after a change of their source; takes seconds where they
# are cached
$(VENV)/.compiled: $(VENV)/.installed $(shell find dynamics -name '*.py')
	$(BIN)/python -m dynamics.precompile
	@touch $@

# JAX and the packages that ship images
$(VENV)/.installed-images: $(VENV)/.installed
	$(BIN)/python -m pip install $(QUIETLY) --editable '.[vision]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install $(QUIETLY) --editable '.[dev]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-images

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install $(QUIETLY) --editable '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install $(QUIETLY) --editable '.[dev,bench]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-images $(VENV)/.installed-dev
