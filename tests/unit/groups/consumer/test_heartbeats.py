"""What a consumer group guarantees to members of its own protocol."""

from typing import Any

import pytest
from tests.support.consumer_group_story import (
    GROUP,
    REBALANCE_TIMEOUT_MS,
    ConsumerGroupStory,
    FakeTopics,
)

from barnabas.config.group import GroupConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.consumer.group import ConsumerGroup, State
from barnabas.groups.consumer.members import MemberState
from barnabas.groups.settings import GroupSettings

SESSION_MS = GroupSettings().consumer_session_timeout_ms


def new_story(settings: GroupSettings | None = None, **counts: int) -> ConsumerGroupStory:
    return ConsumerGroupStory(FakeTopics(**(counts or {"t": 4})), settings)


def refused(code: ErrorCode) -> Any:
    return pytest.raises(KafkaError, check=lambda error: error.code is code)


def state_of(story: ConsumerGroupStory, name: str) -> MemberState:
    return story.group.durable.members[name].state


# ---- joining


def test_the_first_member_gets_everything_at_once() -> None:
    story = new_story()
    answer = story.join("a")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 1, 5_000)
    assert story.owned("a") == {"t": [0, 1, 2, 3]}
    assert story.group.state is State.STABLE


def test_a_config_of_the_group_applies_from_the_next_heartbeat_on() -> None:
    own = GroupConfig(50_000, 7_000)
    story = new_story(
        GroupSettings(of_group=lambda group_id: own if group_id == GROUP else GroupConfig(1, 1))
    )
    assert story.join("a").heartbeat_interval_ms == 7_000
    story.pass_time(49_999)
    own = GroupConfig(45_000, 6_000)
    assert story.beat("a").heartbeat_interval_ms == 6_000
    story.pass_time(44_999)
    assert story.group.durable.members.keys() == {"a"}
    story.pass_time(1)
    assert not story.group.durable.members


