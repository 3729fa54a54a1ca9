"""Record batches, magic 2: headers, validation of what producers send, compression, building and reading.

Bytes in, bytes or plain values out: no files, no sockets, no asyncio, and no clock but the time given."""
