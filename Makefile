# Everything that builds, checks and shows Stoker. `make help` lists it.
#
# Settings: PYTHON=python3 (3.11 or newer)  VENV=.venv  BUILD=build  JOBS=2  FUZZ_SECONDS=60  BENCH_SECONDS=2
# For wheel and release: PYTHONS="python3.11 python3.12 ..." that make and test wheels (wheel: PYTHON; release: these two)
# For bench-rivals: PHOTOS=folder of JPEGs  RIVALS=names of those to install (all)  LINES=those to measure (all)
#   RESUME=yes takes lines that a stopped run has finished as they are
# For bench-quick: PHOTOS=folder of JPEGs (the demo's)  SAVE=yes stores the ratios in place of those of before
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VENV ?= .venv
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 60
BENCH_SECONDS ?= 2
export PYTHON JOBS BUILD
# Of what pip installs for the tests, Python compiles what they import, and must be able to keep it.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(abspath $(VENV))/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest --timeout 300
SHARED := -n $(JOBS)
DEMO := $(BUILD)/demo
# What runs at the same time prints its lines together, if this make can.
OUTPUT := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
export STOKER_TEST_HDFS_JARS ?= $(abspath $(BUILD))/hdfs-jars

# A stamp is as new as the last time its step succeeded.
MADE := $(VENV)/.stamp-venv
COMPILING := $(VENV)/.stamp-cmake
COMPILED := $(VENV)/.stamp-wheel
INSTALLED := $(VENV)/.stamp-stoker
DEVELOPED := $(VENV)/.stamp-dev
FRAMEWORKS := $(VENV)/.stamp-frameworks
SOURCES := pyproject.toml CMakeLists.txt \
  $(shell find cmake src -type f -not -name '*.pyc' -not -path '*/native/tests/*' -not -path '*/native/fuzz/*')
NATIVE := $(shell find src/native -name '*.h' -o -name '*.cpp')

.PHONY: help
help:  ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9 -]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

.PHONY: deps
deps:  ## Check for compiler and headers; install what is missing where that needs no question.
	@scripts/deps.sh build
	@scripts/deps.sh test
	@scripts/deps.sh test-all

$(BUILD)/.stamp-deps-%: scripts/deps.sh
	@mkdir -p $(BUILD)
	@scripts/deps.sh $*
	@touch $@

$(MADE): | $(BUILD)/.stamp-deps-build
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Whatever fills the virtual environment waits for the one before it, so that `make -j` does not run two at a time.
$(COMPILING): $(MADE) pyproject.toml
	@for tool in cmake ninja nanobind; do $(BIN)/python scripts/requirements.py dev $$tool; done > $(VENV)/requirements.txt
	$(PIP) install -r $(VENV)/requirements.txt
	@touch $@

# Of an environment of its own, and so beside what fills the virtual one.
$(COMPILED): $(MADE) $(SOURCES) | $(COMPILING)
	@echo "Building Stoker (about a minute)"
	@rm -rf $(VENV)/wheel
	$(PIP) wheel . --no-deps --wheel-dir $(VENV)/wheel --config-settings=build-dir=$(abspath $(BUILD))/wheel \
	  $(if $(STOKER_CI),--config-settings=cmake.define.STOKER_WERROR=ON)
	@touch $@

