"""Consumer groups: which member reads which partitions, and the offsets they have committed.

Pure state machines on the records of `__consumer_offsets`. Nothing here does I/O, reads a clock or uses a
socket: a call returns a Step, and the coordination runtime journals and answers it."""
