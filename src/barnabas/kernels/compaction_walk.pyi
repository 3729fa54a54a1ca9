from collections.abc import Callable, Container
from typing import Protocol

END: int
LOOK: int
FULL: int
BROKEN: int

class _Offsets(Protocol):
    def learn(self, data: memoryview, count: int, base_offset: int, start_offset: int) -> int: ...
    def filter(
        self,
        data: memoryview,
        count: int,
        base_offset: int,
        latest_offset: int,
        keep_tombstones: bool,
        shift: int,
        out: memoryview,
    ) -> tuple[int, int, int, int]: ...

def index_batches(
    offsets: _Offsets,
    window: memoryview,
    position: int,
    start_offset: int,
    crc32c: Callable[[memoryview], int],
) -> tuple[int, int, int]: ...
def skim_batches(
    offsets: _Offsets,
    window: memoryview,
    target: memoryview,
    position: int,
    written: int,
    latest_offset: int,
    expiry_ms: int,
    retained: Container[int],
    crc32c: Callable[[memoryview], int],
) -> tuple[int, int, int, int]: ...
