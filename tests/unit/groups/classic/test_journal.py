"""A classic group in the journal: what is written, what a replay gives back, and how it is converted."""

from dataclasses import replace

from tests.support.group_story import GROUP, GroupStory, subscription, value_of

from barnabas.coordination.step import Step
from barnabas.errors import ErrorCode
from barnabas.groups.classic.group import ClassicGroup, ClientInfo, Member, downgrade_record
from barnabas.groups.classic.members import Protocol
from barnabas.groups.record_schemas import GroupMetadataValue, MemberMetadata
from barnabas.groups.settings import GroupSettings

NONE = ErrorCode.NONE


def test_a_rebalance_writes_one_record() -> None:
    story = GroupStory().stable("a", "b")
    (record,) = story.journal
    value = value_of(record)
    assert value is not None
    assert (value.generation, value.protocol_type, value.protocol) == (1, "consumer", "range")
    assert value.leader == story["a"].member_id
    assert [
        (member.member_id, member.client_id, member.client_host, member.subscription, member.assignment)
        for member in value.members
    ] == [(story[name].member_id, name, "/10.0.0.1", subscription("orders"), name.encode()) for name in "ab"]
    assert {(member.session_timeout, member.rebalance_timeout) for member in value.members} == {
        (10_000, 60_000)
    }


def test_heartbeats_and_running_rebalances_write_nothing() -> None:
    story = GroupStory().stable("a")
    story.enter("b")
    story.heartbeat("a")
    story.join("a")
    assert len(story.journal) == 1


def test_another_coordinator_has_the_same_group() -> None:
    story = GroupStory().stable("a", "b")
    assert story.replayed().describe() == story.group.describe()
    assert story.replayed().subscribed_topics() == frozenset({"orders"})
    story.fail_over()
    assert story.heartbeat("a") is story.heartbeat("b") is NONE
    assert story.commit("b") is NONE
    synced = story.sync("b")
    assert synced is not None and synced.error_code == NONE


def test_a_replay_forgets_what_older_records_say() -> None:
    both = {"sticky": subscription("orders"), "range": subscription("bills")}
    story = GroupStory().stable("a", protocols=both)
    story.enter("b", protocols={"range": subscription("bills")})
    story.rejoin_all()
    story.sync_all()
    assert story.replayed().describe() == story.group.describe()
    assert story.replayed().subscribed_topics() == frozenset({"bills"})


def test_after_a_failover_every_member_has_a_session_timeout_to_come_back() -> None:
    story = GroupStory().stable("a", "b")
    story.fail_over()
    assert story.time_left_ms("session", "a") == story.time_left_ms("session", "b") == 10_000
    story.pass_time(10_000, heartbeats=["b"])
    assert story.member_names == {"b"}


def test_a_running_rebalance_is_lost_in_a_failover_and_begins_again() -> None:
    story = GroupStory().stable("a")
    story.enter("b")
    story.join("a")
    assert story.group.generation == 2
    story.fail_over()
    assert story.group.generation == 1
    assert story.heartbeat("a") is ErrorCode.ILLEGAL_GENERATION
    assert story.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID
    story["b"].member_id = ""
    story.enter("b")
    story.join("a")
    story.sync_all()
    assert story.member_names == {"a", "b"}


def test_a_group_that_became_too_large_is_rebalanced_when_it_is_loaded() -> None:
    story = GroupStory().stable("a", "b", "c")
    story.settings = GroupSettings(max_size=2)
    story.fail_over()
    assert story.group.state_name == "PreparingRebalance"
    story.join("c")
    story.join("a")
    refused = story.join("b")
    assert refused is not None and refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert story.member_names == {"a", "c"}


def test_records_of_version_0_have_one_timeout() -> None:
    group = ClassicGroup(GROUP, GroupSettings())
    group.apply(
        GroupMetadataValue(
            protocol_type="consumer",
            generation=4,
            protocol="range",
            leader="m",
            members=[MemberMetadata(member_id="m", session_timeout=7000, subscription=subscription("x"))],
        )
    )
    (member,) = group.members
    assert member.rebalance_timeout_ms == 7000
    assert group.state_name == "Stable"


