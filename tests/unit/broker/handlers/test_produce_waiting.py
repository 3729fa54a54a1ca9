"""acks=all with more replicas: the answer waits for them, under the leader epoch of the append."""

import asyncio
import dataclasses
from typing import Any

import pytest
from tests.unit.broker.conftest import Stage
from tests.unit.broker.handlers.test_produce_plain import a_batch, request_of

from barnabas.broker.call import Call
from barnabas.broker.handlers.produce import produce
from barnabas.broker.session import Session
from barnabas.broker.turns import in_turns
from barnabas.errors import ErrorCode
from barnabas.replication.partition import Partition
from barnabas.wire.codec import RequestHeader
from barnabas.wire.messages.produce import ProduceRequest


@pytest.fixture
def partition(stage: Stage) -> Partition:
    """A partition with another replica in sync, which is behind."""
    stage.create("topic")
    partition = stage.replicas.leader("topic", 0)
    follow(stage, partition, isr=(1, 2))
    return partition


def follow(stage: Stage, partition: Partition, **change: Any) -> None:
    placed = stage.image.topics["topic"].partitions[0]
    partition.follow(dataclasses.replace(placed, **change))


def ask(stage: Stage, timeout_ms: int, *meanwhile: Any) -> ErrorCode:
    """The answer to a Produce with acks=all; these functions are called while it waits."""
    request = request_of(stage, "topic", a_batch(stage))
    request.timeout_ms = timeout_ms
    return stage.run(_ask(stage, request, meanwhile))


async def _ask(stage: Stage, request: ProduceRequest, meanwhile: Any) -> ErrorCode:
    header = RequestHeader(0, 9, 7, "tests")
    call = Call(stage, None, Session(stage.config.listeners[0], ""), header)  # type: ignore[arg-type]
    answer: Any = in_turns(produce(call, request))
    assert asyncio.iscoroutine(answer)
    waiting = asyncio.create_task(answer)
    await asyncio.sleep(0)
    for function in meanwhile:
        assert not waiting.done()
        function()
        await asyncio.sleep(0)
    response: Any = await waiting
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def test_answers_when_the_other_replica_has_the_batch(stage: Stage, partition: Partition) -> None:
    def replicated() -> None:
        partition.log.update_high_watermark(3)
        partition.committed.advance(3)

    assert ask(stage, 60_000, replicated) == ErrorCode.NONE


def test_answers_when_the_other_replica_leaves_the_isr(stage: Stage, partition: Partition) -> None:
    assert ask(stage, 60_000, lambda: follow(stage, partition, isr=(1,))) == ErrorCode.NONE


def test_gives_up_after_the_timeout_of_the_request(stage: Stage, partition: Partition) -> None:
    assert ask(stage, 10) == ErrorCode.REQUEST_TIMED_OUT
    assert len(partition.committed) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"leader": 2, "leader_epoch": 9, "isr": (1, 2)},
        # This broker leads again and everything in its log is committed, but it may be another batch now.
        {"leader_epoch": 9, "isr": (1,)},
    ],
)
def test_another_leader_epoch_ends_the_wait(
    stage: Stage, partition: Partition, change: dict[str, Any]
) -> None:
    code = ask(stage, 60_000, lambda: follow(stage, partition, **change))
    assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_partition_that_is_deleted_ends_the_wait(stage: Stage, partition: Partition) -> None:
    assert ask(stage, 60_000, partition.let_go) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def produced(stage: Stage, sequence: int) -> ErrorCode:
    batch = a_batch(stage, 1, producer_id=7, producer_epoch=0, base_sequence=sequence)
    answer: Any = stage.ask(request_of(stage, "topic", batch), 9)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"replicas": (1, 2)}, ErrorCode.NOT_ENOUGH_REPLICAS),
        ({"leader": 2, "leader_epoch": 9}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_what_was_sent_behind_a_refused_batch_is_not_called_out_of_order(
    stage: Stage, change: dict[str, Any], code: ErrorCode, is_known: bool
) -> None:
    """Two batches are on their way when too few replicas are in sync, or another broker leads; only the first
    of them is refused for that. librdkafka sends everything again with a new epoch if the second is called
    out of order: what another partition has already written would be there twice."""
    stage.create("topic", min_insync_replicas="2")
    partition = stage.replicas.leader("topic", 0)
    first = 0
    if is_known:
        assert produced(stage, 0) == ErrorCode.NONE
        first = 1
    follow(stage, partition, **change)
    assert produced(stage, first) == code
    follow(stage, partition, leader_epoch=10)
    assert produced(stage, first + 1) == code
    assert produced(stage, first) == ErrorCode.NONE
    assert produced(stage, first + 1) == ErrorCode.NONE
