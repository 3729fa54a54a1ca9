"""Finding a record by its timestamp inside one batch."""

from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.batches import find_timestamp
from barnabas.records.batch import Buffer, read_header
from barnabas.records.builder import DECOMPRESSED_BYTES_MAX, records_payload

_LONG_MIN = -(1 << 63)
_MALFORMED = -2


class TimedOffset(NamedTuple):
    offset: int
    timestamp: int


def first_at_or_after(batch: Buffer, timestamp: int) -> TimedOffset | None:
    """The first record of the batch at the start of the buffer that is not before the timestamp."""
    header = read_header(batch)
    if header.max_timestamp < timestamp:
        return None
    payload = records_payload(batch, header, DECOMPRESSED_BYTES_MAX)
    target = _LONG_MIN if header.is_log_append_time else max(timestamp, _LONG_MIN)
    delta, found = find_timestamp(payload, 0, header.count, header.base_timestamp, target)
    if delta == _MALFORMED:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"a record of the batch at {header.base_offset} is malformed"
        )
    if delta < 0:
        return None
    return TimedOffset(
        header.base_offset + delta, header.max_timestamp if header.is_log_append_time else found
    )
