# Every target sets up what it needs: a stamp file in the environment stands for "these extras are installed" and is made
# again when pyproject.toml changes.

VENV   := .venv
PYTHON := $(VENV)/bin/python
TREE   := build/tree
SOURCES = $(shell find api core plugins backends readers learners -name '*.py' -o -name '*.pyi')
JOBS   ?= 2
# Of `make hostile`, and SEED of `make mutants`.
SECONDS ?= 75
SEED    ?= 1

# The first interpreter that is new enough; `make PYTHON3=/path/to/python3 ...` chooses another.
PYTHON3 ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.PHONY: demo notebooks test test-onnx test-without-numba test-checked test-standin test-simulator smoke installs stubs lint types mypy stubs-are-true contract docs site wheel bench bench-scaling bench-reading cross hostile mutants test-workers test-notebooks clean help

help:
	@echo "make demo      train a digit recogniser and save a picture of what it recognises"
	@echo "make notebooks the notebooks of examples/notebooks with their outputs, in build/notebooks"
	@echo "make test      run all tests but those of the backend of GPUs, of ONNX files and of the docs"
	@echo "make test-onnx            compare models in ONNX files with ONNX Runtime, and read everyone's"
	@echo "make test-without-numba   run the fast unit tests in an environment that has no Numba"
	@echo "make test-checked         run the tests of operators on a backend that watches them, with compiled loops turned off"
	@echo "make test-standin         run the tests of the backend of GPUs, and those of operators on it, on a stand-in for CuPy of three strictnesses"
	@echo "make test-simulator       run kernels for GPUs under Numba's simulator, with tests of the operators that have some"
	@echo "make test-workers         what comes of every fault of a worker, of two and of four"
	@echo "make test-notebooks       what notebooks show, in a kernel of Jupyter"
	@echo "make lint      ruff"
	@echo "make types     mypy, on the tree of the built wheel, and whether stubs are true"
	@echo "make stubs     bring the stubs with the names of built-in plugins up to date"
	@echo "make contract  who may import whom, on the same tree"
	@echo "make docs      run every example in the docs and docstrings"
	@echo "make site      the docs as a site, with a reference and a search, in build/site"
	@echo "make wheel     build the wheel into dist/"
	@echo "make smoke     install that wheel in an environment of its own and try it"
	@echo "make installs  install that wheel, the checkout, an sdist and from a URL, on all Pythons there are, and try them"
	@echo "make bench     run the benchmarks; bench-scaling: how cost grows with sizes; bench-reading: texts and images"
	@echo "make cross     model files from here to CNTK 2.7, which CNTK27 names, and from there"
	@echo "make hostile   try at random what no test says, for 75 seconds; SECONDS=36000 for a night, SEED=2 for other cases"
	@echo "make mutants   whether tests notice small changes to the kernel; SAMPLE=60 for some of each module"
	@echo "make clean     remove everything that was made, the environment included"

# ---- environment ----

$(VENV)/made:
	@test -n "$(PYTHON3)" || { echo "Python 3.11 or newer is needed; install it, or say make PYTHON3=/path/to/python3" >&2; exit 1; }
	$(PYTHON3) -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/%.installed: pyproject.toml $(VENV)/made
	$(PYTHON) -m pip install --quiet --editable '.[$*]'
	$(VENV)/bin/cntk compile > /dev/null
	touch $@

# ---- what it is for ----

demo: $(VENV)/demo.installed
	$(PYTHON) examples/mnist.py

NOTEBOOKS = $(patsubst examples/notebooks/%.py,build/notebooks/%.ipynb,$(wildcard examples/notebooks/[0-9]*.py))

notebooks: $(NOTEBOOKS)

build/notebooks/%.ipynb: examples/notebooks/%.py examples/notebooks/make.py build/jupyter.made
	PYTHONPATH=$(CURDIR)/build/jupyter $(PYTHON) examples/notebooks/make.py $< $@

# Tests of the backend cupy compile hundreds of CUDA sources; test-standin runs them.  Those of ONNX files run thousands of models in ONNX
# Runtime, those of the site follow upon its making, and make docs runs what the docs show.
APART = --ignore tests/backends/cupy --ignore tests/unit/plugins/formats/onnx --ignore tests/site --ignore tests/programs/test_docs.py

