# Two commands do everything on a machine that has only Python 3.11 and make:
#
#   make test    create .venv, install the locked versions, run all tests (make test-fast: some of each file)
#   make demo    create .venv, install the locked versions, train a small GPT on 8 CPU devices
#
# Options: PYTHON=python3.12, VENV=path, PYTEST="-k boxing -x", WORKERS=4, DEMO="--layout dp --steps 50".

PYTHON  ?= python3.11
VENV    ?= .venv
WORKERS ?= 2
PYTEST  ?=
DEMO    ?=
SEEDS   ?= 0:4
N       ?= 2

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help venv test test-fast test-long api stubs exhaustive processes ambient cpp demo docs lint style format dist smoke lock clean

help:
	@sed -n '1,7s/^# \{0,1\}//p' Makefile

venv: $(VENV)/.demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The stamps are rewritten only when a lock file is newer; the package itself is installed in place (editable).
$(VENV)/.demo: requirements-demo.lock pyproject.toml | $(BIN)/python
	@while sleep 8; do echo "installing the packages"; done & lines=$$!; trap "kill $$lines" EXIT; \
	$(PIP:--quiet=) install --progress-bar off -r requirements-demo.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.test: requirements-test.lock $(VENV)/.demo
	$(PIP) install -r requirements-test.lock
	$(PIP) install --no-deps timm==1.0.31  # without torchvision, whose wheels cannot be imported beside PyTorch for CPU
	@touch $@

# Libraries that PyTorch's programs use, as pip installs them, in a folder of their own: beside PyTorch for CPUs PyTorch
# itself cannot import torchvision. tests/compat/libraries puts the folder on the path of its processes.
$(VENV)/.libraries: requirements-libraries.lock $(VENV)/.test
	$(PIP) install --no-deps --upgrade --target $(VENV)/libraries -r requirements-libraries.lock
	@touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/.test
	$(PIP) install sphinx myst-parser furo ipykernel nbclient
	@touch $@

# Of the tools for developers only ruff: tests of types run where pyright is found, and pyright downloads its program.
$(VENV)/.style: requirements-dev.lock $(VENV)/.test
	$(PIP) install $$(grep '^ruff==' requirements-dev.lock)
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.test
	$(PIP) install -r requirements-dev.lock
	@touch $@

# NPROC sizes XLA's CPU thread pool; a pool smaller than the queued collectives aborts the process.
# What loads OpenVINO and ONNX Runtime has workers of its own: in one full run of three a worker that had loaded them
# after thousands of tests was gone, without a trace, and with memory mappings to spare. Why is not known.
ENGINES := tests/engines tests/graph/export/test_other_forms.py tests/serving tests/examples/test_serving.py
# They compare the bits of random numbers that several programs draw, which are equal as users compile them.
DRAWS   := tests/ops/randoms tests/tensor/creation
ON_PLACEMENTS := compiler data distributed distributions engines functions graph independence inspect models nn \
  one_embedding op_specs ops optim runtime sbp serialization serving tensor tracing train vision
PAGES   := $(patsubst %,"tests/documentation/test_guides.py::test_code_runs[%]",engines serve export)
RUN     := NPROC=32 SBPJAX_CPU_DEVICES=8 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# All parts are run, also after one that fails.
test: $(VENV)/.test $(VENV)/.libraries
	@status=0; set -x; \
	$(RUN) --durations 25 $(if $(PYTEST),$(PYTEST),$(ENGINES:%=--ignore=%) $(DRAWS:%=--ignore=%) $(PAGES:%=--deselect=%)) || status=$$?; \
	$(if $(PYTEST),,XLA_FLAGS= $(RUN) $(ENGINES) $(DRAWS) $(PAGES) || status=$$?;) \
	exit $$status

# Some tests of every file, for daily work.
test-fast: $(VENV)/.test
	NPROC=32 SBPJAX_CPU_DEVICES=8 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m fast $(PYTEST)

# Every recorded fact of OneFlow and every op under every layout: hours. `make test` runs a seeded sample of them.
exhaustive: $(VENV)/.test $(VENV)/.libraries
	NPROC=32 SBPJAX_CPU_DEVICES=8 $(BIN)/python -m pytest -n $(WORKERS) -m exhaustive $(PYTEST)

# The C++ library and its example in build/cpp, and their tests: needs cmake and a compiler. xla-cpu-pjrt has the header
# of PJRT's C API, lammps-jax-pjrt-cpu a plugin for CPUs that is as new as JAX.
cpp: $(VENV)/.test
	$(PIP) install "openvino>=2026.4" "onnx>=1.20"
	$(PIP) install --no-deps xla-cpu-pjrt==0.0.1 lammps-jax-pjrt-cpu==0.11.2
	cmake -S cpp -B build/cpp -DOpenVINO_DIR=$$($(BIN)/python -c "import pathlib, importlib.util as u; print(pathlib.Path(u.find_spec('openvino').origin).parent / 'cmake')") \
	  -DPJRT_INCLUDE=$$($(BIN)/python -c "import xla_plugins.xla_cpu_pjrt as p; print(p.__path__[0])")/include
	cmake --build build/cpp
	NPROC=32 SBPJAX_CPU_DEVICES=8 $(BIN)/python -m pytest -q tests/cpp -m exhaustive $(PYTEST)

