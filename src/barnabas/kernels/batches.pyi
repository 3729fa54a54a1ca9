Buffer = bytes | bytearray | memoryview

class RecordWalk:
    count: int
    base_timestamp: int
    timestamp_min: int
    timestamp_max: int
    needs_key: bool
    index: int
    position: int
    timestamp: int
    timestamp_index: int
    def __init__(
        self,
        count: int,
        base_timestamp: int,
        timestamp_min: int,
        timestamp_max: int,
        needs_key: bool,
        position: int = 0,
    ) -> None: ...
    def run(self, buffer: Buffer) -> int: ...

class PlainRules:
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    needs_key: bool
    batch_bytes_max: int
    def __init__(
        self,
        timestamp_before_max_ms: int,
        timestamp_after_max_ms: int,
        needs_key: bool,
        batch_bytes_max: int,
    ) -> None: ...

class CheckedBatch:
    data: memoryview
    size: int
    count: int
    last_offset_delta: int
    max_timestamp: int
    max_timestamp_delta: int
    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    def __init__(
        self,
        data: memoryview,
        count: int,
        last_offset_delta: int,
        max_timestamp: int,
        max_timestamp_delta: int,
        attributes: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
    ) -> None: ...

def check_plain(batch_bytes: Buffer, rules: PlainRules, now_ms: int) -> CheckedBatch | None: ...
def find_timestamp(
    buffer: Buffer, position: int, count: int, base_timestamp: int, target: int
) -> tuple[int, int]: ...
def find_offset(buffer: Buffer, target: int) -> tuple[int, int]: ...
def next_batch(buffer: Buffer, position: int) -> tuple[int, int, int, int]: ...
def scan_batches(buffer: Buffer, position: int) -> list[tuple[int, int, int, int, int]]: ...
