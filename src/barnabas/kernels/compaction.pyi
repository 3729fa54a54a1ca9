Buffer = bytes | bytearray | memoryview

ALL_FIT: int
MALFORMED: int

class OffsetMap:
    def __init__(self, memory: memoryview, secret: tuple[int, int], limit: int) -> None: ...
    def used(self) -> int: ...
    def get(self, key: Buffer) -> int: ...
    def learn(self, data: Buffer, count: int, base_offset: int, start_offset: int) -> int: ...
    def filter(
        self,
        data: Buffer,
        count: int,
        base_offset: int,
        latest_offset: int,
        keep_tombstones: bool,
        shift: int,
        out: Buffer,
    ) -> tuple[int, int, int, int]: ...
