from collections.abc import Callable
from typing import Any

from barnabas.kernels.batches import CheckedBatch, PlainRules

WRITE_CHUNK_ENTRIES: int

class IndexEnd:
    _keys: Any
    _values: Any
    _written: int
    entries_max: int
    def append(self, key: int, value: int) -> int: ...
    def last_key(self) -> int: ...

class SegmentEnd:
    active: bool
    base_offset: int
    index: Any
    time_index: Any
    _fd: int
    _pwrite: Callable[[int, Any, int], int]
    size: int
    next_offset: int
    size_limit: int
    offset_limit: int
    timestamp_limit: int
    max_timestamp: int
    max_timestamp_offset: int
    index_interval: int
    _bytes_since_index: int
    def append(self, data: bytes | bytearray | memoryview, last_offset: int, max_timestamp: int) -> int: ...
    def write_at_end(self, data: bytes | bytearray | memoryview) -> None: ...
    def add_entry(self, last_offset: int, position: int) -> None: ...
    def add_time_entry(self) -> None: ...

class AppendResult:
    first_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool
    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        log_append_time: int,
        log_start_offset: int,
        duplicate: bool,
    ) -> None: ...

class LogEnd:
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    flush_at: int
    offline: bool
    segments: list[Any]
    leader_epochs: Any
    producers: Any
    def append_as_leader(
        self, batch: CheckedBatch, leader_epoch: int, from_client: bool = True
    ) -> AppendResult: ...
    def write_next(
        self, data: memoryview, last_offset: int, max_timestamp: int, leader_epoch: int
    ) -> Any: ...
    def update_high_watermark(self, offset: int) -> None: ...

class Permit:
    # Any: a Partition, or None once the permit is withdrawn.
    partition: Any
    leader_epoch: int
    commits_at_once: bool
    plain_rules: PlainRules | None
    stores_zstd: bool
    def __init__(
        self,
        partition: PartitionEnd,
        leader_epoch: int,
        commits_at_once: bool,
        plain_rules: PlainRules | None,
        stores_zstd: bool,
    ) -> None: ...
    def withdraw(self) -> None: ...

class PartitionEnd:
    log: Any
    leader_epoch: int
    is_alone: bool
    committed: Any
    appended: Any
    bytes_in: int
    records_in: int
    plain_produces: int
    @property
    def high_watermark(self) -> int: ...
    def append(self, batch: CheckedBatch, from_client: bool = True) -> AppendResult: ...
    def append_silently(self, batch: CheckedBatch, from_client: bool = True) -> AppendResult: ...
    def wake_after_append(self) -> None: ...
