"""Writing: nulls, limits and chunks. test_codec.py tests that what is written can be read."""

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.unit.kernels.interpreting import interpreted

import barnabas.kernels.codec_write
import barnabas.kernels.plans

PLANS = {"compiled": barnabas.kernels.plans, "source": interpreted(barnabas.kernels.plans)}
KERNELS = {"compiled": barnabas.kernels.codec_write, "source": interpreted(barnabas.kernels.codec_write)}


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return KERNELS[request.param]


def chunks(kernel: ModuleType, kind: str, value: Any, flexible: bool = False, **extra: Any) -> list[Any]:
    plans = PLANS["compiled" if kernel is barnabas.kernels.codec_write else "source"]
    field = plans.FieldPlan("field", kind, flexible, **extra)
    writer = kernel.Writer(bytes(4))
    writer.struct(plans.StructPlan(SimpleNamespace, flexible, [field]), SimpleNamespace(field=value))
    return list(writer.finish_frame())


def test_a_null_string_is_written_as_empty_if_the_field_is_not_nullable(kernel: ModuleType) -> None:
    assert chunks(kernel, "string", None) == [b"\0\0\0\2" + b"\0\0"]
    assert chunks(kernel, "string", None, flexible=True) == [b"\0\0\0\2" + b"\1" + b"\0"]
    assert chunks(kernel, "string", None, is_nullable=True) == [b"\0\0\0\2" + b"\xff\xff"]


@pytest.mark.parametrize(
    ("kind", "value", "extra"),
    [
        ("int32", None, {"is_array": True}),
        ("bytes", None, {}),
        ("bytes", "text", {}),
        ("uuid", b"short", {}),
        ("string", 7, {}),
        ("string", "\ud800", {}),
        ("string", "x" * 32768, {}),
        ("string", "x" * 32768, {"flexible": True}),
        ("bool", None, {}),
        ("float64", "1", {}),
        ("int32", 2**31, {}),
        ("int64", 2**63, {}),
        ("int8", 1.0, {}),
        ("uint16", -1, {}),
        ("int16", 1 << 70, {}),
    ],
)
def test_unwritable(kernel: ModuleType, kind: str, value: Any, extra: dict[str, Any]) -> None:
    with pytest.raises(kernel.UnwritableError):
        chunks(kernel, kind, value, **extra)


class Slice:
    """Like a range of a file: the codec only uses its size."""

    def __init__(self, size: int) -> None:
        self.size = size


def test_a_slice_of_a_file_is_a_chunk_between_two_others(kernel: ModuleType) -> None:
    part = Slice(70_000)
    first, middle, last = chunks(kernel, "records", part, flexible=True, is_nullable=True)
    assert first == (70_000 + 4).to_bytes(4, "big") + bytes.fromhex("f1a204")
    assert middle is part
    assert last == b"\0"


def test_a_slice_at_the_end_is_the_last_chunk_and_an_empty_one_is_left_out(kernel: ModuleType) -> None:
    part = Slice(5)
    assert chunks(kernel, "records", part) == [b"\0\0\0\x09" + b"\0\0\0\5", part]
    assert chunks(kernel, "records", Slice(0)) == [b"\0\0\0\4" + b"\0\0\0\0"]


def test_large_records_are_not_copied_and_small_ones_are(kernel: ModuleType) -> None:
    large = bytes(5000)
    assert chunks(kernel, "records", large)[1] is large
    assert len(chunks(kernel, "records", bytes(100))) == 1


def test_slices_that_add_up_to_more_than_a_frame_are_refused(kernel: ModuleType) -> None:
    with pytest.raises(kernel.UnwritableError):
        chunks(kernel, "records", Slice(2**31 - 2), flexible=True)
    with pytest.raises(kernel.UnwritableError):
        chunks(kernel, "records", Slice(2**40))


def test_a_tagged_field_is_written_only_if_it_differs_from_its_default(kernel: ModuleType) -> None:
    assert chunks(kernel, "int16", -1, flexible=True, tag=4, default=-1) == [b"\0\0\0\1" + b"\0"]
    assert chunks(kernel, "int16", 5, flexible=True, tag=4, default=-1) == [
        b"\0\0\0\5" + bytes.fromhex("01 04 02 0005")
    ]


def test_a_slice_cannot_be_tagged(kernel: ModuleType) -> None:
    with pytest.raises(kernel.UnwritableError):
        chunks(kernel, "records", Slice(5), flexible=True, tag=0)
