"""Record batches, magic 2: headers, validation of what producers send, compression, building and reading.

Functions of bytes and plain values: no files, no sockets, no asyncio; callers pass the current time."""
