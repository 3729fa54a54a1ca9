"""What would not fit into a record of the journal is refused before work is done for it."""

import dataclasses

import pytest
from tests.support.group_calls import (
    CLIENT,
    SETTINGS,
    ask_to_join,
    ask_to_sync,
    assignment,
    consumer_heartbeat,
    join_request,
    new_member_id,
)
from tests.support.group_machines import FakeTopics, MachineBench

from barnabas.errors import ErrorCode
from barnabas.groups.classic.group import ClassicGroup
from barnabas.wire.messages.join_group import JoinGroupRequestProtocol

RECORD_BYTES_MAX = 100_000


@pytest.fixture
def bench() -> MachineBench:
    topics = FakeTopics()
    topics.make("topic", 4)
    settings = dataclasses.replace(SETTINGS, record_bytes_max=lambda: RECORD_BYTES_MAX)
    return MachineBench(settings, topics)


def test_an_assignment_that_is_too_large_leaves_the_group_as_it_is(bench: MachineBench) -> None:
    joined = ask_to_join(bench, new_member_id(bench))
    bench.pass_time(100)
    member, generation = joined.value.member_id, joined.value.generation_id
    # The subscription of the member is in the same record.
    too_large = ask_to_sync(bench, member, generation, **{member: bytes(RECORD_BYTES_MAX - 5)})
    assert too_large.value.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.journal == []
    again = ask_to_sync(bench, member, generation, **{member: assignment(0), "nobody": bytes(500_000)})
    assert again.value.error_code == ErrorCode.NONE


def test_a_member_whose_subscription_is_too_large_cannot_join(bench: MachineBench) -> None:
    member = new_member_id(bench)
    request = join_request(member)
    request.protocols.append(JoinGroupRequestProtocol(name="other", metadata=bytes(RECORD_BYTES_MAX + 1)))
    answer = bench.ask(lambda machine, waiter: machine.join_group(request, CLIENT, 9, waiter, bench.now_ms))
    assert answer.value.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    (group,) = bench.machine.groups
    assert isinstance(group, ClassicGroup)
    assert group.is_empty


def test_a_classic_member_of_a_consumer_group_has_all_protocols_in_one_record(
    bench: MachineBench,
) -> None:
    consumer_heartbeat(bench)
    request = join_request("classic")
    half = RECORD_BYTES_MAX // 2
    request.protocols += [
        JoinGroupRequestProtocol(name=name, metadata=bytes(half)) for name in ("one", "other")
    ]
    answer = bench.ask(lambda machine, waiter: machine.join_group(request, CLIENT, 9, waiter, bench.now_ms))
    assert answer.value.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_names_that_are_too_long_together_are_not_subscribed_to(bench: MachineBench) -> None:
    member = consumer_heartbeat(bench)
    journaled = list(bench.journal)
    names = [f"{number:010000d}" for number in range(11)]
    answer = consumer_heartbeat(bench, epoch=member.member_epoch, subscribed_topic_names=names)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.journal == journaled
    answer = consumer_heartbeat(bench, epoch=member.member_epoch, subscribed_topic_names=names[:5])
    assert answer.error_code == ErrorCode.NONE