test: $(VENV)/dev.installed
	$(PYTHON) -m pytest -n $(JOBS) $(APART)

test-onnx: $(VENV)/dev.installed
	$(PYTHON) -m pytest -n $(JOBS) tests/unit/plugins/formats/onnx

test-without-numba: build/bare.made
	$(if $(CNTK_CI),CNTK_CI=without-numba) build/bare/bin/python -m pytest -n $(JOBS) -m 'not slow' --share 2 --ignore tests/unit/plugins/formats/onnx tests/unit tests/backends/numpy tests/backends/fused tests/backends/checking

# Without kernels there are none to compare.
test-checked: $(VENV)/dev.installed
	CNTK_FUSED=0 CNTK_TEST_BACKEND=checking $(PYTHON) -m pytest -n $(JOBS) --share 2 -m 'not slow' -k 'not kernels_compute' tests/backends/every

KERNELS_TESTED = convolution dropout layers losses normalization pooling products random_graphs recurrence reductions repeated_steps rnnstack sequence_ops sequential_convolution sparse

# Strictness 1 has CuPy's rules; 2 and 3 refuse more, except from the tests that tests/standin lists for each, first without kernels, then
# with them.  g++ takes a second for the source of a kernel, so that fewer tests run with kernels.
test-standin: export CNTK_TEST_BACKEND=standin
test-standin: $(VENV)/dev.installed
	env -u CNTK_TEST_BACKEND $(PYTHON) -m pytest -n $(JOBS) --share 2 tests/backends/cupy
	CNTK_PLUGINS=-cupy_kernels $(PYTHON) -m pytest -n $(JOBS) --share 3 -m 'not slow' -k 'not kernels_compute' tests/backends/every
	CNTK_PLUGINS=-cupy_kernels CNTK_STANDIN=2 $(PYTHON) -m pytest -n $(JOBS) --share 2 tests/backends/every/test_ops.py -k 'results_are_right or finite_differences'
	CNTK_PLUGINS=-cupy_kernels CNTK_STANDIN=3 $(PYTHON) -m pytest -n $(JOBS) --share 2 tests/backends/every/test_ops.py -k 'results_are_right or finite_differences'
	CNTK_STANDIN=2 $(PYTHON) -m pytest -n $(JOBS) --share 2 tests/backends/every/test_ops.py -k finite_differences
	CNTK_STANDIN=3 $(PYTHON) -m pytest -n $(JOBS) --share 2 tests/backends/every/test_ops.py -k finite_differences
	$(PYTHON) -m pytest -n $(JOBS) --share 2 $(KERNELS_TESTED:%=tests/backends/every/test_%.py)

# Simulated threads are Python's, so that only what has kernels is run, and of that what is small.
test-simulator: $(VENV)/dev.installed
	NUMBA_ENABLE_CUDASIM=1 CNTK_TEST_BACKEND=numba-cuda $(PYTHON) -m pytest -n $(JOBS) --share 2 tests/backends/numba_cuda \
		tests/backends/every/test_dropout.py tests/backends/every/test_losses.py tests/backends/every/test_ops.py \
		tests/backends/every/test_sparse_products.py -k 'numba_cuda or dropout or entropy or softmax or sparse_products'

test-workers: $(VENV)/dev.installed
	$(PYTHON) tests/distributed_faults.py

# Apart from the environment: what is installed there is looked through for plugins whenever cntk is imported.
test-notebooks: build/jupyter.made
	PYTHONPATH=$(CURDIR)/build/jupyter $(PYTHON) -m pytest tests/programs/test_notebook.py
	PYTHONPATH=$(CURDIR)/build/jupyter $(PYTHON) -m pytest tests/programs/test_notebook_series.py -k kernel

build/jupyter.made: $(VENV)/dev.installed
	rm -rf build/jupyter
	$(PYTHON) -m pip install --quiet --target build/jupyter 'nbclient>=0.10' 'ipykernel>=6.29' 'jupytext>=1.16'
	touch $@

docs: $(VENV)/dev.installed
	$(PYTHON) -m pytest -n $(JOBS) tests/programs/test_docs.py

