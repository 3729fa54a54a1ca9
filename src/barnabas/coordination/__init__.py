"""Replicated state machines: decide, journal, apply, answer; timers come back as calls."""
