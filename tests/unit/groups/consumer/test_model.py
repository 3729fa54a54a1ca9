"""A consumer group under members that come, go, fall silent, lag and lose answers, and topics that change.

Always: no two members have the same partition; epochs do not go back; a replay rebuilds the same state.
In the end: when all keep sending heartbeats, everything is assigned once, and the group is stable."""

import re
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.consumer_group_story import ConsumerGroupStory, FakeTopics

from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.consumer.group import ConsumerGroup, State
from barnabas.groups.settings import GroupSettings

TOPICS = ("t1", "t2", "other")
SUBSCRIPTIONS = st.lists(st.sampled_from(TOPICS), max_size=3, unique=True)
REGEXES = st.sampled_from(["", "t.*", "t[12]|other", "nothing"])
ASSIGNORS = st.sampled_from([None, "uniform", "range"])


def durable(group: ConsumerGroup) -> dict[str, Any]:
    return dict(vars(group.durable))


class ConsumerGroupModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.story = ConsumerGroupStory(FakeTopics(t1=3, t2=2))
        self.made = 0
        self.group_epoch = 0
        self.epochs: dict[str, int] = {}

    @initialize(policy=st.sampled_from(["bidirectional", "disabled"]))
    def begin(self, policy: Any) -> None:
        self.story = ConsumerGroupStory(FakeTopics(t1=3, t2=2), GroupSettings(migration_policy=policy))

    # ---- what happens

    @rule(topics=SUBSCRIPTIONS, regex=REGEXES, assignor=ASSIGNORS, is_static=st.booleans())
    def a_member_joins(self, topics: list[str], regex: str, assignor: str | None, is_static: bool) -> None:
        if len(self.story.members) >= 5:
            return
        self.made += 1
        name = f"m{self.made}"
        self.story.join(
            name,
            topics,
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            instance_id=f"i-{name}" if is_static else None,
        )

    @precondition(lambda self: self.story.members)
    @rule(data=st.data(), answer_comes=st.booleans(), is_quick=st.booleans())
    def a_member_sends_a_heartbeat(self, data: st.DataObject, answer_comes: bool, is_quick: bool) -> None:
        self._beat(self._any(data), adopt=answer_comes, report=is_quick)

    @precondition(lambda self: self.story.members)
    @rule(data=st.data(), topics=SUBSCRIPTIONS, regex=REGEXES)
    def a_member_changes_its_subscription(self, data: st.DataObject, topics: list[str], regex: str) -> None:
        name = self._any(data)
        self._beat(name, subscribed_topic_names=topics, subscribed_topic_regex=regex)
        if name in self.story.members:
            names = {self.story.topics.topic_name(topic) for topic, _ in self.story.members[name].target}
            assert names <= self._subscribed()

    @precondition(lambda self: len(self.story.members) > 1)
    @rule(data=st.data(), says_so=st.booleans())
    def a_member_goes(self, data: st.DataObject, says_so: bool) -> None:
        name = self._any(data)
        if says_so:
            self.story.leave(name)
        else:
            del self.story.members[name]

    @precondition(lambda self: any(each.instance_id for each in self.story.members.values()))
    @rule(data=st.data())
    def a_static_member_restarts(self, data: st.DataObject) -> None:
        static = sorted(name for name, each in self.story.members.items() if each.instance_id)
        name = data.draw(st.sampled_from(static))
        instance_id = self.story.members[name].instance_id
        self.story.leave(name, epoch=-2)
        self.made += 1
        self.story.join(f"m{self.made}", ["t1"], instance_id=instance_id, subscribed_topic_regex="")

    @rule(duration_ms=st.integers(1, 15_000))
    def time_passes(self, duration_ms: int) -> None:
        self.story.pass_time(duration_ms)
        self._forget_fenced()

    @rule(count=st.integers(1, 5), name=st.sampled_from(TOPICS))
    def a_topic_comes_or_grows(self, count: int, name: str) -> None:
        before = self.story.topics.partition_count(name)
        if before is None:
            self.story.topics.create(name, count)
        else:
            self.story.topics.grow(name, max(before, count))
        self.story.topics_changed()

    @rule(name=st.sampled_from(TOPICS))
    def a_topic_goes(self, name: str) -> None:
        if self.story.topics.partition_count(name) is not None:
            self.story.topics.delete(name)
            self.story.topics_changed()

    @rule()
    def the_coordinator_fails_over(self) -> None:
        self.story.fail_over()

    # ---- invariants

    @invariant()
    def nobody_shares_a_partition(self) -> None:
        held: set[tuple[bytes, int]] = set()
        for member in self.story.group.durable.members.values():
            for assignment in (member.assigned, member.revoking):
                mine = {(topic, number) for topic, numbers in assignment.items() for number in numbers}
                assert not held & mine
                held |= mine

    @invariant()
    def members_own_what_the_group_knows_of(self) -> None:
        """What clients really read: the answers they got, not the state."""
        read: set[tuple[bytes, int]] = set()
        for name, client in self.story.members.items():
            member = self.story.group.durable.members[name]
            known = {
                (topic, number)
                for assignment in (member.assigned, member.revoking)
                for topic, numbers in assignment.items()
                for number in numbers
            }
            assert client.owned <= known
            assert not client.owned & read
            read |= client.owned

    @invariant()
    def epochs_do_not_go_back(self) -> None:
        state = self.story.group.durable
        assert state.epoch >= self.group_epoch
        assert state.target_epoch <= state.epoch
        self.group_epoch = state.epoch
        for member_id, member in state.members.items():
            assert member.epoch == -2 or member.epoch >= self.epochs.get(member_id, 0)
            assert member.epoch <= state.epoch
            self.epochs[member_id] = max(member.epoch, self.epochs.get(member_id, 0))

    @invariant()
    def what_members_subscribe_to_is_known(self) -> None:
        assert self._subscribed() <= self.story.group.subscribed_topics()

    @invariant()
    def a_replay_rebuilds_the_state(self) -> None:
        assert durable(self.story.replayed()) == durable(self.story.group)
        assert durable(self.story.replayed(compacted=True)) == durable(self.story.group)

    def teardown(self) -> None:
        """Members that are gone are removed. With the others the group gets stable, and all is assigned."""
        story = self.story
        for _ in range(10):
            for name in list(story.members):
                self._beat(name)
            story.pass_time(10_000)
            self._forget_fenced()
        story.settle()
        assert story.group.state is (State.STABLE if story.members else State.EMPTY)
        owners = [partition for member in story.members.values() for partition in member.owned]
        subscribed = self._subscribed()
        assert story.group.subscribed_topics() & set(story.topics.names()) == subscribed
        expected = {
            partition
            for partition in story.topics.partitions()
            if story.topics.topic_name(partition[0]) in subscribed
        }
        assert len(owners) == len(set(owners))
        assert set(owners) == expected

    # ---- helpers

    def _subscribed(self) -> set[str]:
        """The existing topics in the last subscription that each member sent."""
        subscriptions = [member.subscription for member in self.story.members.values()]
        names = {name for each in subscriptions for name in each["subscribed_topic_names"]}
        regexes = {
            each["subscribed_topic_regex"] for each in subscriptions if each.get("subscribed_topic_regex")
        }
        existing = set(self.story.topics.names())
        return {name for name in existing if name in names or any(re.fullmatch(r, name) for r in regexes)}

    def _any(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.story.members)))

    def _beat(self, name: str, **options: Any) -> None:
        """A fenced member gives everything up; in this model it does not come back."""
        try:
            self.story.beat(name, **options)
        except KafkaError as error:
            assert error.code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
            del self.story.members[name]

    def _forget_fenced(self) -> None:
        known = self.story.group.durable.members
        for name in [name for name in self.story.members if name not in known]:
            del self.story.members[name]


TestConsumerGroupModel = ConsumerGroupModel.TestCase
TestConsumerGroupModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_five_members_share_ten_partitions(name: str) -> None:
    story = ConsumerGroupStory(FakeTopics(t=10))
    for number in range(5):
        story.join(f"m{number}", server_assignor=name)
    story.settle()
    assert [len(member.owned) for member in story.members.values()] == [2] * 5
