"""How members leave a group: by request, by a timeout, by an administrator; and what remains."""

import pytest
from tests.support.group_story import GroupStory, value_of

from barnabas.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_leaves_sends_the_others_to_join() -> None:
    story = GroupStory().stable("a", "b", "c")
    assert story.leave("a") == [NONE]
    assert story.heartbeat("b") is ErrorCode.REBALANCE_IN_PROGRESS
    assert story.heartbeat("a") is UNKNOWN
    story.join("b")
    story.join("c")
    assert story.leader == "b"
    assert story.member_names == {"b", "c"}


def test_several_leave_at_once_and_each_is_answered() -> None:
    story = GroupStory().stable("a", "b", "c")
    answers = story.remove(
        MemberIdentity(member_id=story["a"].member_id),
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id=story["b"].member_id, reason="maintenance"),
        MemberIdentity(member_id=story["a"].member_id),
        MemberIdentity(member_id="", group_instance_id=None),
    )
    assert answers == [NONE, UNKNOWN, NONE, UNKNOWN, UNKNOWN]
    assert story.member_names == {"c"}


def test_the_answer_to_a_leave_names_the_member() -> None:
    story = GroupStory().stable("a", instance_id="one")
    member_id = story["a"].member_id
    request = LeaveGroupRequest(members=[MemberIdentity(member_id=member_id, group_instance_id="one")])
    (answer,) = story.group.leave(request, 5, 0).reply.members
    assert (answer.member_id, answer.group_instance_id, answer.error_code) == (member_id, "one", 0)


def test_a_static_member_is_removed_by_its_instance_id() -> None:
    story = GroupStory()
    story.stable("a", "b", instance_id=None)
    story.enter("s", instance_id="stat")
    story.rejoin_all()
    story.sync_all()
    assert story.remove(MemberIdentity(group_instance_id="nobody")) == [UNKNOWN]
    assert story.remove(MemberIdentity(group_instance_id="stat")) == [NONE]
    assert story.member_names == {"a", "b"}
    fenced = MemberIdentity(member_id="other", group_instance_id="stat")
    assert story.remove(fenced) == [UNKNOWN]


def test_a_leave_with_the_instance_id_of_another_member_is_fenced() -> None:
    story = GroupStory().stable("a", instance_id="one")
    assert story.remove(MemberIdentity(member_id="old", group_instance_id="one")) == [
        ErrorCode.FENCED_INSTANCE_ID
    ]
    assert story.member_names == {"a"}


def test_a_member_that_is_removed_while_its_join_is_parked_gets_an_answer() -> None:
    story = GroupStory().stable("a", "b")
    story.join("a")
    story.leave("a")
    answer = story.last("a")
    assert isinstance(answer, JoinGroupResponse)
    assert (answer.error_code, answer.member_id) == (UNKNOWN, "")
    assert story.parked == set()


def test_a_member_that_is_removed_while_its_sync_is_parked_gets_an_answer() -> None:
    story = GroupStory()
    story.enter("a")
    story.enter("b")
    story.pass_time(6000)
    story.sync("b")
    story.leave("b")
    assert story.last("b").error_code == UNKNOWN


def test_a_rebalance_does_not_wait_for_a_member_that_leaves() -> None:
    story = GroupStory().stable("a", "b")
    story.join("a")
    story.leave("b")
    assert story["a"].generation == 2
    assert story.parked == set()


def test_a_pending_member_may_leave() -> None:
    story = GroupStory().stable("a")
    story.join("b")
    assert story.leave("b") == [NONE]
    assert story.group.pending_members == frozenset()
    assert story.heartbeat("a") is NONE, "nobody who was in is gone"


def test_the_last_member_that_leaves_leaves_an_empty_group_record() -> None:
    story = GroupStory().stable("a", "b")
    story.leave("a", "b")
    assert story.group.is_empty
    value = value_of(story.journal[-1])
    assert value is not None
    assert (value.generation, value.protocol_type, value.protocol) == (2, "consumer", None)
    assert (value.leader, value.members) == (None, [])
    assert value.current_state_timestamp == story.clock.now_ms()
    assert story.group.subscribed_topics() == frozenset()


def test_the_generation_goes_on_after_the_group_was_empty() -> None:
    story = GroupStory().stable("a")
    story.leave("a")
    story["a"].member_id = ""
    story.stable("a")
    assert story.group.generation == 3


def test_a_leave_that_cannot_be_recorded_changes_nothing() -> None:
    story = GroupStory().stable("a")
    story.disk_fails = True
    with pytest.raises(KafkaError):
        story.leave("a")
    assert story.heartbeat("a") is NONE
    assert story.leave("a") == [NONE]
    assert story.group.is_empty


# Sessions


