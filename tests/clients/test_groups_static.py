"""Static members (group.instance.id): they may restart without a rebalance."""

import time

import pytest
from confluent_kafka import KafkaError
from tests.clients.broker_process import BrokerProcess
from tests.clients.client import BrokerError, wait_until
from tests.clients.confluent_client import ConfluentAdmin
from tests.clients.conftest import Join, MakeTopic
from tests.clients.members import Member, places_of, settle

FENCED_INSTANCE_ID = 82
LIBRARIES = ("confluent-kafka", "kafka-python")


def _two(join: Join, library: str, bootstrap: str, topic: str) -> list[Member]:
    return [
        join(library, bootstrap, topics=(topic,), instance_id=f"instance {name}", session_timeout_ms=30_000)
        for name in "ab"
    ]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_static_member_restarts_without_a_rebalance(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic(4)
    members = _two(join, library, quick_bootstrap, topic)
    settle(members, places_of(topic, 4))
    owned, changes = members[0].owned, len(members[1].changes.calls)
    members[0].leave()
    again = join(
        library, quick_bootstrap, topics=(topic,), instance_id="instance a", session_timeout_ms=30_000
    )
    wait_until(lambda: again.owned == owned, "the member has its partitions again")
    time.sleep(0.6)  # three heartbeats, in which the other member would learn of a rebalance
    assert len(members[1].changes.calls) == changes
    settle([again, members[1]], places_of(topic, 4))


# When an instance of kafka-python is fenced, it joins again: both would fence each other forever.
@pytest.mark.parametrize("library", ["confluent-kafka"])
def test_the_older_of_two_members_with_the_same_name_is_fenced(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic(4)
    older, other = _two(join, library, quick_bootstrap, topic)
    settle([older, other], places_of(topic, 4))
    owned = older.owned
    newer = join(
        library, quick_bootstrap, topics=(topic,), instance_id="instance a", session_timeout_ms=30_000
    )
    wait_until(lambda: newer.owned == owned, "the newer member has the partitions of the older one")
    with pytest.raises(BrokerError) as raised:
        older.ask(lambda consumer: consumer.commit({(topic, 0): (1, "")}))
    # If librdkafka learned of the fencing from a heartbeat, it reports every later error as fatal.
    assert raised.value.code in (FENCED_INSTANCE_ID, KafkaError._FATAL), raised.value
    assert newer.ask(lambda consumer: consumer.committed((topic, 0))) is None
    older.leave()
    settle([newer, other], places_of(topic, 4))


def test_static_members_survive_a_restart_of_the_broker(
    own_quick_broker: BrokerProcess, topic_name: str, join: Join
) -> None:
    """The assignment is in the journal, so a member that restarts finds it after a kill -9 too."""
    ConfluentAdmin(own_quick_broker.bootstrap).create_topic(topic_name, 4)
    members = _two(join, "confluent-kafka", own_quick_broker.bootstrap, topic_name)
    settle(members, places_of(topic_name, 4))
    owned, changes = [member.owned for member in members], len(members[1].changes.calls)
    members[0].leave()
    own_quick_broker.restart(9)
    again = join(
        "confluent-kafka",
        own_quick_broker.bootstrap,
        topics=(topic_name,),
        instance_id="instance a",
        session_timeout_ms=30_000,
    )
    wait_until(lambda: [again.owned, members[1].owned] == owned, "both members have their partitions again")
    assert len(members[1].changes.calls) == changes
