from collections.abc import Callable
from typing import Any

from barnabas.kernels.log_end import Permit

Buffer = bytes | bytearray | memoryview

FETCHED_TAIL: bytes
PERMITS_MAX: int

class ProduceFrame:
    version: int
    correlation_id: int
    client_id: bytes | None
    acks: int
    timeout_ms: int
    topic: bytes
    partition: int
    start: int
    size: int
    def read(self, frame: Buffer) -> bool: ...

class DeferredReply:
    partition: Any
    leader_epoch: int
    end_offset: int
    timeout_ms: int
    version: int
    correlation_id: int
    topic: bytes
    index: int
    reply: bytearray

class PlainProduces:
    permits: dict[tuple[bytes, int], Permit]
    bytes_answered: int
    answered: int
    deferred: list[DeferredReply]
    def __init__(
        self,
        ask: Callable[[bytes | None, int, bytes, int], Permit],
        refusal: type[Exception],
        frame_bytes_max: int,
    ) -> None: ...
    def answer(self, arrived: memoryview, now_ms: int, defers: bool = False) -> bytearray: ...

def write_produced(
    version: int,
    correlation_id: int,
    topic: bytes,
    partition: int,
    first_offset: int,
    log_append_time: int,
    log_start_offset: int,
) -> bytearray: ...
def write_fetched(
    version: int,
    correlation_id: int,
    session_id: int,
    topic: bytes,
    partition: int,
    high_watermark: int,
    last_stable_offset: int,
    log_start_offset: int,
    size: int,
) -> bytearray: ...
