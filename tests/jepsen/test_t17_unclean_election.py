"""A replica that is out of sync is made the leader on purpose, so records are lost: that is reported, and
consumers that have read the lost records are told that the log was truncated. None reads on as if nothing had
happened."""

import re
import urllib.request
from random import Random
from typing import Any, NamedTuple, Protocol

import confluent_kafka
import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.end_state import check_replicas
from tests.jepsen.partitions import partition_info
from tests.jepsen.probes import write
from tests.support.raw_calls import FETCH
from tests.support.raw_client import RawClient

import barnabas
from barnabas.client.admin import (
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    NewTopic,
)
from barnabas.client.errors import LogTruncationError
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.testing.ports import free_ports
from barnabas.wire.messages import fetch, offset_for_leader_epoch

pytestmark = pytest.mark.faults

FETCH_VERSION, EPOCH_VERSION = 12, 4
UNCLEAN_ELECTIONS = "kafka_controller_controllerstats_uncleanleaderelections_total"
PATIENCE_SECONDS = 30.0
METRICS_PORTS = dict(enumerate(free_ports(3), start=1))


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    ports = {id_: {"barnabas.metrics.port": str(port)} for id_, port in METRICS_PORTS.items()}
    return {"broker_overrides": ports}


class Election(NamedTuple):
    """What happens in one round: `behind` lacks the last `lost` records, and gets `new` ones as leader."""

    place: TopicPartition
    leader: int
    behind: int
    kept: int
    lost: int
    new: int

    def value(self, what: str, number: int) -> bytes:
        return f"{what} {number}".encode()

    @property
    def end(self) -> int:
        """The end of the log that is lost."""
        return self.kept + self.lost


@pytest.fixture
def election(system: FaultyCluster, seed: int) -> Election:
    """A topic with two replicas of which one lacks records. Both are down afterwards."""
    chance = Random(seed)
    leader, behind = chance.sample(sorted(system.brokers), 2)
    place = TopicPartition(f"unclean-{seed}-{chance.randrange(10**9)}", 0)
    lost = chance.randint(1, 5)
    # Fewer new records than lost ones, as many, or more: then the old positions are inside the new log.
    new = max(1, lost + chance.choice((-1, 0, 3)))
    made = Election(place, leader, behind, chance.randint(1, 5), lost, new)
    with system.admin() as admin:
        configs = {"min.insync.replicas": "1"}
        admin.create_topics([NewTopic(place.topic, assignments={0: [leader, behind]}, configs=configs)])
    system.wait_until_in_sync(place.topic)
    write_values(system, made, "kept", made.kept)
    if chance.random() < 0.5:
        system.stop(behind)
    else:
        system.kill(behind)
    write_values(system, made, "lost", made.lost)
    return made


def write_values(system: FaultyCluster, made: Election, what: str, count: int) -> None:
    for number in range(count):
        write(system, made.place.topic, made.value(what, number))


def lead_unclean(system: FaultyCluster, made: Election, by_config: bool) -> None:
    """The leader dies, the replica that is behind returns, and is elected."""
    system.kill(made.leader)
    system.restart(made.behind)
    system.wait_until(lambda: system.leader_of(made.place) == -1, "the leader is missed")
    before = unclean_elections(system)
    with system.admin() as admin:
        if by_config:
            topic = ConfigResource(ConfigResourceType.TOPIC, made.place.topic)
            change = AlterConfigOp("unclean.leader.election.enable", "true")
            admin.incremental_alter_configs({topic: [change]})
        else:
            outcome = admin.elect_leaders(ElectionType.UNCLEAN, [made.place])
            assert outcome == {made.place: None}
    system.wait_until(lambda: system.leader_of(made.place) == made.behind, f"broker {made.behind} leads")
    check_reported(system, made, before)


def unclean_elections(system: FaultyCluster) -> int:
    return sum(
        int(float(line.split()[1]))
        for id_, broker in system.brokers.items()
        if broker.is_answering
        for line in metrics(METRICS_PORTS[id_]).splitlines()
        if line.startswith(UNCLEAN_ELECTIONS)
    )


def metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_SECONDS) as answer:
        return str(answer.read(), "utf-8")


def check_reported(system: FaultyCluster, made: Election, before: int) -> None:
    """By a metric, and by a warning of the controller."""
    assert unclean_elections(system) == before + 1
    warning = re.compile(rf"WARNING .*unclean.*{re.escape(str(made.place))}\b.*broker {made.behind}\b")
    outputs = "\n".join(broker.output() for broker in system.brokers.values())
    assert warning.search(outputs), "no broker has printed a warning"


# ---- consumers that have read what is lost


class Reader(Protocol):
    def read(self, count: int) -> list[tuple[int, bytes]]: ...
    def close(self) -> None: ...


