TAIL: bytes

def write_head(
    version: int, ids: tuple[int, int], place: tuple[bytes, int], offsets: tuple[int, int, int], size: int
) -> bytearray: ...
