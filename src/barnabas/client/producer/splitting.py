"""A batch that the broker finds too large, cut into smaller ones."""

from barnabas.client.producer.batch import ProducerBatch
from barnabas.kernels.record_append import HEADER_SIZE


def split_batch(batch: ProducerBatch, batch_bytes: int) -> list[tuple[int, ProducerBatch]]:
    """At least two batches of the same records, each with the index of its first record in the old one."""
    rows = batch.rows()
    # Half of what was refused, also where batch.size would allow it: else nothing would be gained.
    capacity = min(batch_bytes, HEADER_SIZE + (len(batch.data) - HEADER_SIZE) // 2)
    parts: list[tuple[int, ProducerBatch]] = []
    for index, row in enumerate(rows):
        if not parts or parts[-1][1].append(*row) is None:
            part = ProducerBatch(batch.partition, capacity, batch.created)
            part.append(*row)
            parts.append((index, part))
    for _, part in parts:
        part.close()
        # It is not a first attempt: no lingering, and its place is at the front.
        part.attempts = batch.attempts
    return parts
