"""Consumer groups: who reads which partition, and up to where.

Pure state machines on the records of `__consumer_offsets`. Nothing here does I/O, reads a clock or knows of
sockets: a call returns a Step, the coordination runtime journals and answers it."""
