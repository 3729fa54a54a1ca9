# Everything runs through `make setup`, which makes .venv and costs nothing when it is up to date.
PYTHON := .venv/bin/python
KERNELS := $(filter-out %/__init__.py,$(wildcard src/barnabas/kernels/*.py))
STAMP := .venv/.ready
# Brokers started by tests and benchmarks are to start from bytecode, as they do for users.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run test check test-java test-kafka test-long bench docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml setup.py $(KERNELS)
	@scripts/preflight
	@test -x $(PYTHON) || python3 -m venv .venv
	$(PYTHON) -m pip install --quiet --editable '.[dev]'
	@touch $@

run: setup            ## start a broker, drive it end to end, print what it did
	@$(PYTHON) -m tools.tour

test: setup           ## every test that needs nothing but PyPI, and the linters
	$(PYTHON) -m pytest -m "not java and not slow"

check: setup          ## ruff, mypy --strict, import-linter
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports

test-java: setup      ## Java client, Kafka's own tools and log format; needs Maven Central and Java 17+
	$(PYTHON) -m pytest -m java tests

test-kafka: setup     ## the client suites against Apache Kafka from Maven: same tests, same results
	$(PYTHON) -m tests.java.against_kafka

test-long: setup      ## the long suite: more rounds, bigger files
	$(PYTHON) -m pytest -m slow tests

bench: setup          ## the one-broker rows, ours alone; prints figures
	$(PYTHON) -m tests.bench

docs: setup           ## write docs/configuration.md from the config table
	$(PYTHON) -m tools.write_configuration_docs

clean:
	rm -rf .venv build src/barnabas/kernels/*.so src/*.egg-info
