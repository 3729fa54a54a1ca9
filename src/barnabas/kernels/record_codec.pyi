from collections.abc import Iterable, Sequence

_Header = tuple[str, bytes | None]
_Row = tuple[bytes | None, bytes | None, list[_Header], int, int]

def encode_records(
    records: Iterable[tuple[int, bytes | None, bytes | None, Sequence[_Header]]],
    base_timestamp: int,
    offset_deltas: list[int] | None = None,
) -> bytearray: ...
def decode_records(
    data: bytes, position: int, count: int, base_timestamp: int, base_offset: int
) -> list[_Row]: ...
