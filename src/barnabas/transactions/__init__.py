"""The transaction coordinator as a pure state machine: which producer has a transactional id, which
partitions are in its transaction, and how the transaction ends. No I/O, no clock, no asyncio."""
