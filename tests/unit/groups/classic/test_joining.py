"""What a classic group guarantees to members that join: ids, rebalances, a leader, a common protocol."""

import pytest
from tests.support.group_story import Answer, GroupStory, subscription

from barnabas.errors import ErrorCode
from barnabas.groups.classic.members import protocols_of
from barnabas.wire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse

NONE = ErrorCode.NONE


def joined(answer: Answer | None) -> JoinGroupResponse:
    assert isinstance(answer, JoinGroupResponse)
    return answer


def code(answer: Answer | None) -> int:
    assert answer is not None, "it is parked"
    return answer.error_code


# Member ids


@pytest.mark.parametrize("version", range(4, 10))
def test_a_new_member_gets_its_id_first(version: int) -> None:
    story = GroupStory()
    answer = joined(story.join("a", version=version))
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id == "a-1"
    assert answer.protocol_name == (None if version >= 7 else "")
    assert story.group.pending_members == {"a-1"}
    assert story.group.is_empty
    assert story.join("a") is None
    assert story.group.pending_members == frozenset()
    assert story.time_left_ms("pending", "a") is None


@pytest.mark.parametrize("version", range(4))
def test_an_old_client_joins_in_one_step(version: int) -> None:
    story = GroupStory()
    assert story.join("a", version=version) is None
    story.pass_time(3000)
    answer = joined(story.last("a"))
    assert (answer.error_code, answer.member_id, answer.generation_id) == (NONE, "a-1", 1)


