# `make demo` and `make test` need python3 (3.11 or later), make and g++; everything else goes into .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test check check-kernels install clean

demo: $(VENV)/.installed
	$(BIN)/gpuens demo

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

check: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# kernels under sanitizers and through NVRTC; needs no GPU
check-kernels: $(VENV)/.installed
	$(BIN)/python tests/emulator/check.py

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpuens needs Python 3.11 or later; choose one with make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