def test_an_old_client_gets_a_member_id() -> None:
    story = new_story()
    answer = story.send(
        version=0,
        member_id="",
        member_epoch=0,
        rebalance_timeout_ms=1,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert answer.member_id
    assert list(story.group.durable.members) == [answer.member_id]


def test_the_second_member_waits_until_the_first_has_revoked_its_part() -> None:
    story = new_story()
    story.join("a")
    answer = story.join("b")
    assert (answer.member_epoch, story.owned("b")) == (2, {})
    assert story.group.state is State.RECONCILING

    answer = story.beat("a")
    assert answer.member_epoch == 1, "it stays at its epoch until it says that it gave partitions up"
    assert story.members["a"].target < story.members["a"].owned
    assert state_of(story, "a") is MemberState.UNREVOKED_PARTITIONS
    assert story.beat("b").assignment is None
    assert state_of(story, "b") is MemberState.UNRELEASED_PARTITIONS

    assert story.beat("a").member_epoch == 2
    story.beat("b")
    assert [len(story.members[name].owned) for name in "ab"] == [2, 2]
    assert story.group.state is State.STABLE


def test_an_answer_has_the_assignment_only_when_it_changed() -> None:
    story = new_story()
    story.join("a")
    assert story.beat("a").assignment is None
    full = story.beat(
        "a",
        topic_partitions=story.members["a"].report(),
        subscribed_topic_names=["t"],
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
    )
    assert full.assignment is not None


def test_a_heartbeat_without_changes_writes_nothing() -> None:
    story = new_story()
    story.join("a")
    written = len(story.journal)
    story.beat("a")
    assert len(story.journal) == written


def test_a_member_may_subscribe_to_nothing_yet() -> None:
    story = new_story()
    assert story.join("a", []).member_epoch == 1
    assert story.group.state is State.STABLE


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "lottery"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"member_epoch": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_join_needs_all_its_fields(fields: dict[str, Any], code: ErrorCode) -> None:
    story = new_story()
    proper: dict[str, Any] = {
        "member_id": "a",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    with refused(code):
        story.send(**(proper | fields))
    assert not story.journal


def test_a_full_group_takes_no_new_members() -> None:
    story = new_story(GroupSettings(consumer_max_size=1))
    story.join("a")
    with refused(ErrorCode.GROUP_MAX_SIZE_REACHED):
        story.join("b")
    assert story.join("a").member_epoch == 1


# ---- epochs


def test_a_wrong_epoch_is_fenced() -> None:
    story = new_story()
    story.join("a")
    with refused(ErrorCode.FENCED_MEMBER_EPOCH):
        story.beat("a", member_epoch=2)


def test_a_lost_answer_is_forgiven_while_the_member_has_no_more_than_it_should() -> None:
    story = new_story()
    story.join("a")
    story.join("b")
    story.beat("a")
    story.beat("a", adopt=False)
    assert story.group.durable.members["a"].epoch == 2
    with refused(ErrorCode.FENCED_MEMBER_EPOCH):
        story.beat("a", topic_partitions=None, member_epoch=1)
    assert story.beat("a", member_epoch=1).member_epoch == 2


def test_a_member_that_joins_again_keeps_its_place() -> None:
    story = new_story()
    story.join("a")
    answer = story.join("a")
    assert answer.member_epoch == 1
    assert story.owned("a") == {"t": [0, 1, 2, 3]}


# ---- leaving


def test_the_partitions_of_a_member_that_leaves_are_free() -> None:
    story = new_story()
    story.join("a")
    story.join("b")
    story.settle()
    assert story.leave("a").member_epoch == -1
    assert story.group.state is State.ASSIGNING
    story.settle()
    assert story.owned("b") == {"t": [0, 1, 2, 3]}
    assert "a" not in story.group.durable.targets


def test_the_group_remains_when_its_last_member_leaves() -> None:
    story = new_story()
    story.join("a")
    story.leave("a")
    assert (story.group.state, story.group.is_empty) == (State.EMPTY, True)
    assert not story.timers
    assert story.join("b").member_epoch == 3, "epochs go on from where they were"


def test_only_members_leave() -> None:
    story = new_story()
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        story.send(member_id="a", member_epoch=-1)


# ---- time


def test_a_member_without_heartbeats_is_removed_after_its_session_timeout() -> None:
    story = new_story()
    story.join("a")
    story.pass_time(SESSION_MS - 1)
    story.beat("a")
    story.pass_time(SESSION_MS - 1)
    assert not story.group.is_empty
    story.pass_time(1)
    assert story.group.is_empty
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        story.beat("a")


def test_a_member_that_does_not_revoke_partitions_is_removed_after_its_rebalance_timeout() -> None:
    story = new_story()
    story.join("a")
    story.join("b")
    story.beat("a")
    for _ in range(REBALANCE_TIMEOUT_MS // 10_000):
        assert "a" in story.group.durable.members
        story.beat("a", report=False)
        story.beat("b")
        story.pass_time(10_000)
    assert "a" not in story.group.durable.members
    story.beat("b")
    assert story.owned("b") == {"t": [0, 1, 2, 3]}


def test_revoking_in_time_cancels_the_rebalance_timeout() -> None:
    story = new_story()
    story.join("a")
    story.join("b")
    story.beat("a")
    assert ("group", GROUP, "rebalance", "a") in story.timers
    story.beat("a")
    assert ("group", GROUP, "rebalance", "a") not in story.timers


def test_after_a_failover_all_timeouts_begin_again() -> None:
    story = new_story()
    story.join("a")
    story.join("b")
    story.beat("a")
    story.pass_time(SESSION_MS - 1)
    story.fail_over()
    assert story.timers[("group", GROUP, "session", "b")] == story.now_ms + SESSION_MS
    assert story.timers[("group", GROUP, "rebalance", "a")] == story.now_ms + REBALANCE_TIMEOUT_MS
    story.settle()
    assert [len(story.members[name].owned) for name in "ab"] == [2, 2]


# ---- static members


def test_a_static_member_that_comes_back_gets_its_partitions() -> None:
    story = new_story()
    story.join("a", instance_id="one")
    story.join("b", instance_id="two")
    story.settle()
    before = story.members["a"].owned
    assert story.leave("a", epoch=-2).member_epoch == -2
    story.beat("b")
    assert story.group.durable.epoch == 2, "no new assignment is computed meanwhile"

    answer = story.join("c", instance_id="one")
    assert (answer.member_epoch, story.members["c"].owned) == (2, before)
    assert sorted(story.group.durable.members) == ["b", "c"]
    assert not [key for key in story.timers if "a" in str(key[-1:])]


def test_an_instance_id_in_use_is_refused() -> None:
    story = new_story()
    story.join("a", instance_id="one")
    with refused(ErrorCode.UNRELEASED_INSTANCE_ID):
        story.join("b", instance_id="one")
    story.beat("a")


def test_the_former_holder_of_an_instance_id_is_fenced() -> None:
    story = new_story()
    story.join("a", instance_id="one")
    former = story.members["a"]
    story.leave("a", epoch=-2)
    story.join("b", instance_id="one")
    story.members["a"] = former
    with refused(ErrorCode.FENCED_INSTANCE_ID):
        story.beat("a")
    with refused(ErrorCode.FENCED_INSTANCE_ID):
        story.leave("a")


def test_a_heartbeat_with_an_unknown_instance_id_is_refused() -> None:
    story = new_story()
    story.join("a")
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        story.send(member_id="a", member_epoch=1, instance_id="one")


def test_an_instance_id_is_kept_for_one_session_timeout() -> None:
    story = new_story()
    story.join("a", instance_id="one")
    story.leave("a", epoch=-2)
    with refused(ErrorCode.FENCED_MEMBER_EPOCH):
        story.send(member_id="a", member_epoch=1, instance_id="one")
    story.pass_time(SESSION_MS)
    assert story.group.is_empty
    assert not story.group.durable.instances


def test_a_static_member_with_another_subscription_gets_a_new_target() -> None:
    story = new_story(t=2, u=2)
    story.join("a", instance_id="one")
    story.leave("a", epoch=-2)
    story.join("b", ["u"], instance_id="one")
    story.settle()
    assert story.owned("b") == {"u": [0, 1]}


# ---- subscriptions


def test_a_member_changes_its_topics() -> None:
    story = new_story(t=2, u=2)
    story.join("a")
    story.beat("a", subscribed_topic_names=["u"])
    story.settle()
    assert story.owned("a") == {"u": [0, 1]}
    assert story.group.subscribed_topics() == {"u"}


def test_topics_that_a_slow_member_no_longer_subscribes_to_are_revoked_at_once() -> None:
    story = new_story(t=4, u=2)
    story.join("a", ["t", "u"])
    story.join("b", ["t"])
    story.beat("a")
    assert state_of(story, "a") is MemberState.UNREVOKED_PARTITIONS
    story.beat("a", report=False, subscribed_topic_names=["t"])
    names = {story.topics.topic_name(topic) for topic, _ in story.members["a"].target}
    assert names == {"t"}
    story.settle()
    assert [len(story.members[name].owned) for name in "ab"] == [2, 2]


def test_members_vote_for_the_assignor() -> None:
    story = new_story()
    story.join("a", server_assignor="range")
    assert story.group.describe().assignor_name == "range"
    story.join("b", server_assignor="uniform")
    story.join("c", server_assignor="uniform")
    assert story.group.describe().assignor_name == "uniform"


def test_the_range_assignor_assigns_ranges() -> None:
    story = new_story()
    story.join("a", server_assignor="range")
    story.join("b", server_assignor="range")
    story.settle()
    assert (story.owned("a"), story.owned("b")) == ({"t": [0, 1]}, {"t": [2, 3]})


# ---- describing


def test_a_description_shows_what_members_have_and_should_have() -> None:
    story = new_story()
    story.join("a", instance_id="one", rack_id="r")
    story.join("b")
    shown = story.group.describe()
    assert (shown.group_id, shown.group_state) == (GROUP, "Reconciling")
    assert (shown.group_epoch, shown.assignment_epoch) == (2, 2)
    a = next(member for member in shown.members if member.member_id == "a")
    assert (a.instance_id, a.rack_id, a.client_id, a.client_host) == ("one", "r", "client", "/127.0.0.1")
    assert (a.member_epoch, a.member_type, a.subscribed_topic_names) == (1, 1, ["t"])
    assert [(each.topic_name, each.partitions) for each in a.assignment.topic_partitions] == [
        ("t", [0, 1, 2, 3])
    ]
    assert [len(each.partitions) for each in a.target_assignment.topic_partitions] == [2]


def test_a_removed_group_is_dead() -> None:
    story = new_story()
    story.join("a")
    story.leave("a")
    story.group.check_delete()
    story.journal += story.group.tombstones()
    gone = story.replayed()
    assert gone.state is State.DEAD
    assert story.replayed(compacted=True).state is State.DEAD
    assert vars(gone.durable) | {"is_deleted": False} == vars(
        ConsumerGroup(GROUP, story.settings, story.topics).durable
    )


def test_a_group_with_members_is_not_deleted() -> None:
    story = new_story()
    story.join("a")
    with refused(ErrorCode.NON_EMPTY_GROUP):
        story.group.check_delete()


# ---- described


def test_a_member_is_described_with_partitions_it_has_not_revoked_yet() -> None:
    story = new_story()
    story.join("a")
    story.join("b")
    story.beat("a")
    assert state_of(story, "a") is MemberState.UNREVOKED_PARTITIONS
    first, second = story.group.describe().members
    (assigned,), (target,) = first.assignment.topic_partitions, first.target_assignment.topic_partitions
    assert (first.member_id, assigned.partitions, len(target.partitions)) == ("a", [0, 1, 2, 3], 2)
    assert second.assignment.topic_partitions == []
    assert {member.subscribed_topic_regex for member in (first, second)} == {""}
