"""The benchmark: `python -m tests.bench` (see docs/performance.md)."""
