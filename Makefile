# Two commands, each enough on a machine that has only Python (3.11 or 3.12) and make:
#   make serve    install, then serve (MODEL=DIR for a checkpoint, ARGS="..." for options)
#   make test     install, then run the tests, on two cores (ARGS="tests/x.py -k y" for some)
# and make bench, the complete evaluation harness on the small model, from bundled fixtures.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: serve test coverage fuzz bench docs lint install lock

serve: $(STAMP)
	$(BIN)/sgl-omni serve --version v1 $(if $(MODEL),--model-path $(MODEL)) $(ARGS)

# Compiled modules are kept: tests start hundreds of programs that import the package.
test coverage: export PYTHONDONTWRITEBYTECODE =

test: $(STAMP)
	$(BIN)/python -m pytest --numprocesses 2 --no-loadscope-reorder $(ARGS)

# The same, and which lines and branches the tests miss; as pages in build/coverage.
coverage: $(STAMP)
	$(BIN)/python -m pytest --numprocesses 2 --no-loadscope-reorder --cov --cov-report term \
		--cov-report html $(ARGS)

# An hour of hostile bytes; ARGS="--seconds 60 --target http --seed 1" for less.
fuzz: $(STAMP)
	$(BIN)/python -m tests.hostile.fuzz $(ARGS)

bench: $(STAMP)
	ci/bench.sh $(ARGS)

# The documents as a site in build/docs; needs no network.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .cache/import-linter

install: $(STAMP)

PACKAGES := $(shell grep -c == requirements.lock)

# uv, installed by pip, does the whole installation in about a minute. Bytecode is compiled here, on
# all cores, or else the three processes of an engine would each do it again at every first start.
$(STAMP): pyproject.toml requirements.lock
	@echo "Installing into $(VENV), once; about a minute and a half."
	@echo "  1 of 3  the environment and its installer"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@echo "  2 of 3  $(PACKAGES) packages, as requirements.lock names them"
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python \
		--requirement requirements.lock
	@echo "  3 of 3  sglang-omni itself"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

# Names and versions only, for Python 3.11 and 3.12.
lock:
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-annotate \
		--no-header --no-emit-index-url pyproject.toml --output-file requirements.lock