# Warnings are errors; nothing is fetched.  What the site must hold is tested on what has been made.
site: $(VENV)/dev.installed $(VENV)/docs.installed
	$(PYTHON) docs/site/sources.py build/site-sources
	$(PYTHON) -m sphinx --quiet --builder html --fail-on-warning --keep-going --nitpicky --jobs $(JOBS) --conf-dir docs/site --doctree-dir build/site-doctrees build/site-sources build/site
	$(PYTHON) -m pytest tests/site

bench: $(VENV)/dev.installed
	$(PYTHON) benchmarks/run.py

bench-scaling: $(VENV)/dev.installed $(VENV)/plot.installed
	$(PYTHON) benchmarks/scaling.py

bench-reading: $(VENV)/dev.installed
	$(PYTHON) benchmarks/reading.py
	$(PYTHON) benchmarks/images.py

cross: $(VENV)/dev.installed
	$(PYTHON) tests/crossing/run.py

hostile: $(VENV)/dev.installed
	$(PYTHON) tests/hostile/run.py --seconds $(SECONDS) --seed $(SEED) --jobs $(JOBS) $(if $(CASES),--cases $(CASES)) $(if $(OUTCOME),--json $(OUTCOME))

mutants: $(VENV)/dev.installed
	$(PYTHON) tests/mutants.py $(if $(SAMPLE),--sample $(SAMPLE) --seed $(SEED))

# An environment without Numba, and without what else is installed only where the results of others are judged by it.
build/bare.made: pyproject.toml
	rm -rf build/bare
	$(PYTHON3) -m venv build/bare
	build/bare/bin/python -m pip install --quiet --editable '.[dev]'
	build/bare/bin/python -m pip uninstall --quiet --yes numba llvmlite
	touch $@

# ---- what the results of others are judged by ----

# The cases of ONNX 1.4, of version 9 of its operators.
build/onnx-1.4.1.made: $(VENV)/dev.installed
	rm -rf build/onnx-1.4.1
	$(PYTHON) -m pip download --quiet --no-deps --no-binary :all: --no-build-isolation --dest build onnx==1.4.1
	tar -C build -xzf build/onnx-1.4.1.tar.gz onnx-1.4.1/onnx/backend/test/data
	touch $@

# ONNX Runtime for JavaScript; its own script would fetch more, for GPUs.
build/node.made:
	npm install --silent --ignore-scripts --prefix build/node onnxruntime-node@1.30.0
	touch $@

# ---- checks ----

# The names of built-in plugins, for type checkers.
stubs: $(VENV)/dev.installed
	$(PYTHON) packaging/stubs.py

lint: $(VENV)/dev.installed
	$(PYTHON) -m ruff check .

types: mypy stubs-are-true

mypy: $(TREE)/made
	cd $(TREE) && ../../$(PYTHON) -m mypy --config-file ../../pyproject.toml --package cntk

stubs-are-true: $(TREE)/made
	cd $(TREE) && PYTHONPATH=. MYPYPATH=. ../../$(PYTHON) ../../packaging/check_stubs.py ../../pyproject.toml

contract: $(TREE)/made
	PYTHONPATH=$(TREE) $(VENV)/bin/lint-imports --no-cache

# ---- the wheel, and a tree in which every part has its import name ----

wheel: build/wheel.made

# build/lib would bring modules back that have been removed since.
build/wheel.made: pyproject.toml packaging/opencntk_build.py README.md LICENSE $(SOURCES) $(VENV)/dev.installed
	rm -rf dist build/lib build/bdist.*
	$(PYTHON) -m build --wheel --no-isolation
	touch $@

$(TREE)/made: build/wheel.made
	rm -rf $(TREE)
	$(PYTHON) -m zipfile -e dist/*.whl $(TREE)
	touch $@

# -I keeps the checkout off the import path, so that only the wheel can be what is tried.
smoke: build/wheel.made
	rm -rf build/smoke
	$(PYTHON) -m venv build/smoke
	build/smoke/bin/python -m pip install --quiet --upgrade pip
	build/smoke/bin/python -m pip install --quiet dist/*.whl
	build/smoke/bin/python -I tests/smoke.py
	build/smoke/bin/python -I tests/first_steps.py
	build/smoke/bin/cntk doctor

installs: build/wheel.made
	$(PYTHON) tests/installs.py --wheel dist/*.whl

clean:
	rm -rf $(VENV) build dist *.egg-info demo-output .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