# Twice: the first gets what Stoker needs, the second replaces a Stoker of the same version. `test` installs all else before.
$(INSTALLED): $(COMPILED) $(if $(TESTED_CORE),| $(DEVELOPED))
	$(PIP) install $(VENV)/wheel/*.whl
	@$(PIP) install --force-reinstall --no-deps $(VENV)/wheel/*.whl
	@touch $@

INSTALL_EXTRAS = for words in $(1); do \
	  $(BIN)/python scripts/requirements.py $$words > $(VENV)/requirements.txt; \
	  $(PIP) install --no-compile -r $(VENV)/requirements.txt; \
	done

$(DEVELOPED): $(MADE) pyproject.toml | $(if $(TESTED_CORE),$(COMPILING),$(INSTALLED))
	@echo "Installing what the tests need"
	@$(call INSTALL_EXTRAS,test dev)
	@touch $@

# PyTorch comes first and alone: whatever else asks for torch then finds this one.
$(FRAMEWORKS): $(DEVELOPED) pyproject.toml | $(INSTALLED)
	@echo "Installing frameworks and servers (about a gigabyte)"
	@$(call INSTALL_EXTRAS,"slow torch" slow docs)
	@# Apart: Lightning imports torchvision where it finds it, and beside PyTorch without CUDA that fails (conftest.py).
	@$(PIP) install --no-compile --no-deps --upgrade --target $(VENV)/torchvision torchvision==0.28.0
	@touch $@

.PHONY: demo
demo: $(INSTALLED)  ## Photographs to a verified dataset, a picture and a table of speeds.
	@mkdir -p $(DEMO)
	@if [ ! -e $(DEMO)/.sampled ]; then rm -rf $(DEMO)/photos; fi
	@run() { echo; echo "\$$ stoker $$*"; $(BIN)/stoker "$$@"; }; \
	run sample $(DEMO)/photos; touch $(DEMO)/.sampled; \
	run plan $(DEMO)/photos --shards 4; \
	run build $(DEMO)/photos $(DEMO)/dataset --shards 4; \
	run verify $(DEMO)/dataset; \
	run info $(DEMO)/dataset; \
	run show $(DEMO)/dataset --out $(DEMO)/sheet.png; \
	run bench $(DEMO)/dataset --seconds 0.5 --rounds 2; \
	echo; echo "A picture of what is in the dataset: $(DEMO)/sheet.png"

# The jars of the HDFS server that tests run against.
$(BUILD)/.stamp-hdfs-jars: scripts/hdfs_jars.sh | $(COMPILING)
	@mkdir -p $(BUILD)
	@PYTHON=$(BIN)/python scripts/hdfs_jars.sh $(STOKER_TEST_HDFS_JARS)
	@touch $@

.PHONY: test
test: $(BUILD)/.stamp-deps-test  ## C++ tests, and the Python tests that are fast: seven of ten.
	@# The core of the wheel is tested, which saves a compilation, and compiles while what the tests need is installed.
	@$(MAKE) -j3 TESTED_CORE=$(abspath $(BUILD))/wheel/libstoker_core.a $(INSTALLED) $(DEVELOPED)
	@$(MAKE) -j3 TESTED_CORE=$(abspath $(BUILD))/wheel/libstoker_core.a test-fast native-plain $(FETCHED)

.PHONY: test-fast
test-fast: $(INSTALLED) $(DEVELOPED)
	@$(PYTEST) $(SHARED) -m "not slow"

# What has to be installed comes first: the tests of `test` use every compiler that is there. Then `test`, alone; then what computes
# beside the installation of the frameworks, for which most others wait. Of those, two that wait for servers and downloads run
# beside one that computes, which is nice. `native-asan` tests the core that `fuzz` has compiled.
.PHONY: test-all
test-all: FETCHED = $(BUILD)/.stamp-hdfs-jars
test-all: $(BUILD)/.stamp-deps-test-all $(BUILD)/.stamp-deps-fuzz $(BUILD)/.stamp-deps-arm64 test  ## `test`, then the slow tests, clients, sanitizers, fuzzing, ARM64, `test-alone`, `lint`.
	@$(MAKE) -j2 --keep-going $(OUTPUT) $(FRAMEWORKS) native-tsan
	@$(MAKE) -j3 --keep-going $(OUTPUT) TESTED_CORE=$(abspath $(BUILD))/fuzz/libstoker_core.a \
	  test-slow test-clients fuzz native-arm64 native-asan test-alone lint

.PHONY: test-slow
test-slow: $(BUILD)/.stamp-deps-test-all $(FRAMEWORKS) $(BUILD)/.stamp-hdfs-jars  ## Tests of over a second, with frameworks, and with real S3, GCS, HDFS and Spark.
	@$(PYTEST) $(SHARED) -m slow

.PHONY: test-alone
test-alone: $(COMPILED)  ## The fast Python tests, with nothing installed but what `pip install '.[test]'` brings.
	@rm -rf $(BUILD)/alone
	@$(BIN)/python -m venv $(BUILD)/alone
	@$(BUILD)/alone/bin/pip --disable-pip-version-check --quiet install "$$(echo $(abspath $(VENV))/wheel/*.whl)[test]"
	@STOKER_CI= nice $(BUILD)/alone/bin/python -m pytest --timeout 300 $(SHARED) -m "not slow"

.PHONY: test-clients
test-clients: $(FRAMEWORKS)  ## tf.data, TFDS, DALI, tfrecord and transformers, as others release them, use what Stoker writes.
	$(BIN)/python clients/run.py $(BUILD)/clients

.PHONY: native
native: native-plain native-asan native-tsan  ## C++ tests: plain, under ASan and UBSan, under TSan.

.PHONY: native-arm64
native-arm64: $(BUILD)/.stamp-deps-arm64 | $(COMPILING)  ## The C++ tests, cross-compiled for ARM64 and run under qemu-user.
	@PATH="$(BIN):$$PATH" nice scripts/native_tests.sh arm64 $(BUILD)/arm64

.PHONY: test-arm64
test-arm64: native-arm64 $(INSTALLED)  ## The same, then pixels compared with this machine's, and Python tests, all under qemu-user.
	@PATH="$(BIN):$$PATH" nice scripts/arm64_tests.sh $(BUILD)/arm64

.PHONY: native-plain native-asan native-tsan
native-plain native-asan native-tsan: native-%: $(BUILD)/.stamp-deps-test | $(COMPILING)
	@PATH="$(BIN):$$PATH" nice scripts/native_tests.sh $* $(BUILD)/$*
native-plain: $(if $(TESTED_CORE),$(COMPILED))
native-asan: $(BUILD)/.stamp-deps-fuzz $(if $(TESTED_CORE),fuzz)

.PHONY: lint
lint: $(FRAMEWORKS)  ## ruff, clang-format, mypy.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@$(BIN)/clang-format --dry-run -Werror $(NATIVE)
	$(BIN)/mypy

.PHONY: format
format: $(DEVELOPED)  ## Format all Python and C++.
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format
	@$(BIN)/clang-format -i $(NATIVE)

.PHONY: stub
stub: $(INSTALLED) $(DEVELOPED)  ## Write src/stoker/_native.pyi anew from the extension.
	$(BIN)/python scripts/stub.py src/stoker/_native.pyi

.PHONY: api
api: $(INSTALLED)  ## Write tests/repository/public_api.txt anew from the package.
	$(BIN)/python -m scripts.public_api

.PHONY: settings
settings: $(DEVELOPED)  ## Write signatures and docstrings anew from where settings are declared, then `api` and `reference`.
	$(BIN)/python -m scripts.settings
	@$(MAKE) api reference

.PHONY: golden
golden: $(INSTALLED)  ## Write tests/repository/golden.json anew: what sources and datasets are.
	PYTHONPATH=tests $(BIN)/python -m repository.golden

.PHONY: reference
reference: $(INSTALLED) $(DEVELOPED)  ## Write the pages of docs/reference that are made from the code anew.
	$(BIN)/python -m scripts.reference.pages

.PHONY: docs
docs: $(FRAMEWORKS) $(BUILD)/.stamp-hdfs-jars  ## Run every code block and example of the documentation, follow every link.
	$(PYTEST) tests/repository/test_{docs,examples,notebooks,pages,reference,site}.py
	@echo "The documentation is the Markdown in README.md and docs/; all of its code ran and all of its links lead somewhere."

.PHONY: site
site: $(FRAMEWORKS)  ## Build the documentation as a site, to be read offline: build/site/index.html.
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --site-dir $(abspath $(BUILD))/site
	@echo "The site is $(BUILD)/site: open index.html, or serve it with python -m http.server."

$(DEMO)/dataset/manifest.json:
	$(MAKE) demo

.PHONY: bench
bench: $(DEMO)/dataset/manifest.json $(FRAMEWORKS)  ## Speed on the demo's dataset: the ladder of tf.data, Stoker, the codec alone.
	$(BIN)/python -m benchmarks.ladder $(DEMO)/dataset --seconds $(BENCH_SECONDS)

$(DEMO)/photos:
	$(MAKE) demo

.PHONY: bench-quick
bench-quick: $(INSTALLED) $(if $(PHOTOS),,$(DEMO)/photos)  ## Before and after a change: ratios against those stored on this machine, in two minutes.
	$(BIN)/python -m benchmarks.quick "$(or $(PHOTOS),$(DEMO)/photos)" --store $(BUILD)/bench-quick.json $(if $(SAVE),--save)

.PHONY: bench-rivals
bench-rivals: $(INSTALLED)  ## Stoker and its rivals in one paired run on PHOTOS=folder (an hour, 15 GB; Linux).
	@test -n "$(PHOTOS)" || { echo "Say which photographs: make bench-rivals PHOTOS=folder"; exit 2; }
	$(BIN)/python -m benchmarks.rivals.install --build $(BUILD)/rivals $(RIVALS) \
	  || echo "Some rivals could not be installed; they are left out."
	$(BIN)/python -m benchmarks.rivals "$(PHOTOS)" --build $(BUILD)/rivals $(if $(LINES),--lines "$(LINES)") $(if $(RESUME),--resume)

.PHONY: sdist wheel
sdist wheel: $(BUILD)/.stamp-deps-build  ## The source package; and wheels with the image libraries inside (needs nasm). In dist/.
	@scripts/release.sh $@

.PHONY: release
release: $(BUILD)/.stamp-deps-build  ## Everything of a release, checked: VERSION=x.y.z [PYTHONS="python3.11 ..."] [TAG=yes].
	@test -n "$(VERSION)" || { echo "Say which version: make release VERSION=x.y.z"; exit 2; }
	@scripts/release.sh release $(VERSION)

.PHONY: fuzz
fuzz: $(BUILD)/.stamp-deps-fuzz $(FRAMEWORKS)  ## Fuzz every parser for FUZZ_SECONDS each (clang 14).
	@PATH="$(BIN):$$PATH" nice scripts/fuzz.sh $(BUILD)/fuzz $(FUZZ_SECONDS)

.PHONY: fuzz-corpus
fuzz-corpus: $(BUILD)/.stamp-deps-fuzz $(FRAMEWORKS)  ## Check in what fuzzing has reached, minimised.
	@PATH="$(BIN):$$PATH" nice scripts/fuzz.sh $(BUILD)/fuzz keep

.PHONY: mutations
mutations: $(FRAMEWORKS) $(BUILD)/.stamp-hdfs-jars  ## Break each guarantee on purpose and check that its tests fail (half an hour).
	@PATH="$(BIN):$$PATH" $(BIN)/python scripts/mutations.py $(BUILD)/mutations

.PHONY: clean
clean:  ## Remove everything that make has made, the virtual environment included.
	rm -rf build dist .mypy_cache .ruff_cache clients/.ruff_cache .pytest_cache .hypothesis
	rm -rf $(VENV) $(BUILD)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
