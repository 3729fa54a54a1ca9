"""What a consumer group promises the members that speak its own protocol."""

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


def story(settings: GroupSettings | None = None, **counts: int) -> ConsumerGroupStory:
    return ConsumerGroupStory(FakeTopics(**(counts or {"t": 4})), settings)


def refused(code: ErrorCode) -> Any:
    return pytest.raises(KafkaError, check=lambda error: error.code is code)


def state_of(told: ConsumerGroupStory, name: str) -> MemberState:
    return told.group.durable.members[name].state


# ---- joining


def test_the_first_member_gets_everything_at_once() -> None:
    told = story()
    answer = told.join("a")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 1, 5_000)
    assert told.owned("a") == {"t": [0, 1, 2, 3]}
    assert told.group.state is State.STABLE


def test_what_is_set_for_the_group_counts_from_the_next_heartbeat_on() -> None:
    own = GroupConfig(50_000, 7_000)
    told = story(GroupSettings(of_group=lambda group_id: own if group_id == GROUP else GroupConfig(1, 1)))
    assert told.join("a").heartbeat_interval_ms == 7_000
    told.pass_time(49_999)
    own = GroupConfig(45_000, 6_000)
    assert told.beat("a").heartbeat_interval_ms == 6_000
    told.pass_time(44_999)
    assert told.group.durable.members.keys() == {"a"}
    told.pass_time(1)
    assert not told.group.durable.members


