"""The one-broker benchmark: `python -m tests.bench` (see docs/benchmarks.md)."""
