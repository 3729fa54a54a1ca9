FOUND: int
MORE: int
CORRUPT: int

def find_batch(
    buffer: bytes | bytearray | memoryview, offset: int, floor: int
) -> tuple[int, int, int, int]: ...
