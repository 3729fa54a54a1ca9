from collections.abc import Callable

def sound_run(
    window: memoryview,
    start: int,
    known: tuple[int, int, int],
    marks: tuple[int, int, int, int],
    crc32c: Callable[[memoryview], int],
) -> tuple[int, int, int, int, bool, list[tuple[int, int, int, int]]]: ...
