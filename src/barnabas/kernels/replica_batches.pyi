from collections.abc import Callable

GOOD: int
NOT_A_BATCH: int
WRONG_CHECKSUM: int
OFFSET_REPEATED: int
EPOCH_BACK: int
EPOCH_AHEAD: int

def check_batches(
    data: memoryview,
    next_offset: int,
    epoch: int,
    epoch_limit: int,
    crc32c: Callable[[memoryview], int],
) -> tuple[int, int, int, int, list[tuple[int, int]], list[int]]: ...
def fitting_run(
    data: memoryview,
    start: int,
    end: int,
    segment_size: int,
    size_limit: int,
    offset_limit: int,
    timestamp_limit: int,
    index_interval: int,
    since_index: int,
    entries_max: int,
    max_timestamp: int,
    max_timestamp_offset: int,
) -> tuple[int, int, int, int, int, list[tuple[int, int, int, int]]]: ...
