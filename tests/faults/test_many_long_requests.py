"""Many peers send long requests at once: their memory has one limit, and nobody else waits for them."""

import contextlib
import select
from collections.abc import Iterator

import pytest
from tests.support.frame_probe import (
    ELEMENT_BYTES_MAX,
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
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

LIST_OFFSETS = 2
CONNECTIONS = 30
# A connection has the frame in a buffer of up to twice its size, and then the answer.
MEMORY_PER_FRAME_BYTE = 3


@pytest.fixture
def stage() -> Iterator[Stage]:
    with prepared_stage() as stage:
        yield stage


def _worst_frame(stage: Stage, name: str) -> bytes:
    """The oldest version, and unknown names in the innermost array: what takes the most memory."""
    row = next(row for row in ROWS.values() if row.name == name)
    api = api_of(row.key)
    assert api is not None
    version = row.versions[0]
    shape = list(shapes_of(api.request, version, ELEMENTS_MAX))[-1]
    return frame_of(api, version, shape, stage.known.of_api(name))


@contextlib.contextmanager
def _peers(stage: Stage, frame: bytes) -> Iterator[list[RawClient]]:
    """Many connections that have sent the frame: the broker has all of them before it has answered two."""
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(RawClient("127.0.0.1", stage.broker.port, timeout_seconds=240))
            for _ in range(CONNECTIONS)
        ]
        for client in clients:
            client.send_bytes(frame)
        yield clients


# They wait for nothing, for a coordinator, for the controller once, and for the controller very often.
@pytest.mark.parametrize("name", ["Fetch", "OffsetFetch", "CreateTopics", "AlterConfigs"])
def test_the_memory_of_many_long_requests_has_one_limit(stage: Stage, name: str) -> None:
    frame = _worst_frame(stage, name)
    memory = MemoryMeter(stage.broker)
    with Probe(stage.broker, stage.probed) as probe, _peers(stage, frame) as clients:
        for client in clients:
            client.discard_frame()
    allowed = ELEMENT_BYTES_MAX * ELEMENTS_MAX + MEMORY_PER_FRAME_BYTE * CONNECTIONS * len(frame)
    grown = memory.grown_bytes()
    print(f"{grown >> 20} of {allowed >> 20} MB, waited {probe.longest_seconds * 1000:.0f} ms")
    assert grown < allowed
    assert probe.longest_seconds < WAIT_SECONDS_MAX


def test_short_requests_are_answered_while_long_ones_wait(stage: Stage) -> None:
    short = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=stage.probed.name,
                partitions=[ListOffsetsPartition(partition_index=index) for index in range(4000)],
            )
        ],
    )
    with (
        RawClient("127.0.0.1", stage.broker.port) as client,
        _peers(stage, _worst_frame(stage, "OffsetFetch")) as waiting,
    ):
        answer = client.call(LIST_OFFSETS, 7, short)
        assert len(answer.topics[0].partitions) == 4000
        is_answered = select.poll()
        is_answered.register(waiting[-1].socket, select.POLLIN)
        assert not is_answered.poll(0)
        for peer in waiting:
            peer.discard_frame()


def test_a_peer_that_goes_away_while_it_waits_does_not_stop_the_others(stage: Stage) -> None:
    frame = _worst_frame(stage, "OffsetFetch")
    with _peers(stage, frame) as clients:
        for client in clients[:-1]:
            client.close()
        clients[-1].discard_frame()
    with RawClient("127.0.0.1", stage.broker.port) as client:
        client.send_bytes(frame)
        client.discard_frame()
