"""What a classic group guarantees about assignments: recorded before a member gets one, and to each its
own."""

import pytest
from tests.support.group_story import Answer, GroupStory

from barnabas.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sync_group import SyncGroupResponse

NONE = ErrorCode.NONE


def synced(answer: Answer | None) -> SyncGroupResponse:
    assert isinstance(answer, SyncGroupResponse)
    return answer


def completing(*names: str, **traits: object) -> GroupStory:
    story = GroupStory()
    for name in names:
        story.enter(name, **traits)
    while story.group.state_name != "CompletingRebalance":
        story.pass_to_next_timer()
    assert story.leader == names[0]
    return story


def test_all_members_get_their_part_when_the_leader_sends_the_assignment() -> None:
    story = completing("a", "b", "c")
    assert story.sync("b") is None
    assert story.parked == {"b"}
    mine = synced(story.sync("a", {"a": b"0", "b": b"1"}))
    assert (mine.error_code, mine.assignment) == (NONE, b"0")
    assert (mine.protocol_type, mine.protocol_name) == ("consumer", "range")
    assert synced(story.last("b")).assignment == b"1"
    late = synced(story.sync("c"))
    assert (late.error_code, late.assignment) == (NONE, b""), "the leader had nothing for it"
    assert story.group.state_name == "Stable"


def test_a_long_assignment_arrives_whole() -> None:
    story = completing("a", "b")
    story.sync("b")
    story.sync("a", {"b": bytes(range(256)) * 1000})
    assert synced(story.last("b")).assignment == bytes(range(256)) * 1000


def test_no_member_gets_an_assignment_when_the_record_cannot_be_written() -> None:
    story = completing("a", "b")
    story.sync("b")
    story.disk_fails = True
    with pytest.raises(KafkaError):
        story.sync("a", {"a": b"0", "b": b"1"})
    assert story.parked == {"b"}
    assert story.group.state_name == "CompletingRebalance"
    assert story.journal == []
    assert synced(story.sync("a", {"a": b"2", "b": b"3"})).assignment == b"2"
    assert synced(story.last("b")).assignment == b"3"


def test_heartbeats_while_completing_keep_a_member_in() -> None:
    story = completing("a", "b")
    assert story.heartbeat("a") is NONE
    story.pass_time(20_000, heartbeats=["a", "b"])
    assert story.member_names == {"a", "b"}


def test_a_member_whose_sync_is_parked_needs_no_heartbeats() -> None:
    story = completing("a", "b")
    story.sync("b")
    story.pass_time(30_000, heartbeats=["a"])
    assert story.parked == {"b"}
    story.sync("a", {})
    assert story.time_left_ms("session", "b") == 10_000
    assert story.time_left_ms("session", "a") == 10_000


def test_when_the_leader_is_lost_parked_members_must_join_again() -> None:
    story = completing("a", "b")
    story.sync("b")
    story.pass_time(10_000)
    assert synced(story.last("b")).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert story.member_names == {"b"}
    assert story.time_left_ms("session", "b") == 10_000
    story.join("b")
    assert story.leader == "b"
    assert story.group.generation == 2


def test_a_member_that_does_not_sync_in_time_is_removed_and_a_rebalance_begins() -> None:
    story = completing("a", "b")
    story.sync("a", {"a": b"0", "b": b"1"})
    story.pass_time(59_000, heartbeats=["a", "b"])
    assert story.heartbeat("a") is NONE
    story.pass_time(1_000, heartbeats=["a", "b"])
    assert story.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    assert story.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID
    assert story.member_names == {"a"}


def test_when_all_have_synced_the_sync_timer_is_cancelled() -> None:
    story = completing("a", "b")
    assert story.time_left_ms("sync") == 60_000
    story.sync("b")
    story.sync("a", {})
    assert story.time_left_ms("sync") is None


def test_the_last_follower_to_sync_cancels_the_sync_timer() -> None:
    story = completing("a", "b")
    story.sync("a", {})
    assert story.time_left_ms("sync") is not None
    story.sync("b")
    assert story.time_left_ms("sync") is None


def test_a_rebalance_cancels_the_sync_timer() -> None:
    story = completing("a", "b")
    story.enter("c")
    assert story.time_left_ms("sync") is None
    assert synced(story.sync("b")).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_sync_that_is_sent_twice_ends_the_first_call() -> None:
    story = completing("a", "b")
    story.sync("b")
    first = story["b"].waiting
    story.sync("b")
    assert first is not None and first.answer is not None
    assert first.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    story.sync("a", {"b": b"1"})
    assert synced(story.last("b")).assignment == b"1"


def test_only_members_of_the_generation_may_sync() -> None:
    story = completing("a", "b")
    story["b"].generation = 0
    assert synced(story.sync("b")).error_code == ErrorCode.ILLEGAL_GENERATION
    story["b"].member_id = "b-99"
    assert synced(story.sync("b")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    empty = GroupStory()
    empty.person("x")
    assert synced(empty.sync("x")).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    empty.person("x", protocol_name="range")
    assert synced(empty.sync("x")).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("trait", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}])
def test_a_sync_must_name_the_protocol_of_the_group(trait: dict[str, str]) -> None:
    story = completing("a", "b")
    story.person("b", **trait)
    assert synced(story.sync("b")).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_before_version_5_a_sync_names_no_protocol() -> None:
    story = completing("a", version=5)
    assert synced(story.sync("a", {"a": b"0"})).error_code == NONE


def test_a_group_of_ten_has_one_owner_per_assignment() -> None:
    names = [f"m{number}" for number in range(10)]
    story = completing(*names)
    for name in names[1:]:
        story.sync(name)
    story.sync("m0", {name: name.encode() for name in names})
    assert [synced(story.last(name)).assignment for name in names] == [name.encode() for name in names]
