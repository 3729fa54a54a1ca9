from collections.abc import Callable
from typing import Any

Buffer = bytes | bytearray | memoryview

FETCHED_TAIL: bytes

def read_produce(frame: Buffer) -> tuple[int, int, int, bytes, int, int, int] | None: ...
def answer_produces(
    arrived: memoryview,
    frame_bytes_max: int,
    known: dict[tuple[bytes, int], Any],
    helpers: tuple[Callable[..., Any], Callable[..., Any], Callable[..., int], type[Exception]],
    now_ms: int,
) -> tuple[int, int, bytearray]: ...
def write_produced(
    version: int, correlation_id: int, place: tuple[bytes, int], offsets: tuple[int, int, int]
) -> bytearray: ...
def write_fetched(
    version: int, ids: tuple[int, int], place: tuple[bytes, int], offsets: tuple[int, int, int], size: int
) -> bytearray: ...
