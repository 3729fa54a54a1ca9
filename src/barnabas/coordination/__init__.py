"""The runtime of replicated state machines: decide, journal, apply, answer; with timers that come back as calls."""
