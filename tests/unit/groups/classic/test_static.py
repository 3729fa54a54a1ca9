"""Static members: an instance id that survives a restart, one holder at a time, no rebalance."""

import pytest
from tests.support.group_story import Answer, GroupStory, subscription, value_of

from barnabas.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

NONE = ErrorCode.NONE
FENCED = ErrorCode.FENCED_INSTANCE_ID


def joined(answer: Answer | None) -> JoinGroupResponse:
    assert isinstance(answer, JoinGroupResponse)
    return answer


def family() -> GroupStory:
    """A stable group: `a` leads, `b` follows, both static."""
    story = GroupStory()
    story.enter("a", instance_id="one")
    story.enter("b", instance_id="two")
    story.rejoin_all()
    story.sync_all()
    return story


def restarted(story: GroupStory, old: str, new: str, **traits: object) -> Answer | None:
    """A new process with the static name of an old one, which may still be there."""
    return story.join(new, instance_id=story[old].instance_id, **traits)


def test_a_static_member_joins_in_one_step_and_its_id_begins_with_its_name() -> None:
    story = GroupStory()
    assert story.join("a", instance_id="one") is None
    story.pass_time(3000)
    assert joined(story.last("a")).member_id == "one-1"


def test_a_static_follower_restarts_without_a_rebalance() -> None:
    story = family()
    answer = joined(restarted(story, "b", "b2"))
    assert (answer.error_code, answer.generation_id, answer.skip_assignment) == (NONE, 1, False)
    assert answer.leader == story["a"].member_id
    assert answer.members == []
    assert story.group.state_name == "Stable"
    assert story.heartbeat("a") is NONE
    synced = story.sync("b2")
    assert isinstance(synced, SyncGroupResponse) and synced.assignment == b"b"


def test_a_static_leader_that_restarts_stays_the_leader_and_skips_the_assignment() -> None:
    story = family()
    answer = joined(restarted(story, "a", "a2"))
    assert answer.leader == answer.member_id == story["a2"].member_id
    assert answer.skip_assignment
    assert {member.group_instance_id for member in answer.members} == {"one", "two"}
    assert story.leader == "a2"


@pytest.mark.parametrize("version", range(5, 9))
def test_before_version_9_a_leader_that_restarts_does_not_learn_that_it_leads(version: int) -> None:
    story = family()
    old_id = story["a"].member_id
    answer = joined(restarted(story, "a", "a2", version=version))
    assert answer.leader == old_id
    assert not answer.skip_assignment
    assert answer.members == []
    assert story.group.leader == answer.member_id


def test_the_older_holder_is_fenced() -> None:
    story = family()
    restarted(story, "b", "b2")
    assert story.heartbeat("b") is FENCED
    assert story.commit("b") is FENCED
    assert joined(story.join("b")).error_code == FENCED
    answer = story.sync("b")
    assert answer is not None and answer.error_code == FENCED
    assert story.leave("b") == [FENCED]
    assert story.heartbeat("b2") is NONE


def test_without_its_instance_id_the_older_holder_is_unknown() -> None:
    story = family()
    restarted(story, "b", "b2")
    story["b"].instance_id = None
    assert story.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_id_that_no_member_has_is_unknown() -> None:
    story = family()
    story["b"].instance_id = "three"
    assert story.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_replacement_is_recorded_before_it_is_answered() -> None:
    story = family()
    restarted(story, "b", "b2")
    value = value_of(story.journal[-1])
    assert value is not None
    stored = {member.group_instance_id: member for member in value.members}
    assert stored["two"].member_id == story["b2"].member_id
    assert stored["two"].assignment == b"b"
    assert value.generation == 1
    story.fail_over()
    assert story.heartbeat("b") is FENCED
    assert story.heartbeat("b2") is NONE


def test_a_replacement_that_cannot_be_recorded_changes_nothing() -> None:
    story = family()
    story.disk_fails = True
    with pytest.raises(KafkaError):
        restarted(story, "b", "b2")
    assert story.heartbeat("b") is NONE
    assert joined(restarted(story, "b", "b2")).error_code == NONE
    assert story.heartbeat("b") is FENCED
    assert story.member_names == {"a", "b2"}


def test_the_sessions_of_both_holders() -> None:
    story = family()
    restarted(story, "b", "b2", session_timeout_ms=20_000)
    assert story.time_left_ms("session", "b") is None
    assert story.time_left_ms("session", "b2") == 20_000


