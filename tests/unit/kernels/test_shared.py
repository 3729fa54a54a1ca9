"""What kernels share. Its C functions cannot be called from Python: here they run interpreted, and the
tests of the kernels that use them compare the compiled form with this one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import shared as compiled

plain = interpreted(compiled)
BOTH = pytest.mark.parametrize("kernel", [compiled, plain], ids=["compiled", "interpreted"])
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)


def test_the_kernel_under_test_is_the_compiled_one() -> None:
    assert str(compiled.__file__).endswith(".so")
    assert str(plain.__file__).endswith(".py")


@given(value=LONGS, before=st.integers(0, 3))
def test_a_varint_is_read_back_as_it_was_written(value: int, before: int) -> None:
    out = bytearray(20)
    end = plain.write_varint(out, before, value)
    assert end - before == plain.varint_size(value)
    assert plain.read_varint(out, before, end, 64) == (value, end)
    appended = bytearray(b"before")
    plain.append_varint(appended, value)
    assert appended == b"before" + out[before:end]


@given(value=st.integers(0, (1 << 32) - 1))
def test_an_unsigned_varint_is_read_back_as_it_was_written(value: int) -> None:
    out = bytearray(20)
    end = plain.write_unsigned_varint(out, 0, value)
    assert plain.read_unsigned_varint(out, 0, end) == (value, end)
    assert plain.read_unsigned_varint(out, 0, end - 1) == (0, -1)


@given(width=st.sampled_from([1, 2, 4, 8]), value=LONGS)
def test_a_number_is_read_back_as_it_was_written(width: int, value: int) -> None:
    half = 1 << (8 * width - 1)
    fitting = (value + half) % (2 * half) - half
    out = bytearray(b"ab")
    plain.append_number(out, width, value)
    assert out[2:] == fitting.to_bytes(width, "big", signed=True)
    assert plain.read_number(out, 2, width) == fitting


@pytest.mark.parametrize(
    ("data", "bits"),
    [
        (b"", 32),
        (b"\x80", 32),
        (b"\x80\x80\x80\x80\x10", 32),
        (b"\xff\xff\xff\xff\xff\x01", 32),
        (b"\x80" * 9 + b"\x02", 64),
        (b"\x80" * 10 + b"\x00", 64),
    ],
)
def test_varints_that_are_cut_off_or_too_long_are_malformed(data: bytes, bits: int) -> None:
    assert plain.read_varint(data, 0, len(data), bits) == (0, -1)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x00", b"\x80\x80\x80\x80\x10", b"\xff" * 5 + b"\x01"])
def test_unsigned_varints_that_are_cut_off_or_too_long_are_malformed(data: bytes) -> None:
    assert plain.read_unsigned_varint(data, 0, len(data)) == (0, -1)


@given(left=LONGS, right=LONGS)
def test_a_sum_that_needs_more_than_64_bits_is_seen(left: int, right: int) -> None:
    assert plain.sum_overflows(left, right) == (not -(1 << 63) <= left + right < 1 << 63)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\x0a\x00\x00\x00\x01\x01", "the length of the record"),
        (b"\x7e\x00\x00\x00\x01\x01\x00", "the length of the record"),
        (b"\x0c\x00\xff\xff\xff\xff\xff", "the timestamp"),
        (b"\x0c\x00\x00\xff\xff\xff\xff", "the offset"),
        (b"\x0c\x00\x00\x00\x7e\x01\x00", "the length of the key"),
        (b"\x0c\x00\x00\x00\x03\x01\x00", "the length of the key"),
        (b"\x0c\x00\x00\x00\x01\x7e\x00", "the length of the value"),
        (b"\x0c\x00\x00\x00\x01\x01\x7e", "the number of headers"),
        (b"\x0e\x00\x00\x00\x01\x01\x02\x00", "the number of headers"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x7e\x00", "a header"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x00\x7e", "a header"),
        (b"\x0e\x00\x00\x00\x01\x01\x00\x00", "bytes are left over"),
    ],
)
def test_what_is_wrong_in_a_record_is_named(data: bytes, error: str) -> None:
    record = plain.Record()
    number = plain.read_record(data, 0, len(data), record) or plain.read_headers(data, record)
    assert plain.RECORD_ERRORS[number].startswith(error)


@BOTH
@pytest.mark.parametrize("size", [0, 1, 4096, 1 << 20])
def test_a_buffer_has_the_requested_size_and_can_be_filled(kernel: Any, size: int) -> None:
    buffer = kernel.uncleared(size)
    assert type(buffer) is bytearray and len(buffer) == size
    buffer[:] = b"x" * size
    buffer += b"more"
    assert buffer == b"x" * size + b"more"


@BOTH
def test_a_negative_size_is_refused(kernel: Any) -> None:
    with pytest.raises(ValueError, match="cannot be negative: -1"):
        kernel.uncleared(-1)
