"""For any bytes the decoder returns a message or raises WireError, and it does not use much memory.

Valid encodings of every message and version are damaged: lengths, counts, varints, tags. The seed is fixed; a
failure shows the message, the version and the bytes."""

import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.kernels.codec import Reader, WireError
from barnabas.kernels.codec_write import Writer
from barnabas.wire.apis import api_of
from barnabas.wire.codec import UnsupportedApi, decode_request
from barnabas.wire.messages import MODULES
from barnabas.wire.plans import plan_of

MUTATIONS_PER_MESSAGE = 40
HUGE = (
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x7f\xff",
    b"\x80\x80\x80\x80\x80\x00",
)
EDGE_BYTES = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF)
# A struct of two bytes becomes an object of about 200; nothing valid costs more than this for each byte.
MEMORY_PER_BYTE_MAX = 300
MEMORY_BASE = 20_000


def encoded(message: Any, version: int, flexible: bool) -> bytes:
    writer = Writer(b"")
    writer.struct(plan_of(type(message), version, flexible), message)
    return b"".join(writer.finish())


def mutated(data: bytes, chance: random.Random) -> bytes:
    position = chance.randrange(len(data))
    kind = chance.randrange(5)
    if kind == 0:
        return data[:position]
    if kind == 1:
        return data[:position] + bytes([chance.choice(EDGE_BYTES)]) + data[position + 1 :]
    if kind == 2:
        huge = chance.choice(HUGE)
        return data[:position] + huge + data[position + len(huge) :]
    if kind == 3:
        return data[:position] + chance.choice(HUGE) + data[position:]
    return data[:position] + bytes([data[position] ^ (1 << chance.randrange(8))]) + data[position + 1 :]


def damaged(every_message: Any, sample: Any, count: int) -> Iterator[tuple[Any, bytes, str]]:
    """(plan, damaged bytes, description) for every message."""
    chance = random.Random(20240811)
    for cls, version, flexible in every_message:
        plan = plan_of(cls, version, flexible)
        for variant in ("full", "empty"):
            data = encoded(sample(cls, version, variant), version, flexible)
            for _ in range(count if data else 0):
                wrong = mutated(data, chance)
                yield plan, wrong, f"{cls.__name__} v{version} {wrong.hex()}"


def outcome(plan: Any, data: bytes) -> str:
    try:
        Reader(data).struct(plan)
    except WireError:
        return "refused"
    return "read"


def test_damage_is_refused_or_harmless(every_message: Any, sample: Any) -> None:
    counts = {"refused": 0, "read": 0}
    for plan, data, name in damaged(every_message, sample, MUTATIONS_PER_MESSAGE):
        try:
            counts[outcome(plan, data)] += 1
        except Exception as error:
            pytest.fail(f"{type(error).__name__} {error} from {name}")
    # Both must happen often, otherwise the damage is of the wrong kind.
    assert counts["refused"] > 10_000
    assert counts["read"] > 5_000


def memory_used(plan: Any, data: bytes) -> int:
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    outcome(plan, data)
    return tracemalloc.get_traced_memory()[1] - before


def test_damage_costs_memory_in_proportion_to_the_frame(every_message: Any, sample: Any) -> None:
    """The memory of the whole process is measured. Threads that earlier tests have left may need some at the
    same time, so a high figure counts only if it comes again; that of the decoder always does."""
    tracemalloc.start()
    try:
        for plan, data, name in damaged(every_message, sample, 8):
            limit = MEMORY_BASE + MEMORY_PER_BYTE_MAX * len(data)
            used = memory_used(plan, data)
            for _ in range(4 if used >= limit else 0):
                used = min(used, memory_used(plan, data))
            assert used < limit, f"{used} bytes for {name}"
    finally:
        tracemalloc.stop()


def request_outcome(frame: bytes) -> str:
    try:
        decode_request(frame)
    except UnsupportedApi:
        return "unsupported"
    except WireError:
        return "refused"
    return "read"


@pytest.mark.parametrize("key", sorted(MODULES))
def test_wrong_element_counts_are_refused_or_harmless(key: int) -> None:
    """Each body starts with the largest compact and plain lengths; these crashed the reader of kio."""
    api = api_of(key)
    assert api is not None
    outcomes = set()
    for huge in HUGE:
        for version in range(api.first, api.last + 1):
            frame = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
            tags = b"\0" if api.is_flexible(version) else b""
            outcomes.add(request_outcome(frame + tags + huge * 3))
    # A request without fields can be read: bytes after it are ignored.
    assert outcomes <= {"refused", "read"}
    assert "refused" in outcomes or not api.request.FIELDS


def test_random_frames_are_refused_or_harmless() -> None:
    chance = random.Random(7)
    outcomes = Counter[str]()
    keys = sorted(MODULES)
    for _ in range(20_000):
        head = chance.choice(keys).to_bytes(2, "big") + bytes([0, chance.randrange(19)])
        # Half of the frames have a valid header, so that random bytes reach the body.
        rest_of_header = chance.choice((b"", bytes(4) + b"\xff\xff\x00"))
        outcomes[request_outcome(head + rest_of_header + chance.randbytes(chance.randrange(60)))] += 1
    # Each must happen, otherwise the frames are of the wrong kind. Few random bodies are valid.
    assert min(outcomes[each] for each in ("unsupported", "refused", "read")) > 10, outcomes