class OurReader:
    def __init__(self, system: FaultyCluster, made: Election, reset: str) -> None:
        self._consumer = barnabas.Consumer(
            bootstrap_servers=system.bootstrap, auto_offset_reset=reset, reconnect_backoff_max_ms=300
        )
        self._consumer.assign([made.place])
        self._consumer.seek(made.place, 0)

    def read(self, count: int) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        while len(found) < count and (polled := self._consumer.poll(PATIENCE_SECONDS)):
            found += [(record.offset, record.value or b"") for record in polled]
        return found

    def truncation(self) -> LogTruncationError:
        with pytest.raises(LogTruncationError) as raised:
            self.read(1)
        return raised.value

    def close(self) -> None:
        self._consumer.close()


class ConfluentReader:
    def __init__(self, system: FaultyCluster, made: Election, reset: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": system.bootstrap,
                "group.id": f"{made.place.topic}-{reset}",
                "auto.offset.reset": reset,
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 300,
                "topic.metadata.refresh.interval.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer.assign([confluent_kafka.TopicPartition(*made.place, 0)])

    def read(self, count: int) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        while len(found) < count and (message := self._consumer.poll(PATIENCE_SECONDS)) is not None:
            error = message.error()
            if error is None:
                found.append((message.offset() or 0, message.value() or b""))
            elif error.code() in TRUNCATIONS:
                raise confluent_kafka.KafkaException(error)
        return found

    def truncation(self) -> None:
        with pytest.raises(confluent_kafka.KafkaException) as raised:
            self.read(1)
        assert raised.value.args[0].code() in TRUNCATIONS

    def close(self) -> None:
        self._consumer.close()


TRUNCATIONS = (confluent_kafka.KafkaError._LOG_TRUNCATION, confluent_kafka.KafkaError._AUTO_OFFSET_RESET)


def test_a_replica_out_of_sync_is_elected_on_purpose(
    system: FaultyCluster, election: Election, seed: int
) -> None:
    old_epoch = partition_info(system, election.place).leader_epoch
    strict, strict_confluent = OurReader(system, election, "none"), ConfluentReader(system, election, "error")
    lenient: list[Reader] = [kind(system, election, "earliest") for kind in (OurReader, ConfluentReader)]
    readers: list[Reader] = [strict, strict_confluent, *lenient]
    for reader in readers:
        old = reader.read(election.end)
        assert old == numbered(election, "kept", 0, election.kept) + numbered(
            election, "lost", election.kept, election.lost
        )
    lead_unclean(system, election, by_config=seed % 2 == 0)
    write_values(system, election, "new", election.new)
    check_answers(system, election, old_epoch)
    new = numbered(election, "new", election.kept, election.new)
    error = strict.truncation()
    assert error.offsets == {election.place: election.end}
    assert error.divergent == {election.place: election.kept}
    strict_confluent.truncation()
    for reader in lenient:
        # From where the logs differ, or from the beginning: nothing new is skipped.
        found = reader.read(election.new)
        if found[0][0] == 0:
            found = (found + reader.read(election.kept + election.new - len(found)))[election.kept :]
        assert found == new
    for reader in readers:
        reader.close()
    system.restart(election.leader)
    system.wait_until_in_sync(election.place.topic)
    directories = {id_: broker.data_dir for id_, broker in system.brokers.items()}
    assert list(check_replicas(directories, {election.place: election.kept + election.new})) == []


def numbered(made: Election, what: str, offset: int, count: int) -> list[tuple[int, bytes]]:
    return [(offset + number, made.value(what, number)) for number in range(count)]


# ---- what the new leader answers


def check_answers(system: FaultyCluster, made: Election, old_epoch: int) -> None:
    """To somebody who has read the log of the old leader to its end."""
    with RawClient("127.0.0.1", system.brokers[made.behind].port) as client:
        answer = epoch_end(client, made.place, old_epoch)
        assert (answer.error_code, answer.end_offset) == (0, made.kept)
        told = fetched(client, made, last_fetched_epoch=old_epoch)
        assert told.error_code == 0 and not told.records
        assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (old_epoch, made.kept)
        fenced = fetched(client, made, current_leader_epoch=old_epoch)
        assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH and not fenced.records


def epoch_end(client: RawClient, place: TopicPartition, epoch: int) -> Any:
    part = offset_for_leader_epoch.OffsetForLeaderPartition(partition=place.partition, leader_epoch=epoch)
    topic = offset_for_leader_epoch.OffsetForLeaderTopic(topic=place.topic, partitions=[part])
    request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])
    answer = client.call(offset_for_leader_epoch.API_KEY, EPOCH_VERSION, request)
    return answer.topics[0].partitions[0]


def fetched(
    client: RawClient, made: Election, last_fetched_epoch: int = -1, current_leader_epoch: int = -1
) -> fetch.PartitionData:
    part = fetch.FetchPartition(
        partition=0,
        fetch_offset=made.end,
        last_fetched_epoch=last_fetched_epoch,
        current_leader_epoch=current_leader_epoch,
        partition_max_bytes=1 << 20,
    )
    topic = fetch.FetchTopic(topic=made.place.topic, partitions=[part])
    answer = client.call(FETCH, FETCH_VERSION, fetch.FetchRequest(max_wait_ms=0, topics=[topic]))
    data: fetch.PartitionData = answer.responses[0].partitions[0]
    return data
