# `make demo` and `make test` need python3 (3.11 or later), make and g++ (11 or later); everything else goes into .venv, what a
# target needs when it is first run: an extra of pyproject.toml.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

TEST   := -m pytest -n auto --maxprocesses 4 --dist worksteal
PYTHONS ?= python3.11 python3.12 python3.13 python3.14

.PHONY: native stub names demo shell test test-thorough test-bench quick test-gpu test-lowest test-pythons test-extras fuzz check check-kernels check-native check-gpu docs release install clean

# levels of x86-64 that are compiled: native, that of this processor, or any of v2, v3 and v4
LEVELS ?= native

demo: $(VENV)/.installed
	$(BIN)/gpuens demo

# a shell with gpuens and python of .venv; leave it by exit
shell: $(VENV)/.installed
	. $(BIN)/activate && exec "$${SHELL:-sh}"

test: $(VENV)/.has-suite
	$(BIN)/python $(TEST)

# slow tests that rarely fail: memory budgets, killed processes, hostile parameters, rare dtypes
test-thorough: $(VENV)/.has-suite
	$(BIN)/python $(TEST) -m thorough

# the scripts of bench/ on small data
test-bench: $(VENV)/.has-suite
	$(BIN)/python $(TEST) -m bench tests/house/test_bench.py

# the tests that changes break most often, in two minutes
quick: check
	$(BIN)/python $(TEST) tests/methods/test_methods.py tests/methods/test_combination.py tests/similarity/test_coassociation.py tests/methods/test_oracles.py \
		tests/labels/test_ensemble.py tests/reduction/test_core_groups.py tests/runtime/test_options.py tests/runtime/test_checks.py \
		tests/methods/test_registry.py tests/house/test_architecture.py

# the tests that need a GPU, above all equal results on GPU and CPU (tests/kernels/test_gpu_parity.py)
test-gpu: $(VENV)/.has-suite
	GPUENS_REQUIRE_GPU=1 $(BIN)/python -m pytest -m gpu

# the tests that need a GPU, on CuPy's own wheel with the CPU as device (tests/gpu_stack); needs no GPU
CUPY     ?= 14.2.0
ON_CUPY  := PYTHONPATH=$(abspath $(VENV))/cupy-$(CUPY) GPUENS_REQUIRE_GPU=1 $(BIN)/python
check-gpu: $(VENV)/.has-suite
	$(BIN)/python tests/gpu_stack/build.py $(VENV)/cupy-$(CUPY) --cupy $(CUPY)
	$(ON_CUPY) $(TEST) -m gpu
	$(ON_CUPY) bench/gpu.py --quick --only kernels end-to-end
	$(BIN)/python bench/host_work.py $(VENV)/cupy-$(CUPY) --quick
	$(BIN)/python .ci/changed check-gpu --passed

# the test suite with the oldest packages that pyproject.toml allows; the oldest matplotlib fails with pyparsing 3.3
test-lowest:
	$(call environment,$(PYTHON),$(VENV)-lowest,--resolution lowest-direct 'pyparsing==3.2.*')
	$(VENV)-lowest/bin/python $(TEST)

# the test suite with the newest packages, on each Python of PYTHONS
test-pythons: $(PYTHONS:%=test-on-%)

test-on-%:
	$(call environment,$*,$(VENV)-$*,--upgrade)
	$(VENV)-$*/bin/python $(TEST)

# $(call environment,PYTHON,FOLDER,OPTIONS)
environment = $(1) -m venv $(2) && $(2)/bin/python -m pip install --quiet uv && \
	$(2)/bin/uv pip install --quiet --python $(2)/bin/python $(3) --editable '.[batch,dask,hgpa,io,leiden,plot,test]'

# the extras cu12 and cu13 in fresh environments, as on a machine with only a driver; no GPU needed, 2 GB per extra
test-extras: test-extra-cu12 test-extra-cu13

test-extra-%:
	rm -rf $(VENV)-$* && $(PYTHON) -m venv $(VENV)-$* && $(VENV)-$*/bin/python -m pip install --quiet '.[$*]'
	cd tests/gpu_stack && $(abspath $(VENV))-$*/bin/python fresh.py

# 5,000 new inputs, 2,000 new files, 2,000 new ensembles, 5,000 new files with names and 1,000 new graphs, on all compiled
# levels; make fuzz SEED=… repeats an earlier run
fuzz: $(VENV)/.has-suite
	seed=$${SEED:-$$(date +%s)}; echo "SEED=$$seed"; \
	GPUENS_FUZZ=5000 GPUENS_ALL_LEVELS=build/levels $(BIN)/python -m pytest -s --hypothesis-seed=$$seed tests/fuzz/test_fuzz.py tests/fuzz/test_fuzz_files.py \
		tests/fuzz/test_fuzz_ensembles.py tests/fuzz/test_fuzz_names.py tests/fuzz/test_fuzz_graphs.py

