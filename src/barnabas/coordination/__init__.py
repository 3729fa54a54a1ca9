"""Runs replicated state machines: each call is decided, journaled, applied and answered."""