def test_a_group_without_a_record_can_be_dropped() -> None:
    story = GroupStory()
    assert story.group.is_unused
    story.join("a")
    assert not story.group.is_unused
    story.join("a")
    assert not story.group.is_unused
    story.rejoin_all()
    story.leave("a")
    assert story.group.is_empty
    assert not story.group.is_unused


def test_the_tombstone_is_for_the_groups_record() -> None:
    story = GroupStory().stable("a")
    (tombstone,) = story.group.tombstones()
    assert (tombstone.key, tombstone.value) == (story.journal[0].key, None)


def test_only_a_stable_group_shows_its_members_metadata() -> None:
    story = GroupStory().stable("a")
    described = story.group.describe()
    assert (described.group_state, described.protocol_type, described.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (member,) = described.members
    assert (member.client_id, member.client_host) == ("a", "/10.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (subscription("orders"), b"a")
    story.enter("b", instance_id="bee")
    described = story.group.describe()
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert {member.member_metadata for member in described.members} == {b""}
    assert [member.group_instance_id for member in described.members] == [None, "bee"]


# Other kinds of groups


def test_parked_calls_are_refused_when_the_group_moves_away() -> None:
    story = GroupStory().stable("a", "b")
    story.join("b", protocols={"range": subscription("bills")})
    story.join("p")
    step = story.group.refuse_waiting(ErrorCode.NOT_COORDINATOR, 0)
    ((waiter, answer),) = step.answers
    assert waiter is story["b"].waiting
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert answer.member_id == story["b"].member_id
    assert ("group", GROUP, "pending", story["p"].member_id) in step.cancelled
    assert ("group", GROUP, "session", story["a"].member_id) in step.cancelled
    assert story.group.state_name == "PreparingRebalance", "it is for the tombstone to end it"


def test_an_export_is_a_copy_without_waiters() -> None:
    story = GroupStory().stable("a", "b")
    story.join("b", protocols={"range": subscription("bills")})
    export = story.group.export()
    assert [(m.id, m.assignment, m.join) for m in export.members] == [
        (story["a"].member_id, b"a", None),
        (story["b"].member_id, b"b", None),
    ]
    assert export.generation.number == 1
    assert export.generation.leader == story["a"].member_id
    export.members[0].assignment = b"changed"
    assert story.group.members[0].assignment == b"a"


def test_a_downgraded_group_goes_on_with_its_members() -> None:
    story = GroupStory()
    protocols = (Protocol("sticky", subscription("orders")), Protocol("range", subscription("orders")))
    one = Member("m1", None, ClientInfo("c1", "/h"), 10_000, 60_000, protocols, b"0")
    two = replace(one, id="m2", instance_id="two", assignment=b"1", protocols=protocols[1:])
    record = downgrade_record(GROUP, 17, [one, two], story.clock.now_ms())
    story.journal.append(record)
    story.fail_over()
    assert story.group.generation == 17
    known = [replace(member, protocols=protocols[1:]) for member in (one, two)]
    assert story.group.export().members == tuple(known)
    # The broker may have died before that: a coordinator that loads the group makes all members join again.
    assert story.group.state_name == "PreparingRebalance"
    story.person("m1", member_id="m1", generation=17, protocols=dict(protocols))
    assert story.heartbeat("m1") is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_downgraded_group_begins_a_rebalance() -> None:
    story = GroupStory()
    protocols = (Protocol("range", subscription("orders")),)
    one = Member("m1", None, ClientInfo("c1", "/h"), 10_000, 60_000, protocols, b"0")
    story.run(Step(None, [downgrade_record(GROUP, 17, [one], story.clock.now_ms())]))
    assert (story.group.state_name, story.group.leader) == ("Stable", "m1")
    story.person("m1", member_id="m1", generation=17, protocols=dict(protocols))
    assert story.heartbeat("m1") is NONE
    story.run(story.group.rebalance(story.clock.now_ms()))
    assert story.heartbeat("m1") is ErrorCode.REBALANCE_IN_PROGRESS
