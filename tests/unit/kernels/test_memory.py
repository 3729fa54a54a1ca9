"""Memory that is not cleared, compiled and interpreted: as large as asked for, and the caller's own."""

from typing import Any

import pytest
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import memory as compiled

BOTH = pytest.mark.parametrize("kernel", [compiled, interpreted(compiled)], ids=["compiled", "interpreted"])


@BOTH
@pytest.mark.parametrize("size", [0, 1, 4096, 1 << 20])
def test_a_buffer_is_as_large_as_asked_for_and_can_be_filled(kernel: Any, size: int) -> None:
    found = kernel.uncleared(size)
    assert type(found) is bytearray and len(found) == size
    found[:] = b"x" * size
    found += b"more"
    assert found == b"x" * size + b"more"


@BOTH
def test_a_negative_size_is_refused(kernel: Any) -> None:
    with pytest.raises(ValueError, match="not negative"):
        kernel.uncleared(-1)