def test_a_member_that_is_silent_for_a_session_timeout_leaves() -> None:
    story = GroupStory().stable("a", "b")
    story.pass_time(9_000, heartbeats=["a"])
    assert story.heartbeat("b") is NONE
    story.pass_time(9_999, heartbeats=["a"])
    assert story.member_names == {"a", "b"}
    story.pass_time(1, heartbeats=["a"])
    assert story.member_names == {"a"}
    assert story.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_while_preparing_keep_the_session() -> None:
    story = GroupStory().stable("a", "b")
    story.enter("c")
    story.pass_time(30_000, heartbeats=["a", "b"])
    assert story.member_names == {"a", "b", "c"}


def test_a_commit_keeps_the_session() -> None:
    story = GroupStory().stable("a")
    story.pass_time(9_000)
    assert story.commit("a") is NONE
    assert story.time_left_ms("session", "a") == 10_000


def test_a_lapse_that_came_too_late_does_nothing() -> None:
    story = GroupStory().stable("a")
    for key in [
        ("group", "readers", "session", "nobody"),
        ("group", "readers", "pending", "nobody"),
        ("group", "readers", "join"),
        ("group", "readers", "sync"),
    ]:
        step = story.group.lapse(key, 0)
        assert (step.records, step.answers) == ([], [])
    assert story.group.state_name == "Stable"


def test_a_sync_timer_that_lapses_in_the_next_rebalance_does_nothing() -> None:
    story = GroupStory().stable("a", "b")
    story.join("a")
    story.join("b")
    story.enter("c")
    story.run(story.group.lapse(("group", "readers", "sync"), 0))
    assert story.member_names == {"a", "b", "c"}


def test_a_timer_of_another_group_is_an_error() -> None:
    with pytest.raises(ValueError, match="no timer"):
        GroupStory().group.lapse(("group", "others", "join"), 0)


def test_heartbeats_of_an_older_generation_are_refused() -> None:
    story = GroupStory().stable("a", "b")
    story.join("a")
    story.join("b")
    story["b"].generation = 1
    assert story.heartbeat("b") is ErrorCode.ILLEGAL_GENERATION
    assert story.commit("b") is ErrorCode.ILLEGAL_GENERATION


# Commits


def test_who_may_commit_in_which_state() -> None:
    story = GroupStory()
    assert story.commit(None) is NONE, "nobody is in: an administrator, or a consumer without a group"
    story.stable("a", "b")
    assert story.commit("a") is NONE
    assert story.commit(None) is UNKNOWN, "a consumer outside of a group with members cannot commit"
    assert story.commit(None, transactional=True) is NONE
    assert story.commit("a", generation=0) is ErrorCode.ILLEGAL_GENERATION
    story.enter("c")
    assert story.commit("a") is NONE, "members commit what they read before they join again"
    story.join("a")
    story.join("b")
    assert story.commit("a") is ErrorCode.REBALANCE_IN_PROGRESS
    assert story.commit("a", transactional=True) is NONE
    story.sync_all()
    assert story.commit("a") is NONE
    story.leave("a", "b", "c")
    assert story.commit("a") is UNKNOWN
    assert story.commit("a", generation=-1) is NONE, "without a generation, any member id is accepted"
    assert story.commit(None) is NONE


def test_what_may_be_deleted_when() -> None:
    story = GroupStory().stable("a")
    with pytest.raises(KafkaError, match="NON_EMPTY"):
        story.group.check_delete()
    story.group.check_offset_delete()
    story.leave("a")
    story.group.check_delete()
    story.stable("w", protocol_type="connect")
    with pytest.raises(KafkaError, match="NON_EMPTY"):
        story.group.check_offset_delete()
    story.group.apply(None)
    for check in (story.group.check_delete, story.group.check_offset_delete):
        with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
            check()
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        story.group.check_fetch(None, -1)


def test_from_when_offsets_are_kept() -> None:
    story = GroupStory()
    assert story.group.retention_start_ms(5) == 5, "nobody was ever in"
    story.enter("a")
    assert story.group.retention_start_ms(5) is None, "a rebalance is running"
    story.rejoin_all()
    story.sync_all()
    assert story.group.retention_start_ms(5) == 5
    assert story.group.is_subscribed_to("orders")
    assert not story.group.is_subscribed_to("bills")
    story.leave("a")
    assert story.group.retention_start_ms(5) == story.clock.now_ms()
    assert not story.group.is_subscribed_to("orders")


def test_a_subscription_that_cannot_be_read_counts_as_all_topics() -> None:
    for metadata in (b"", b"\0", b"\0\0\0\0\0\7"):
        story = GroupStory().stable("a", protocols={"range": metadata})
        assert story.group.subscribed_topics() is None
        assert story.group.is_subscribed_to("orders")
        assert story.group.retention_start_ms(5) is None
    story = GroupStory().stable("w", protocol_type="connect")
    assert story.group.subscribed_topics() is None
    assert not story.group.is_subscribed_to("orders")