# the site, with its examples executed, in docs/_build/html; needs no network
docs: $(VENV)/.has-suite $(VENV)/.has-docs
	rm -rf docs/_build docs/generated docs/gallery
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

# sdist and wheel in dist/, checked and tried in clean environments; RELEASE=--dry-run before the release
release:
	PYTHON=$(PYTHON) .ci/release $(RELEASE)

check: $(VENV)/.has-suite $(VENV)/.has-check stub
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# the kernels under sanitizers and through NVRTC; needs no GPU
check-kernels: $(VENV)/.has-suite $(VENV)/.has-kernels
	$(BIN)/python $(TEST) -m sanitizers tests/kernels/test_emulator.py
	$(BIN)/python tests/emulator/check.py
	$(BIN)/python .ci/changed check-kernels --passed

# the extension on all compiled levels, under sanitizers, with and without planted faults, and by other compilers;
# CHECKS="asan tsan": only these; asan-faults, tsan-faults and arm64 are for .ci/weekly
NATIVE := levels asan asan-methods asan-ensembles asan-files clang tsan
CHECKS ?= $(NATIVE)
check-native: $(VENV)/.has-suite
	$(BIN)/python tests/native/check.py $(CHECKS)
	$(if $(filter-out $(CHECKS),$(NATIVE)),,$(BIN)/python .ci/changed check-native --passed)

install: $(VENV)/.has-dev stub

# the extension, compiled anew where its sources have changed, into gpuens/ (kernels/CMakeLists.txt); BIN may be that of any
# environment that has nanobind
CMAKE := PATH="$(abspath $(BIN)):$$PATH" cmake
native:
	@tag=build/$$($(BIN)/python -c 'import sys; print(sys.implementation.cache_tag)') && \
	$(CMAKE) -S kernels -B $$tag -G Ninja --log-level=WARNING -DPython_EXECUTABLE=$(abspath $(BIN))/python \
		-DGPUENS_IN_TREE=ON -DGPUENS_LEVELS="$(LEVELS)" && \
	files=$$(PATH="$(abspath $(BIN)):$$PATH" ninja -C $$tag -n | grep -c 'Building CXX' || true) && \
	if [ $$files -gt 0 ]; then echo "compiling $$files files for $(LEVELS:native=this processor), about $$((files * 3 / 2 / $$(getconf _NPROCESSORS_ONLN) + 2)) s"; fi && \
	$(CMAKE) --build $$tag -- --quiet && $(CMAKE) --install $$tag > $$tag/installed

# gpuens/_native.pyi, by which mypy and editors know the extension as it is
stub: $(VENV)/.installed
	$(BIN)/python kernels/stub.py gpuens/_native*.so gpuens/_native.pyi

# docs/public_names.txt, after a change of a public name or signature
names: $(VENV)/.has-suite
	$(BIN)/python docs/public_names.py

# uv installs in a sixth of pip's time, from the index that pip would take
INSTALL = UV_DEFAULT_INDEX=$${PIP_INDEX_URL:-$$($(PYTHON) -m pip config get global.index-url 2> $(VENV)/no-index || \
	echo https://pypi.org/simple)} $(BIN)/uv pip install --quiet --python $(BIN)/python

# uv comes by the pip of PYTHON, or by its ensurepip, which takes 4 s more. The extension is compiled while packages are
# fetched. The last command but one: a path, which PYTHONPATH precedes, takes the place of an import hook, which precedes it.
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpuens needs Python 3.11 or later; choose one with make PYTHON=python3.12")'
	@echo "installing what gpuens needs into $(VENV)"
	@$(PYTHON) -m venv --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python install --quiet uv 2> $(VENV)/no-pip || \
		{ $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet uv; }
	@$(INSTALL) pip cmake nanobind ninja
	@$(MAKE) --no-print-directory native & native=$$!; \
	$(INSTALL) --editable '.[plot]' --config-settings wheel.cmake=false --config-settings wheel.py-api=py3 && wait $$native
	@$(BIN)/python -c 'import pathlib, sysconfig; \
		(hook,) = pathlib.Path(sysconfig.get_path("purelib")).glob("_editable_*_gpuens.pth"); \
		hook.write_text("$(CURDIR)\n")'
	@touch $@

$(VENV)/.has-%: $(VENV)/.installed
	$(INSTALL) --requirements pyproject.toml --extra $*
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-* gpuens/_native* docs/_build docs/generated docs/gallery build dist .pytest_cache .mypy_cache .ruff_cache
