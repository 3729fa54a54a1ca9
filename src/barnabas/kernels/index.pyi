FOUND: int
MORE: int
CORRUPT: int

def find_batch(
    buffer: bytes | bytearray | memoryview, offset: int, last_offset: int
) -> tuple[int, int, int, int]: ...
def follow_batches(
    buffer: bytes | bytearray | memoryview, last_offset: int, last_epoch: int
) -> tuple[int, int, int, int]: ...