def test_a_replacement_that_changes_the_protocol_begins_a_rebalance() -> None:
    both = {"range": subscription("orders"), "robin": subscription("orders")}
    story = GroupStory()
    story.enter("a", instance_id="one", protocols=both)
    story.enter("b", instance_id="two", protocols=both)
    story.rejoin_all()
    story.sync_all()
    assert restarted(story, "b", "b2", protocols={"robin": subscription("orders")}) is None
    assert story.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    story.join("a")
    assert joined(story.last("b2")).protocol_name == "robin"
    assert story.heartbeat("b") is FENCED


def test_the_protocols_of_a_replacement_are_known_in_the_next_rebalance() -> None:
    both = {"range": subscription("orders"), "robin": subscription("orders")}
    story = GroupStory()
    story.enter("a", instance_id="one", protocols=both)
    story.enter("b", instance_id="two", protocols=both)
    story.rejoin_all()
    story.sync_all()
    assert joined(restarted(story, "b", "b2", protocols=both)).error_code == NONE
    assert joined(story.join("b2")).error_code == NONE, "it has no news"
    assert story.enter("c", protocols={"robin": subscription("orders")}) is None


def test_a_replacement_while_preparing_takes_the_place_in_the_rebalance() -> None:
    story = family()
    story.join("b", protocols={"range": subscription("bills")})
    assert story.parked == {"b"}
    restarted(story, "b", "b2")
    fenced = joined(story.last("b"))
    assert (fenced.error_code, fenced.member_id) == (FENCED, story["b"].member_id)
    assert story.parked == {"b2"}
    story.join("a")
    assert joined(story.last("b2")).generation_id == 2


def test_a_replacement_while_completing_begins_another_rebalance() -> None:
    story = family()
    story.join("a")
    story.join("b")
    assert story.sync("b") is None
    assert restarted(story, "b", "b2") is None
    assert story.last("b").error_code == FENCED
    assert story.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    story.join("a")
    assert story.group.generation == 3
    assert story.member_names == {"a", "b2"}


def test_a_static_member_may_miss_a_rebalance_but_not_its_session_timeout() -> None:
    story = family()
    story.person("b").session_timeout_ms = 90_000
    story.join("b", protocols={"range": subscription("bills")})
    story.join("a")
    story.sync_all()
    story.enter("c")
    story.join("a")
    assert story.parked == {"a", "c"}
    story.pass_time(60_000)
    assert story.parked == set()
    assert story.member_names == {"a", "b", "c"}, "it keeps its place"
    story.sync("c")
    story.sync("a", {"a": b"0", "c": b"1"})
    assert story.heartbeat("b") is ErrorCode.ILLEGAL_GENERATION
    story.pass_time(60_000, heartbeats=["a", "c"])
    assert story.member_names == {"a", "c"}


def test_the_member_that_replaces_a_static_leader_stays_the_leader() -> None:
    story = family()
    story.join("b", protocols={"range": subscription("bills")})
    story.pass_time(60_000, heartbeats=["a"])
    assert story.leader == "b"
    assert story.member_names == {"a", "b"}
    story.sync("b", {"a": b"0", "b": b"1"})
    assert story.leader == "b"
    assert story.replayed().leader == story["b"].member_id


def test_when_all_members_are_static_and_away_their_session_timeouts_decide() -> None:
    story = GroupStory()
    story.enter("a", instance_id="one", session_timeout_ms=100_000, rebalance_timeout_ms=10_000)
    story.enter("b", instance_id="two", session_timeout_ms=6_000, rebalance_timeout_ms=10_000)
    story.rejoin_all()
    story.sync_all()
    story.pass_time(6_000)
    assert story.group.state_name == "PreparingRebalance"
    story.pass_time(90_000)
    assert story.group.state_name == "PreparingRebalance"
    story.pass_time(4_000)
    assert story.group.is_empty


def test_a_static_member_keeps_its_place_in_a_full_group() -> None:
    story = GroupStory(max_size=1)
    story.enter("a", instance_id="one")
    story.rejoin_all()
    story.sync_all()
    assert joined(restarted(story, "a", "a2")).error_code == NONE
    assert joined(story.join("x", instance_id="other")).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_pending_id_cannot_be_used_with_an_instance_id() -> None:
    story = family()
    story.join("c")
    answer = joined(story.join("c", instance_id="three"))
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
