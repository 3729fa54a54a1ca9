from collections.abc import Callable, Iterable
from typing import Any, Generic

from typing_extensions import TypeVar

from barnabas.kernels.shared import OpenBatch

_K = TypeVar("_K", default=bytes)
_V = TypeVar("_V", default=bytes)
_Deserializer = Callable[[str, bytes | None], Any] | None
_Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int, int]

class ConsumerRecord(Generic[_K, _V]):
    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: _K | None = None,
        value: _V | None = None,
        *,
        headers: Iterable[tuple[str, bytes | None]] = (),
        timestamp: int = -1,
        timestamp_type: int = 0,
        leader_epoch: int = -1,
        serialized_key_size: int = -1,
        serialized_value_size: int = -1,
    ) -> None: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> int: ...
    @property
    def key(self) -> _K | None: ...
    @property
    def value(self) -> _V | None: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def serialized_key_size(self) -> int: ...
    @property
    def serialized_value_size(self) -> int: ...

class BatchCursor:
    position: int
    left: int
    next_offset: int
    def __init__(
        self,
        topic: str,
        partition: int,
        key_deserializer: _Deserializer = None,
        value_deserializer: _Deserializer = None,
    ) -> None: ...
    def open(self, batch: OpenBatch, first_offset: int) -> None: ...
    def take(self, out: list[ConsumerRecord[Any, Any]], room: int) -> None: ...

def decode_records(
    data: bytes, position: int, count: int, base_timestamp: int, base_offset: int
) -> list[_Row]: ...
