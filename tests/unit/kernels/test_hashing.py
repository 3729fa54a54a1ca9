"""Kafka's hash of keys, compiled and interpreted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import hashing as compiled

plain = interpreted(compiled)
BOTH = pytest.mark.parametrize("kernel", [compiled, plain], ids=["compiled", "interpreted"])


@BOTH
@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # From Kafka's own test of its hash.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_hash_as_in_java(kernel: Any, key: bytes, hashed: int) -> None:
    assert kernel.murmur2(key) == hashed & 0x7FFFFFFF


@given(st.binary(max_size=300))
def test_the_hash_is_the_same_interpreted(key: bytes) -> None:
    assert compiled.murmur2(key) == plain.murmur2(key)


@given(st.text(max_size=100))
def test_the_hash_of_strings_is_the_same_interpreted(text: str) -> None:
    assert compiled.java_hash(text) == plain.java_hash(text)
