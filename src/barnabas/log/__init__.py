"""The log on disk: segments, indexes, producer state, leader epochs, retention and recovery."""
