"""Several brokers in one process, over a simulated network, store and clock: see test_simulation.py."""
