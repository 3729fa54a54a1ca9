"""The log on disk: segments, indexes, producer state, leader epochs, retention, recovery and compaction."""
