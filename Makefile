# Everything runs through `make setup`, which makes .venv and costs nothing when it is up to date. `make run` installs only
# what running needs; `make setup` later adds the rest and does not build the kernels again.
PYTHON := .venv/bin/python
KERNELS := $(filter-out %/__init__.py,$(wildcard src/barnabas/kernels/*.py src/barnabas/kernels/*.pxd))
STAMP := .venv/.ready
RUN_STAMP := .venv/.ready-to-run
BUILD_INPUTS := pyproject.toml setup.py scripts/install $(KERNELS)
# Brokers started by tests and benchmarks are to start from bytecode, as they do for users.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run wheel test-matrix test check test-java test-kafka test-spark-kafka test-long test-faults soak bench bench-spark bench-check docs clean

setup: $(STAMP)       ## the environment for everything: running, tests, linters, documents

$(STAMP): $(BUILD_INPUTS)
	@scripts/install console,dev,spark
	@touch $(RUN_STAMP) $@

$(RUN_STAMP): $(BUILD_INPUTS)
	@scripts/install console,spark
	@touch $@

wheel:                ## build/wheels/: a wheel for this python3 that installs without gcc; PYTHON_FOR_WHEEL=python3.13
	@scripts/wheel $(or $(PYTHON_FOR_WHEEL),python3)

test-matrix:          ## the unit and packaging tests on each Python from 3.11 on that is installed; VERSIONS="3.12 3.13" some
	@scripts/test-matrix $(VERSIONS)

run: $(RUN_STAMP)     ## a broker, a day of orders, a pipeline on Spark, and the proof; KEEP=1 leaves the broker serving
	@$(PYTHON) -m tools.orders

# Tests run in two rows at the same time, since those with real processes mostly wait. In the row beside them, Spark has a
# process of its own: its gateway to Java uses select(), which cannot see descriptors above 1023, and brokers inside the
# other processes hold thousands. What the row beside prints is shown at the end.
BESIDE := tests/unit tests/wire tests/cli tests/simulation tests/packaging tests/console
BESIDE_LOG := build/test-beside.log
NOT_HERE := not java and not spark_kafka and not slow and not faults
test: setup           ## every test that needs nothing but PyPI, and the linters
	@mkdir -p build
	@{ code=0; \
	$(PYTHON) -m pytest -m "not slow" tests/spark || code=1; \
	$(PYTHON) -m pytest -m "$(NOT_HERE)" $(BESIDE) || code=1; exit $$code; } > $(BESIDE_LOG) 2>&1 & beside=$$!; \
	$(PYTHON) -m pytest -m "$(NOT_HERE)" --ignore=tests/spark $(addprefix --ignore=,$(BESIDE)); code=$$?; \
	wait $$beside || code=1; cat $(BESIDE_LOG); exit $$code

check: setup          ## ruff, mypy --strict, import-linter
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports

test-java: setup      ## Java client, Kafka's own tools and log format; needs Maven Central and Java 17+
	$(PYTHON) -m pytest -m java tests

test-kafka: setup     ## the client suites against Apache Kafka from Maven: same tests, same results
	$(PYTHON) -m tests.java.against_kafka

test-spark-kafka: setup  ## Spark's own Kafka connector on our broker; needs Maven Central and Java 17+
	$(PYTHON) -m pytest -m spark_kafka tests/spark_kafka

test-long: setup      ## the long suite: more rounds, bigger files
	$(PYTHON) -m pytest -m slow tests --ignore=tests/spark
	$(PYTHON) -m pytest -m slow tests/spark

# The histories of rounds that fail stay in build/jepsen/. ROUNDS=3 is quicker; PEER=kafka runs those that a cluster of
# Apache Kafka can run; TESTS="t04 t08" runs some.
ALL_FAULTS := $(if $(PEER),t01 t02 t03 t04 t05 t06 t08 t15 t25 t26 t28 t33,t)
test-faults: setup    ## T01 to T37 of docs/reliability.md, 20 rounds each: some hours
	ROUNDS=$(or $(ROUNDS),20) $(if $(PEER),PEER=$(PEER)) $(PYTHON) -m pytest -p no:randomly -v \
		$(foreach test,$(or $(TESTS),$(ALL_FAULTS)),$(wildcard tests/jepsen/test_$(test)[0-9_]*.py))

soak: setup           ## T38: random faults for HOURS (8), from SEED
	$(PYTHON) -m tests.jepsen.soak --hours $(or $(HOURS),8) $(if $(SEED),--seed $(SEED)) $(if $(FROM),--from-window $(FROM))

bench: setup          ## one broker and the Python clients; PEER=kafka beside Apache Kafka, ROWS=p16k,e2e some rows, FULL=1 longer
	$(PYTHON) -m tests.bench $(if $(PEER),--peer $(PEER)) $(if $(ROWS),--rows $(ROWS)) $(if $(FULL),--full)

bench-spark: setup    ## our Spark source and sink beside Spark's own Kafka connector; needs Maven Central and Java 17+
	$(PYTHON) -m tests.bench.spark $(if $(ROWS),--rows $(ROWS))

bench-check: setup    ## what moved between the last two runs by more than their spread
	$(PYTHON) -m tests.bench.check

docs: setup           ## write the pages that come from tables, and draw the pictures
	$(PYTHON) -m tools.write_configuration_docs
	$(PYTHON) -m tools.write_client_settings
	$(PYTHON) -m tools.write_spark_option_docs
	$(PYTHON) -m tools.write_client_setting_docs
	$(PYTHON) -m tools.pictures

# Only the extra `docs`: the site is made from the text of the code, so nothing has to be compiled for it.
SITE_STAMP := .venv/.ready-for-site
SITE_NEEDS = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])
$(SITE_STAMP): pyproject.toml
	@test -x $(PYTHON) || python3 -m venv .venv
	$(PYTHON) -m pip install --quiet $$($(PYTHON) -c '$(SITE_NEEDS)')
	@touch $@

.PHONY: site
site: $(SITE_STAMP)   ## the documents as a site, with search, in build/site
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet
	@echo "Open build/site/index.html, or serve it, which the search needs: $(PYTHON) -m http.server --directory build/site"

clean:
	rm -rf .venv build src/barnabas/kernels/*.so src/*.egg-info
