"""One peer must not stop the others, whatever valid frame it sends: the largest frames of every API.

While a broker answers such a frame, another connection writes and asks for metadata, and measures how long it
waits. The wait must be at most 100 ms. Times in which the broker or the measuring thread could run, but the
system had no processor for them, are subtracted: they are the machine's, not the broker's.

Memory may grow by ten times the frame. This is judged with the frames that have the most bytes. A frame with
the most elements may also take 600 bytes for each of them: that is what the objects of an element and its
answer can take, however short the element is in the frame. Frames of a few kilobytes have a few megabytes, in
which the broker does other things."""

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
from tests.support.largest_frames import FRAME_BYTES_MAX, Shape, frame_of, long_shapes_of, shapes_of
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup

from barnabas.broker.apis import ROWS
from barnabas.broker.call import ELEMENTS_MAX, Api
from barnabas.errors import ErrorCode
from barnabas.groups.consumer.requests import SUBSCRIBED_NAMES_MAX
from barnabas.wire.apis import Api as Schema
from barnabas.wire.apis import api_of
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

LIST_OFFSETS, SYNC_GROUP, DESCRIBE_GROUPS = 2, 14, 15
MEMORY_PER_FRAME_BYTE = 10
# Meanwhile another client writes, timers run, and Python's allocator takes a megabyte at a time.
OTHER_MEMORY_BYTES = 4 * 1024 * 1024
# These have a lower limit of their own: with more elements they are refused before they are looked at.
ELEMENTS_MAX_OF = {"ConsumerGroupHeartbeat": SUBSCRIBED_NAMES_MAX}


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


def _tried(stage: Stage, frame: bytes) -> Outcome:
    """A wait that comes from the machine is not there again when the same frame comes again. Memory is judged
    by the first one: the next ones can use what it has freed."""
    first = outcome = _send(stage, frame)
    for _ in range(TRIES - 1):
        if outcome.wait_seconds > WAIT_SECONDS_MAX:
            outcome = _send(stage, frame)
    return first._replace(wait_seconds=outcome.wait_seconds)


def _problem(outcome: Outcome, frame: bytes, elements: int) -> str | None:
    allowed = max(OTHER_MEMORY_BYTES, ELEMENT_BYTES_MAX * elements, MEMORY_PER_FRAME_BYTE * len(frame))
    if outcome.wait_seconds > WAIT_SECONDS_MAX:
        return "the wait is too long"
    if outcome.grown_bytes > allowed:
        return f"at most {allowed >> 20} MB are allowed"
    if not outcome.is_answered:
        return "the connection was closed"
    return None


@pytest.mark.parametrize("key", ROWS, ids=lambda key: ROWS[key].name)
def test_the_largest_frames_delay_nobody(stage: Stage, key: int) -> None:
    row, api = ROWS[key], api_of(key)
    assert api is not None
    problems = []
    for version, shape in _shapes(row, api):
        frame = frame_of(api, version, shape, stage.known.of_api(row.name))
        assert len(frame) <= FRAME_BYTES_MAX + 4
        assert len(frame) > 0.98 * FRAME_BYTES_MAX or not shape.long_fields
        outcome = _tried(stage, frame)
        problem = _problem(outcome, frame, shape.elements)
        line = f"v{version}, {shape.label}, {len(frame) >> 10} KB: {outcome.text()}"
        print(line)
        if problem is not None:
            problems.append(f"{line}: {problem}")
    assert not problems, "\n".join(problems)


def _shapes(row: Api, api: Schema) -> Iterator[tuple[int, Shape]]:
    oldest, newest = row.versions
    if oldest < newest:
        # Only the last shape: the innermost array, in the form that is converted.
        yield oldest, list(shapes_of(api.request, oldest, ELEMENTS_MAX))[-1]
    for shape in shapes_of(api.request, newest, ELEMENTS_MAX):
        yield newest, shape
    # These come last, because they leave the most memory that others could use.
    yield from long_shapes_of(api, row.versions, ELEMENTS_MAX_OF.get(row.name, ELEMENTS_MAX))


# ---- frames that are not built from a schema


def test_an_assignment_of_the_largest_size_delays_nobody(stage: Stage) -> None:
    """The leader of a group sends it. It does not fit into the record of the group."""
    with RawClient("127.0.0.1", stage.broker.port) as client:
        group = RawGroup(client, "rebalanced-group")
        group.find()
        joined = group.joined()
        request = SyncGroupRequest(
            group_id=group.name,
            member_id=joined.member_id,
            generation_id=joined.generation_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=joined.member_id, assignment=bytes(FRAME_BYTES_MAX - 1000)
                )
            ],
        )
        frame = client.encode(SYNC_GROUP, 5, request)
        outcome = _tried(stage, frame)
        problem = _problem(outcome, frame, 1)
        assert problem is None, f"{outcome.text()}: {problem}"
        assert group.sync(joined, {joined.member_id: b"assigned"}).error_code == ErrorCode.NONE


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
