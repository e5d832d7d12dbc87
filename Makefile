# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Both make .venv on their first run and start at once after that.

PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# pytest-xdist starts one worker a core; a plain `pytest` works as well.
PYTEST = $(BIN)/python -m pytest -n auto

CORE_TESTS := tests/test_core.py $(addprefix tests/,optics rig files frames estimate check batch)

.PHONY: help demo test test-all test-core test-lowest lint claims bench twin ablation warnings calibration drift colour pictures docs dist clean
.NOTPARALLEL:

# An environment belongs to the folder it was made in: after a move or a copy it is made anew, and
# also when another Python is named.
ifneq ($(shell cat .venv/made 2>/dev/null),$(shell pwd -P))
.PHONY: .venv/made
endif
ifeq ($(origin PYTHON),command line)
ifneq ($(shell cat .venv/made-with 2>/dev/null),$(PYTHON))
.PHONY: .venv/made
endif
endif

help:
	@echo "make demo      install, run the demonstration, say where its results are"
	@echo "make test      install with the developer's tools, lint, type-check, test"
	@echo "make test-all  the same with the slow tests and the documentation"
	@echo "make test-core  the tests of the core with nothing else installed"
	@echo "make test-lowest  the tests of compiled code with the lowest versions of what it builds on"
	@echo "make claims    what the project claims beside what it measures; writes docs/results.md"
	@echo "make bench     ratios against peers, measured in one run"
	@echo "make twin      accuracy of the digital twin"
	@echo "make ablation  effect of each part of the estimator"
	@echo "make warnings  false alarms and named faults of the warnings"
	@echo "make calibration  how right calibrations are, on simulated captures (two hours, 8 GB of disk)"
	@echo "make drift     how well a drift of the camera is found and mended (rooms need Mitsuba)"
	@echo "make many      frames a second over many frames, by place and format"
	@echo "make pictures  draw the pictures of the documentation anew"
	@echo "make docs      run the tutorials and build the documentation into docs/_build/html"
	@echo "make dist      build wheel and sdist into dist, to install elsewhere"
	@echo "make clean     remove .venv and everything that was built"

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "D3S needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1)."; \
	    echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv --clear .venv || \
	  { echo "Could not make .venv. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@printf '%s' '$(PYTHON)' > .venv/made-with
	@pwd -P > $@

# A stamp is touched only after the install succeeded, so an interrupted one is done again.
.venv/installed: .venv/made pyproject.toml constraints.txt
	@echo "Installing d3s into .venv (once; about a minute) ..."
	@$(PIP_INSTALL) -e '.[lab,live,record]'
	@touch $@

.venv/installed-dev: .venv/made pyproject.toml constraints.txt
	@echo "Installing d3s with its developer's tools into .venv (once; about a minute) ..."
	@$(PIP_INSTALL) -e '.[dev]'
	@touch .venv/installed $@

demo: .venv/installed
	@$(BIN)/d3s demo --output demo --force
	@echo "Other commands compile more loops when they are first used; all at once: $(BIN)/d3s doctor --warm"

# The core alone, with its own dependencies: nothing of the lab or the camera is installed for it.
.venv-core/installed: .venv/made pyproject.toml constraints.txt
	@$(PYTHON) -m venv --clear .venv-core
	@.venv-core/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  -e . pytest pytest-xdist hypothesis
	@touch $@

test-core: .venv-core/installed
	.venv-core/bin/python -m pytest -n auto -p no:cacheprovider $(CORE_TESTS)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/size.py --quiet
	$(BIN)/mypy

test: lint
	$(PYTEST)

test-all: lint docs
	$(PYTEST) -m ""

# Compiled code with the lower bounds of pyproject.toml (constraints-lowest.txt), in a venv of its own.
test-lowest: .venv/made
	@test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	@echo "Installing the lowest versions into .venv-lowest ..."
	@.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt \
	  -e . pytest hypothesis
	NUMBA_CACHE_DIR=.venv-lowest/numba .venv-lowest/bin/python -m pytest -p no:cacheprovider \
	  tests/runtime tests/estimate/joint tests/rig/test_split*.py

claims: .venv/installed-dev
	$(BIN)/python tools/claims.py --page docs/results.md

bench: .venv/installed-dev
	$(BIN)/python benchmarks/run.py

twin: .venv/installed-dev
	$(BIN)/python benchmarks/twin.py

ablation: .venv/installed-dev
	$(BIN)/python benchmarks/ablation.py

warnings: .venv/installed-dev
	$(BIN)/python benchmarks/causes.py

calibration: .venv/installed-dev
	$(BIN)/python benchmarks/calibration.py

colour: .venv/installed-dev
	$(BIN)/python benchmarks/colour_sensor.py

drift: .venv/installed-dev
	$(BIN)/python benchmarks/drift.py

many: .venv/installed-dev
	$(BIN)/python benchmarks/many.py

pictures: .venv/installed-dev
	$(BIN)/python docs/pictures.py

docs: .venv/installed-dev
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

dist: .venv/installed-dev
	$(BIN)/python -m build --outdir dist .

clean:
	rm -rf .venv .venv-core .venv-lowest demo dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} +
