"""Compaction: the newest record of each key stays. A process of its own does the work."""
