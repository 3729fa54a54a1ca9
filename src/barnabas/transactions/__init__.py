"""The transaction coordinator as a pure state machine: who may produce under a transactional id, which
partitions its transaction has touched, and how the transaction ends. No I/O, no clock, no asyncio."""