def test_without_a_second_step_the_id_is_forgotten() -> None:
    story = GroupStory()
    story.join("a", session_timeout_ms=7000)
    story.pass_time(7000)
    assert story.group.is_unused
    assert code(story.join("a")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_members_that_were_given_an_id() -> None:
    story = GroupStory().stable("a")
    story.join("b")
    assert story.heartbeat("a") is NONE, "an id alone does not begin a rebalance"
    story.join("c", version=3)
    story.join("a")
    assert story.parked == {"a", "c"}
    story.join("b")
    assert story.parked == set()
    assert {story[name].generation for name in "abc"} == {2}


def test_a_rebalance_continues_when_a_pending_member_leaves() -> None:
    story = GroupStory().stable("a")
    story.join("b")
    story.join("c", version=3)
    story.join("a")
    assert story.leave("b") == [NONE]
    assert story.parked == set()


def test_an_unknown_member_id_is_refused() -> None:
    story = GroupStory().stable("a")
    assert code(story.join("b", member_id="b-17")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(GroupStory().join("b", member_id="b-17")) == ErrorCode.UNKNOWN_MEMBER_ID


# Limits


@pytest.mark.parametrize(
    ("timeout_ms", "expected"), [(5999, False), (6000, True), (1_800_000, True), (1_800_001, False)]
)
def test_the_session_timeout_has_bounds(timeout_ms: int, expected: bool) -> None:
    answer = GroupStory().join("a", session_timeout_ms=timeout_ms)
    assert (code(answer) != ErrorCode.INVALID_SESSION_TIMEOUT) is expected


def test_a_full_group_takes_no_more_members() -> None:
    story = GroupStory(max_size=2).stable("a", "b")
    answer = joined(story.join("c"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    story.join("a", protocols={"range": subscription("orders", "more")})
    assert story.heartbeat("b") is ErrorCode.REBALANCE_IN_PROGRESS
    assert story.parked == {"a"}, "those who are in stay in"


def test_in_a_rebalance_the_first_members_to_join_get_the_places() -> None:
    story = GroupStory(max_size=2).stable("a", "b")
    story.join("a", protocols={"range": subscription("more")})
    assert story.enter("c") is None
    assert code(story.join("b")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert story.member_names == {"a", "c"}
    assert story.parked == set(), "the rebalance does not wait for a member that was refused"


def test_a_pending_member_that_finds_no_place_is_forgotten() -> None:
    story = GroupStory(max_size=2)
    for name in "abc":
        story.join(name)
    story.join("a")
    story.join("b")
    assert code(story.join("c")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert story.group.pending_members == frozenset()


# The first wait


def test_an_empty_group_waits_for_more_members() -> None:
    story = GroupStory()
    story.enter("a")
    story.pass_time(2999)
    assert story.parked == {"a"}
    story.pass_time(1)
    assert story.parked == set()


def test_new_members_extend_the_first_wait() -> None:
    story = GroupStory()
    story.enter("a")
    story.pass_time(2000)
    story.enter("b")
    story.pass_time(1000)
    assert story.parked == {"a", "b"}
    story.pass_time(2999)
    assert story.parked == {"a", "b"}
    story.pass_time(1)
    assert story.parked == set()
    assert story.group.generation == 1


def test_the_first_wait_ends_with_the_rebalance_timeout() -> None:
    story = GroupStory()
    story.enter("first", rebalance_timeout_ms=8000)
    for number in range(20):
        if story.group.state_name != "PreparingRebalance":
            break
        story.enter(f"m{number}", rebalance_timeout_ms=8000)
        story.pass_time(1000)
    assert story.group.state_name == "CompletingRebalance"
    assert 6 <= number <= 11


def test_without_a_delay_the_first_wait_is_over_at_once() -> None:
    story = GroupStory(initial_rebalance_delay_ms=0)
    story.enter("a")
    story.pass_time(0)
    story.pass_to_next_timer()
    assert story.group.generation == 1


# Rebalances


def test_a_second_member_makes_the_first_join_again() -> None:
    story = GroupStory().stable("a")
    story.enter("b")
    assert story.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    assert story.parked == {"b"}
    story.join("a")
    assert story.parked == set()
    assert story["a"].generation == story["b"].generation == 2


def test_the_first_member_to_join_leads_and_gets_the_list_of_members() -> None:
    story = GroupStory()
    story.enter("a", protocols={"range": subscription("x")})
    story.enter("b", protocols={"range": subscription("y")}, instance_id="bee")
    story.pass_time(6000)
    to_a, to_b = joined(story.last("a")), joined(story.last("b"))
    assert to_a.leader == to_b.leader == to_a.member_id
    assert [(m.member_id, m.group_instance_id, m.metadata) for m in to_a.members] == [
        (story["a"].member_id, None, subscription("x")),
        (story["b"].member_id, "bee", subscription("y")),
    ]
    assert to_b.members == []
    assert (to_b.protocol_type, to_b.protocol_name, to_b.skip_assignment) == ("consumer", "range", False)


def test_a_member_that_does_not_rejoin_in_time_is_removed_and_another_leads() -> None:
    story = GroupStory().stable("a", "b", "c")
    assert story.leader == "a"
    story.join("b", protocols={"range": subscription("more")})
    story.join("c")
    story.pass_time(59_999, heartbeats=["a"])
    assert story.parked == {"b", "c"}
    story.pass_time(1)
    assert story.member_names == {"b", "c"}
    assert story.leader == "b"
    assert len(joined(story.last("b")).members) == 2
    assert story.heartbeat("a") is ErrorCode.UNKNOWN_MEMBER_ID
    assert story.time_left_ms("session", "a") is None


def test_the_longest_rebalance_timeout_counts() -> None:
    story = GroupStory()
    story.enter("a", rebalance_timeout_ms=20_000)
    story.enter("b", rebalance_timeout_ms=90_000)
    story.rejoin_all()
    story.sync_all()
    story.enter("c", rebalance_timeout_ms=10_000)
    assert story.time_left_ms("join") == 90_000


def test_a_member_may_change_its_timeouts() -> None:
    story = GroupStory().stable("a")
    story.join("a", rebalance_timeout_ms=70_000, session_timeout_ms=30_000)
    assert story.time_left_ms("sync") == 70_000
    assert story.time_left_ms("session", "a") == 30_000


def test_version_0_has_one_timeout_for_both() -> None:
    story = GroupStory()
    story.enter("a", version=0, session_timeout_ms=12_000)
    story.pass_time(3000)
    assert story.time_left_ms("sync") == 12_000


def test_a_new_member_that_waits_too_long_must_try_again() -> None:
    story = GroupStory().stable("a", rebalance_timeout_ms=900_000)
    story.enter("b")
    story.pass_time(299_000, heartbeats=["a"])
    assert story.parked == {"b"}
    story.pass_time(1000, heartbeats=["a"])
    answer = joined(story.last("b"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert story.member_names == {"a"}


def test_a_member_whose_join_is_parked_needs_no_heartbeats() -> None:
    story = GroupStory().stable("a", "b")
    story.join("a")
    story.pass_time(50_000, heartbeats=["b"])
    assert story.parked == {"a"}
    story.join("b")
    assert story.time_left_ms("session", "a") == 10_000


def test_a_join_that_is_sent_twice_ends_the_first_call() -> None:
    story = GroupStory().stable("a", "b")
    story.join("a")
    first = story["a"].waiting
    story.join("a")
    assert first is not None and first.answer is not None
    assert first.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    story.join("b")
    assert joined(story.last("a")).generation_id == 2


# Joining again in a generation


def test_in_a_stable_group_a_follower_that_joins_unchanged_gets_the_generation() -> None:
    story = GroupStory().stable("a", "b")
    answer = joined(story.join("b"))
    assert (answer.error_code, answer.generation_id, answer.members) == (NONE, 1, [])
    assert story.group.state_name == "Stable"
    assert story.time_left_ms("session", "b") == 10_000


def test_in_a_stable_group_a_follower_with_other_protocols_begins_a_rebalance() -> None:
    story = GroupStory().stable("a", "b")
    assert story.join("b", protocols={"range": subscription("orders", "bills")}) is None
    assert story.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS


def test_in_a_stable_group_the_leader_begins_a_rebalance_by_joining() -> None:
    story = GroupStory().stable("a", "b")
    assert story.join("a") is None
    assert story.heartbeat("b") is ErrorCode.REBALANCE_IN_PROGRESS


def test_while_completing_a_lost_answer_is_given_again() -> None:
    story = GroupStory()
    story.enter("a")
    story.enter("b")
    story.pass_time(6000)
    again_a, again_b = joined(story.join("a")), joined(story.join("b"))
    assert again_a.generation_id == again_b.generation_id == 1
    assert len(again_a.members) == 2
    assert again_b.members == []
    assert story.group.state_name == "CompletingRebalance"


def test_while_completing_other_protocols_begin_another_rebalance() -> None:
    story = GroupStory()
    story.enter("a")
    story.enter("b")
    story.pass_time(6000)
    assert story.sync("b") is None
    assert story.join("a", protocols={"range": subscription("bills")}) is None
    assert story.last("b").error_code == ErrorCode.REBALANCE_IN_PROGRESS
    story.join("b")
    assert story.group.generation == 2


# Protocols


@pytest.mark.parametrize(
    "traits", [{"protocol_type": ""}, {"protocols": {}}], ids=["no protocol type", "no protocol"]
)
def test_an_empty_group_needs_to_know_the_protocol(traits: dict[str, object]) -> None:
    assert code(GroupStory().join("a", **traits)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    "traits",
    [{"protocol_type": "connect"}, {"protocols": {"sticky": b""}}],
    ids=["another protocol type", "a protocol that the others do not know"],
)
def test_members_must_share_a_protocol(traits: dict[str, object]) -> None:
    story = GroupStory().stable("a")
    assert code(story.join("b", **traits)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(story.join("a", **traits)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert story.heartbeat("a") is NONE


def test_an_empty_group_may_change_its_protocol_type() -> None:
    story = GroupStory().stable("a")
    story.leave("a")
    story.enter("b", protocol_type="connect", protocols={"sessioned": b"x"})
    story.pass_time(3000)
    assert story.group.protocol_type == "connect"


def test_the_common_protocol_with_the_most_votes_is_chosen() -> None:
    story = GroupStory()
    story.enter("a", protocols={"sticky": b"", "range": b"ar", "robin": b"a"})
    story.enter("b", protocols={"robin": b"b", "range": b"br"})
    story.enter("c", protocols={"robin": b"c", "range": b"cr"})
    story.pass_time(9000)
    answer = joined(story.last("a"))
    assert answer.protocol_name == "robin"
    assert [member.metadata for member in answer.members] == [b"a", b"b", b"c"]


def test_a_protocol_offered_twice_counts_once() -> None:
    offered = [JoinGroupRequestProtocol(name="range", metadata=data) for data in (b"first", b"second")]
    assert [tuple(protocol) for protocol in protocols_of(offered)] == [("range", b"first")]
