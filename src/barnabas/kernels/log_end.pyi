from collections.abc import Callable
from typing import Any

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
    def add_time_entry(self) -> None: ...

class LogEnd:
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    flush_at: int
    offline: bool
    segments: list[Any]
    leader_epochs: Any
    producers: Any
    def write_next(
        self, data: memoryview, last_offset: int, max_timestamp: int, leader_epoch: int
    ) -> Any: ...
    def update_high_watermark(self, offset: int) -> None: ...

class PartitionEnd:
    log: Any
    leader_epoch: int
    high_watermark: int
    is_alone: bool
    committed: Any
    appended: Any
    plain_rules: tuple[int, int, bool, int] | None
    bytes_in: int
    records_in: int
    plain_produces: int
    def append_plain(self, data: memoryview, batch: tuple[int, ...]) -> int | None: ...
    def grown(self) -> None: ...
