RECORD_ERRORS: tuple[str, ...]

class OpenBatch:
    position: int
    left: int

    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        position: int,
        end: int,
        left: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None = None,
        leader_epoch: int = -1,
        next_offset: int = 0,
    ) -> None: ...
    @property
    def data(self) -> bytes | bytearray | memoryview: ...
    @property
    def end(self) -> int: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def append_time(self) -> int | None: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def next_offset(self) -> int: ...

def uncleared(size: int) -> bytearray: ...