def test_an_old_client_gets_a_member_id() -> None:
    told = story()
    answer = told.send(
        version=0,
        member_id="",
        member_epoch=0,
        rebalance_timeout_ms=1,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert answer.member_id
    assert list(told.group.durable.members) == [answer.member_id]


def test_the_second_member_waits_until_the_first_gave_up_its_part() -> None:
    told = story()
    told.join("a")
    answer = told.join("b")
    assert (answer.member_epoch, told.owned("b")) == (2, {})
    assert told.group.state is State.RECONCILING

    answer = told.beat("a")
    assert answer.member_epoch == 1, "it stays at its epoch until it says that it gave partitions up"
    assert told.members["a"].wanted < told.members["a"].owned
    assert state_of(told, "a") is MemberState.UNREVOKED_PARTITIONS
    assert told.beat("b").assignment is None
    assert state_of(told, "b") is MemberState.UNRELEASED_PARTITIONS

    assert told.beat("a").member_epoch == 2
    told.beat("b")
    assert [len(told.members[name].owned) for name in "ab"] == [2, 2]
    assert told.group.state is State.STABLE


def test_an_answer_has_the_assignment_only_when_there_is_news() -> None:
    told = story()
    told.join("a")
    assert told.beat("a").assignment is None
    full = told.beat(
        "a",
        topic_partitions=told.members["a"].report(),
        subscribed_topic_names=["t"],
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
    )
    assert full.assignment is not None


def test_a_heartbeat_without_news_writes_nothing() -> None:
    told = story()
    told.join("a")
    written = len(told.journal)
    told.beat("a")
    assert len(told.journal) == written


def test_a_member_may_subscribe_to_nothing_yet() -> None:
    told = story()
    assert told.join("a", []).member_epoch == 1
    assert told.group.state is State.STABLE


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
def test_what_a_join_must_say(fields: dict[str, Any], code: ErrorCode) -> None:
    told = story()
    proper: dict[str, Any] = {
        "member_id": "a",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    with refused(code):
        told.send(**(proper | fields))
    assert not told.journal


def test_a_full_group_takes_nobody_new() -> None:
    told = story(GroupSettings(consumer_max_size=1))
    told.join("a")
    with refused(ErrorCode.GROUP_MAX_SIZE_REACHED):
        told.join("b")
    assert told.join("a").member_epoch == 1


# ---- epochs


def test_an_epoch_that_is_not_the_members_is_fenced() -> None:
    told = story()
    told.join("a")
    with refused(ErrorCode.FENCED_MEMBER_EPOCH):
        told.beat("a", member_epoch=2)


def test_a_lost_answer_is_forgiven_while_the_member_has_no_more_than_it_should() -> None:
    told = story()
    told.join("a")
    told.join("b")
    told.beat("a")
    told.beat("a", adopt=False)
    assert told.group.durable.members["a"].epoch == 2
    with refused(ErrorCode.FENCED_MEMBER_EPOCH):
        told.beat("a", topic_partitions=None, member_epoch=1)
    assert told.beat("a", member_epoch=1).member_epoch == 2


def test_a_member_that_joins_again_keeps_its_place() -> None:
    told = story()
    told.join("a")
    answer = told.join("a")
    assert answer.member_epoch == 1
    assert told.owned("a") == {"t": [0, 1, 2, 3]}


# ---- leaving


def test_a_leaving_member_sets_its_partitions_free() -> None:
    told = story()
    told.join("a")
    told.join("b")
    told.settle()
    assert told.leave("a").member_epoch == -1
    assert told.group.state is State.ASSIGNING
    told.settle()
    assert told.owned("b") == {"t": [0, 1, 2, 3]}
    assert "a" not in told.group.durable.targets


def test_the_group_outlives_its_last_member() -> None:
    told = story()
    told.join("a")
    told.leave("a")
    assert (told.group.state, told.group.is_empty) == (State.EMPTY, True)
    assert not told.timers
    assert told.join("b").member_epoch == 3, "epochs go on from where they were"


def test_only_members_leave() -> None:
    told = story()
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        told.send(member_id="a", member_epoch=-1)


# ---- time


def test_a_silent_member_is_out_after_its_session() -> None:
    told = story()
    told.join("a")
    told.pass_time(SESSION_MS - 1)
    told.beat("a")
    told.pass_time(SESSION_MS - 1)
    assert not told.group.is_empty
    told.pass_time(1)
    assert told.group.is_empty
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        told.beat("a")


def test_a_member_that_does_not_give_up_partitions_is_out_after_its_rebalance_timeout() -> None:
    told = story()
    told.join("a")
    told.join("b")
    told.beat("a")
    for _ in range(REBALANCE_TIMEOUT_MS // 10_000):
        assert "a" in told.group.durable.members
        told.beat("a", report=False)
        told.beat("b")
        told.pass_time(10_000)
    assert "a" not in told.group.durable.members
    told.beat("b")
    assert told.owned("b") == {"t": [0, 1, 2, 3]}


def test_giving_up_in_time_ends_the_rebalance_timeout() -> None:
    told = story()
    told.join("a")
    told.join("b")
    told.beat("a")
    assert ("group", GROUP, "rebalance", "a") in told.timers
    told.beat("a")
    assert ("group", GROUP, "rebalance", "a") not in told.timers


def test_after_a_failover_everybody_has_their_time_again() -> None:
    told = story()
    told.join("a")
    told.join("b")
    told.beat("a")
    told.pass_time(SESSION_MS - 1)
    told.fail_over()
    assert told.timers[("group", GROUP, "session", "b")] == told.now_ms + SESSION_MS
    assert told.timers[("group", GROUP, "rebalance", "a")] == told.now_ms + REBALANCE_TIMEOUT_MS
    told.settle()
    assert [len(told.members[name].owned) for name in "ab"] == [2, 2]


# ---- static members


def test_a_static_member_comes_back_to_its_partitions() -> None:
    told = story()
    told.join("a", instance_id="one")
    told.join("b", instance_id="two")
    told.settle()
    before = told.members["a"].owned
    assert told.leave("a", epoch=-2).member_epoch == -2
    told.beat("b")
    assert told.group.durable.epoch == 2, "nothing is assigned anew meanwhile"

    answer = told.join("c", instance_id="one")
    assert (answer.member_epoch, told.members["c"].owned) == (2, before)
    assert sorted(told.group.durable.members) == ["b", "c"]
    assert not [key for key in told.timers if "a" in str(key[-1:])]


def test_a_static_name_in_use_is_not_given_away() -> None:
    told = story()
    told.join("a", instance_id="one")
    with refused(ErrorCode.UNRELEASED_INSTANCE_ID):
        told.join("b", instance_id="one")
    told.beat("a")


def test_the_former_holder_of_a_static_name_is_fenced() -> None:
    told = story()
    told.join("a", instance_id="one")
    former = told.members["a"]
    told.leave("a", epoch=-2)
    told.join("b", instance_id="one")
    told.members["a"] = former
    with refused(ErrorCode.FENCED_INSTANCE_ID):
        told.beat("a")
    with refused(ErrorCode.FENCED_INSTANCE_ID):
        told.leave("a")


def test_an_unknown_static_name_has_no_heartbeat() -> None:
    told = story()
    told.join("a")
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        told.send(member_id="a", member_epoch=1, instance_id="one")


def test_a_static_name_is_kept_for_a_session() -> None:
    told = story()
    told.join("a", instance_id="one")
    told.leave("a", epoch=-2)
    with refused(ErrorCode.FENCED_MEMBER_EPOCH):
        told.send(member_id="a", member_epoch=1, instance_id="one")
    told.pass_time(SESSION_MS)
    assert told.group.is_empty
    assert not told.group.durable.instances


def test_a_static_member_with_another_subscription_gets_a_new_target() -> None:
    told = story(t=2, u=2)
    told.join("a", instance_id="one")
    told.leave("a", epoch=-2)
    told.join("b", ["u"], instance_id="one")
    told.settle()
    assert told.owned("b") == {"u": [0, 1]}


# ---- subscriptions


def test_a_member_changes_its_topics() -> None:
    told = story(t=2, u=2)
    told.join("a")
    told.beat("a", subscribed_topic_names=["u"])
    told.settle()
    assert told.owned("a") == {"u": [0, 1]}
    assert told.group.subscribed_topics() == {"u"}


def test_what_a_slow_member_no_longer_subscribes_to_is_taken_away_at_once() -> None:
    told = story(t=4, u=2)
    told.join("a", ["t", "u"])
    told.join("b", ["t"])
    told.beat("a")
    assert state_of(told, "a") is MemberState.UNREVOKED_PARTITIONS
    told.beat("a", report=False, subscribed_topic_names=["t"])
    names = {told.topics.topic_name(topic) for topic, _ in told.members["a"].wanted}
    assert names == {"t"}
    told.settle()
    assert [len(told.members[name].owned) for name in "ab"] == [2, 2]


def test_members_vote_for_the_assignor() -> None:
    told = story()
    told.join("a", server_assignor="range")
    assert told.group.describe().assignor_name == "range"
    told.join("b", server_assignor="uniform")
    told.join("c", server_assignor="uniform")
    assert told.group.describe().assignor_name == "uniform"


def test_range_ranges() -> None:
    told = story()
    told.join("a", server_assignor="range")
    told.join("b", server_assignor="range")
    told.settle()
    assert (told.owned("a"), told.owned("b")) == ({"t": [0, 1]}, {"t": [2, 3]})


# ---- describing


def test_a_description_shows_what_members_have_and_should_have() -> None:
    told = story()
    told.join("a", instance_id="one", rack_id="r")
    told.join("b")
    shown = told.group.describe()
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
    told = story()
    told.join("a")
    told.leave("a")
    told.group.check_delete()
    told.journal += told.group.tombstones()
    gone = told.replayed()
    assert gone.state is State.DEAD
    assert told.replayed(compacted=True).state is State.DEAD
    assert vars(gone.durable) | {"is_deleted": False} == vars(
        ConsumerGroup(GROUP, told.settings, told.topics).durable
    )


def test_a_group_with_members_is_not_deleted() -> None:
    told = story()
    told.join("a")
    with refused(ErrorCode.NON_EMPTY_GROUP):
        told.group.check_delete()


# ---- described


def test_a_member_is_described_with_what_it_has_yet_to_give_up() -> None:
    told = story()
    told.join("a")
    told.join("b")
    told.beat("a")
    assert state_of(told, "a") is MemberState.UNREVOKED_PARTITIONS
    first, second = told.group.describe().members
    (assigned,), (target,) = first.assignment.topic_partitions, first.target_assignment.topic_partitions
    assert (first.member_id, assigned.partitions, len(target.partitions)) == ("a", [0, 1, 2, 3], 2)
    assert second.assignment.topic_partitions == []
    assert {member.subscribed_topic_regex for member in (first, second)} == {""}
