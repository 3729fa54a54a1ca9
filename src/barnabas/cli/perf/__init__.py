"""The tools that measure: producer-perf-test, consumer-perf-test, e2e-latency."""
