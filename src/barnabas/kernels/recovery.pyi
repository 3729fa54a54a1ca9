from collections.abc import Callable

def sound_run(
    window: memoryview,
    start: int,
    last_offset: int,
    epoch: int,
    offset_limit: int,
    index_interval: int,
    indexed_position: int,
    max_timestamp: int,
    max_timestamp_offset: int,
    crc32c: Callable[[memoryview], int],
) -> tuple[int, int, int, int, bool, list[tuple[int, int, int, int]]]: ...