# The tests of global tensors on several processes, in lock step: `make processes N=4 PYTEST="tests/tensor -k views"`.
processes: $(VENV)/.test
	$(BIN)/python -m tests.distributed.foundation --processes $(N) $(PYTEST)

# Every form of every op for a range of seeds (tests/op_specs): about an hour per seed.
test-long: $(VENV)/.test
	NPROC=32 SBPJAX_CPU_DEVICES=8 SBPJAX_TEST_SEEDS=$(SEEDS) $(BIN)/python -m pytest -n $(WORKERS) -m exhaustive tests/op_specs $(PYTEST)

# Write docs/reference/api_coverage.md, errors.md and the tables of compatibility.md anew.
api: $(VENV)/.test
	JAX_PLATFORMS=cpu SBPJAX_CPU_DEVICES=8 $(BIN)/python -m tests.api.coverage
	JAX_PLATFORMS=cpu SBPJAX_CPU_DEVICES=8 $(BIN)/python -m tests.api.compatibility
	JAX_PLATFORMS=cpu SBPJAX_CPU_DEVICES=8 $(BIN)/python -m tests.api.error_catalogue
	JAX_PLATFORMS=cpu SBPJAX_CPU_DEVICES=8 $(BIN)/python -m tests.api.stages

# Write the stubs (.pyi) that show editors the names which are made at import. Git ignores them; `make dist` packages them.
stubs: $(VENV)/.test
	JAX_PLATFORMS=cpu SBPJAX_CPU_DEVICES=8 PYTHONPATH=. $(BIN)/python -m tests.support.stubs.generate

# A sample of 500 test functions of global tensors, under `jax.set_mesh` of a mesh of all devices: ten minutes.
ambient: $(VENV)/.test
	@status=0; set -x; for types in auto explicit; do \
	  $(RUN) --ambient-mesh $$types --sample 500 $(or $(PYTEST),$(ON_PLACEMENTS:%=tests/%) $(DRAWS:%=--ignore=%)) || status=1; \
	  $(if $(PYTEST),,XLA_FLAGS= $(RUN) --ambient-mesh $$types --sample 500 $(DRAWS) || status=1;) \
	done; exit $$status

demo: $(VENV)/.demo
	NPROC=32 SBPJAX_CPU_DEVICES=8 $(BIN)/python -m examples.gpt.train $(DEMO)

# The site: all pages of docs/ and a reference for every public name, in build/docs. Warnings are errors.
docs: $(VENV)/.docs
	JAX_PLATFORMS=cpu $(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	$(BIN)/python docs/check_site.py build/docs

lint: style $(VENV)/.dev stubs
	$(BIN)/pyright sbpjax

# The part of `lint` that continuous integration runs.
style: $(VENV)/.style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Wheel and sdist, checked as the package index checks them. A tag of this commit is `v` and the version.
dist: $(VENV)/.dev stubs
	@tag=$$(git describe --exact-match --tags 2>/dev/null); version=v$$($(BIN)/python -c "from sbpjax._core.naming import VERSION; print(VERSION)"); \
	test -z "$$tag" || test "$$tag" = "$$version" || { echo "tag $$tag, version $$version"; exit 1; }
	rm -rf dist build && $(BIN)/python -m build && $(BIN)/python -m twine check --strict dist/*

# The wheel in an empty environment: `make smoke PYTHON=python3.12`, after `make dist`.
smoke:
	rm -rf .smoke-venv && $(PYTHON) -m venv .smoke-venv
	.smoke-venv/bin/python -m pip --disable-pip-version-check --quiet install dist/*.whl
	cp tests/packaging/smoke.py .smoke-venv && cd .smoke-venv && JAX_PLATFORMS=cpu bin/python smoke.py
	rm -rf .smoke-venv

# Write the lock files anew from the newest versions that pyproject.toml allows.
lock:
	rm -rf .lock-venv && $(PYTHON) -m venv .lock-venv
	.lock-venv/bin/python -m pip --quiet install 'setuptools>=77' && .lock-venv/bin/python -m pip --quiet install '.[demo]'
	.lock-venv/bin/python -m pip list --format=freeze | grep -v -E '^(pip|sbpjax)==' > requirements-demo.lock
	.lock-venv/bin/python -m pip --quiet install '.[test]'
	.lock-venv/bin/python -m pip list --format=freeze | grep -v -E '^(pip|sbpjax)==' | sed 's/+cpu$$//' > requirements-test.lock
	.lock-venv/bin/python -m pip --quiet install '.[dev]'
	.lock-venv/bin/python -m pip list --format=freeze | sed 's/+cpu$$//' | grep -v -E '^(pip|sbpjax)==' | \
	  grep -v -x -F -f requirements-test.lock > requirements-dev.lock
	rm -rf .lock-venv build sbpjax.egg-info

clean:
	rm -rf $(VENV) .lock-venv .smoke-venv docs/api build dist *.egg-info .pytest_cache .ruff_cache
