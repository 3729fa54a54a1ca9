"""One peer must not stop the others, whatever valid frame it sends: the largest frames of every API.

While a broker answers such a frame, another connection writes and asks for metadata, and measures how long it
waits. The wait must be at most 100 ms. Times in which the broker or the measuring thread could run, but the
system had no processor for them, are subtracted: they are the machine's, not the broker's.

Memory may grow by ten times the frame, or by 800 bytes for each of the elements that one request may have:
that is what the objects of an element and its answer can take, however short the element is in the frame."""

import contextlib
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.support.frame_probe import (
    ELEMENT_BYTES_MAX,
    TRIES,
    WAIT_SECONDS_MAX,
    MemoryMeter,
    Probe,
    Stage,
    prepared_stage,
)
from tests.support.largest_frames import frame_of, shapes_of
from tests.support.raw_client import RawClient

from barnabas.broker.apis import ROWS
from barnabas.broker.call import ELEMENTS_MAX
from barnabas.wire.apis import api_of
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

LIST_OFFSETS, DESCRIBE_GROUPS = 2, 15
# The default of socket.request.max.bytes.
FRAME_BYTES_MAX = 100 * 1024 * 1024
MEMORY_PER_FRAME_BYTE = 10
MEMORY_BYTES_MIN = ELEMENT_BYTES_MAX * ELEMENTS_MAX


@pytest.fixture
def stage() -> Iterator[Stage]:
    with prepared_stage() as stage:
        yield stage


class Outcome(NamedTuple):
    wait_seconds: float
    grown_bytes: int
    is_answered: bool

    def text(self) -> str:
        return f"others waited {self.wait_seconds * 1000:.0f} ms, memory grew by {self.grown_bytes >> 20} MB"


def _send(stage: Stage, frame: bytes) -> Outcome:
    memory = MemoryMeter(stage.broker)
    with Probe(stage.broker, stage.probed) as probe:
        with RawClient("127.0.0.1", stage.broker.port, timeout_seconds=120) as client:
            is_answered = False
            with contextlib.suppress(ConnectionError):
                client.send_bytes(frame)
                client.discard_frame()
                is_answered = True
        # What a handler leaves behind, such as freeing the memory, belongs to the frame as well.
        time.sleep(0.05)
    return Outcome(probe.longest_seconds, memory.grown_bytes(), is_answered)


def _problem(outcome: Outcome, frame: bytes) -> str | None:
    allowed = max(MEMORY_BYTES_MIN, MEMORY_PER_FRAME_BYTE * len(frame))
    if outcome.wait_seconds > WAIT_SECONDS_MAX:
        return "the wait is too long"
    if outcome.grown_bytes > allowed:
        return f"at most {allowed >> 20} MB are allowed"
    if not outcome.is_answered:
        return "the connection was closed"
    return None


@pytest.mark.parametrize("key", ROWS, ids=lambda key: ROWS[key].name)
def test_the_largest_frames_delay_nobody(stage: Stage, key: int) -> None:
    api = api_of(key)
    assert api is not None
    known = stage.known.of_api(ROWS[key].name)
    problems = []
    oldest, newest = ROWS[key].versions
    for version in sorted({oldest, newest}):
        shapes = list(shapes_of(api.request, version, ELEMENTS_MAX))
        # For the oldest version only the last shape: the innermost array, in the form that is converted.
        for shape in shapes if version == newest else shapes[-1:]:
            frame = frame_of(api, version, shape, known)
            outcome, problem = _tried(stage, frame)
            line = f"v{version}, {shape.label}, {len(frame) >> 10} KB: {outcome.text()}"
            print(line)
            if problem is not None:
                problems.append(f"{line}: {problem}")
    assert not problems, "\n".join(problems)


def _tried(stage: Stage, frame: bytes) -> tuple[Outcome, str | None]:
    """A wait that comes from the machine is not there again when the same frame comes again."""
    for _ in range(TRIES):
        outcome = _send(stage, frame)
        problem = _problem(outcome, frame)
        if problem is None:
            break
    return outcome, problem


# ---- at the limit of socket.request.max.bytes


def test_a_frame_of_the_largest_size_delays_nobody(stage: Stage) -> None:
    """Long names, so that the answer is as long as the request."""
    count = 45_000
    names = [f"{number:08d}" + "g" * (FRAME_BYTES_MAX // count - 30) for number in range(count)]
    with RawClient("127.0.0.1", stage.broker.port) as client:
        frame = client.encode(DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=names))
    assert 0.9 * FRAME_BYTES_MAX < len(frame) <= FRAME_BYTES_MAX
    outcome, problem = _tried(stage, frame)
    assert problem is None, outcome.text()


def test_a_frame_with_too_many_elements_is_refused_at_once(stage: Stage) -> None:
    with RawClient("127.0.0.1", stage.broker.port) as client:
        frame = client.encode(DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=[]))
    count = (FRAME_BYTES_MAX - len(frame)) // 3
    groups = struct.pack(">i", count) + b"\0\1g" * count
    body = frame[4:-4] + groups
    outcome = _send(stage, struct.pack(">i", len(body)) + body)
    assert not outcome.is_answered
    assert "more than 50000 array elements" in stage.broker.output()
    assert outcome.wait_seconds <= WAIT_SECONDS_MAX, outcome.text()


def test_a_frame_whose_inner_arrays_have_too_many_elements_is_refused(stage: Stage) -> None:
    partitions = [ListOffsetsPartition(partition_index=index) for index in range(ELEMENTS_MAX // 3 + 1)]
    topics = [ListOffsetsTopic(name="probed-topic", partitions=partitions)] * 3
    with RawClient("127.0.0.1", stage.broker.port) as client:
        frame = client.encode(LIST_OFFSETS, 7, ListOffsetsRequest(replica_id=-1, topics=topics))
    assert not _send(stage, frame).is_answered
    assert "more than 50000 array elements" in stage.broker.output()
