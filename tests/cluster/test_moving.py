"""Partitions that move between brokers while producers write; the tools and what they print."""

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tests.cluster.conftest import MakeTopic
from tests.cluster.reading import check_order, check_written, values_of
from tests.cluster.writers import Writers

from barnabas.cli.main import main
from barnabas.client.admin import NewTopic
from barnabas.client.types import TopicPartition
from barnabas.testing import Cluster


def run(cluster: Cluster, command: str, *arguments: str) -> str:
    """What the command prints; it must succeed."""
    words = command.split()
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main([*words, *arguments, "--bootstrap-server", cluster.bootstrap])
    assert code == 0, printed.getvalue()
    return printed.getvalue()


def status(cluster: Cluster) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run(cluster, "cluster status", "--json"))
    return document


def replicas_of(cluster: Cluster, topic: str) -> list[int]:
    with cluster.admin() as admin:
        return [node.id for node in admin.describe_topics([topic])[topic].partitions[0].replicas]


def written(path: Path, topic: str, replicas: Sequence[int]) -> str:
    entry = {"topic": topic, "partition": 0, "replicas": list(replicas)}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    return str(path)


def made_on(cluster: Cluster, topic: str, replicas: Sequence[int], configs: dict[str, str]) -> str:
    with cluster.admin() as admin:
        admin.create_topics([NewTopic(topic, assignments={0: replicas}, configs=configs)])
    cluster.wait_until_in_sync(topic)
    return topic


def test_a_partition_moves_to_other_brokers_while_producers_write(cluster: Cluster, tmp_path: Path) -> None:
    topic = made_on(cluster, "moving", [1, 2], {"min.insync.replicas": "1"})
    moves = written(tmp_path / "moves.json", topic, [3, 2])
    with Writers(cluster.bootstrap, topic) as writers:
        writers.wait_for(20)
        started = run(
            cluster,
            "reassign-partitions --execute --throttle 100000000 --reassignment-json-file",
            moves,
        )
        assert "Successfully started partition reassignment for moving-0" in started
        cluster.wait_until(
            lambda: (
                "is completed" in run(cluster, "reassign-partitions --verify --reassignment-json-file", moves)
            ),
            "the move is completed",
        )
        writers.wait_for(20)
        cluster.wait_until(lambda: cluster.leader_of((topic, 0)) in (2, 3), "a new replica leads")
        writers.wait_for(20)
    assert replicas_of(cluster, topic) == [3, 2]
    values = values_of("barnabas", cluster.bootstrap, topic, 0)
    check_written(values, writers.acknowledged)
    check_order(values)
    cluster.wait_until(
        lambda: not (cluster.brokers[1].data_dir / f"{topic}-0").exists(), "broker 1 has removed its copy"
    )
    assert "throttled" not in run(cluster, f"configs --describe --topic {topic}")


def test_a_move_to_a_broker_that_is_down_waits_and_can_be_cancelled(cluster: Cluster, tmp_path: Path) -> None:
    topic = made_on(cluster, "waiting", [1, 2], {"min.insync.replicas": "1"})
    moves = written(tmp_path / "moves.json", topic, [1, 3])
    cluster.stop(3)
    partition = TopicPartition(topic, 0)
    with cluster.admin() as admin:
        admin.alter_partition_reassignments({partition: [1, 3]})
        move = admin.list_partition_reassignments()[partition]
    assert (move.adding_replicas, move.removing_replicas) == ((3,), (2,))
    assert f"{topic}-0: replicas: 1,3,2. adding: 3. removing: 2." in run(
        cluster, "reassign-partitions --list"
    )
    (moving,) = status(cluster)["reassignments"]
    assert (moving["topic"], moving["adding"]) == (topic, [3])
    cancelled = run(cluster, "reassign-partitions --cancel --reassignment-json-file", moves)
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in cancelled
    assert replicas_of(cluster, topic) == [1, 2]
    assert run(cluster, "reassign-partitions --list") == "No partition reassignments found.\n"


def test_what_is_missing_is_shown_while_a_broker_is_down(cluster: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic(1, {"min.insync.replicas": "2"})
    healthy = status(cluster)
    assert [broker["state"] for broker in healthy["brokers"]] == ["up", "up", "up"]
    alone = made_on(cluster, f"alone-{topic}", [2], {"min.insync.replicas": "1"})
    cluster.stop(2)
    down = status(cluster)
    assert {broker["id"]: broker["state"] for broker in down["brokers"]}[2] in ("fenced", "down")
    assert alone in [each["topic"] for each in down["offline"]]
    assert topic in [each["topic"] for each in down["underReplicated"]]
    assert topic in [each["topic"] for each in down["atMinIsr"]]
    assert f"Topic: {alone}\t" in run(cluster, "topics --describe --unavailable-partitions")
    assert f"Topic: {topic}\t" in run(cluster, "topics --describe --under-replicated-partitions")
    assert f"Topic: {topic}\t" in run(cluster, "topics --describe --at-min-isr-partitions")
    assert f"Topic: {alone}\t" in run(cluster, "topics --describe --under-min-isr-partitions")
    cluster.restart(2)
    cluster.wait_until_in_sync(topic)
    cluster.wait_until(lambda: not status(cluster)["offline"], "no partition is offline")


def test_a_topic_that_changes_while_a_broker_is_down(cluster: Cluster, make_topic: MakeTopic) -> None:
    """Deletion, a new topic of the same name, and more partitions are caught up when the broker returns."""
    grown, deleted = make_topic(1), make_topic(1)
    # Not stop(): as in Kafka, a broker that was shut down cleanly gets no new replicas.
    cluster.kill(3)
    with cluster.admin() as admin:
        admin.create_partitions({grown: 3})
        admin.delete_topics([deleted])
        # Not described: the other broker may not have heard of the new topic yet.
        new_id = admin.create_topics([NewTopic(deleted, 2, 2)])[deleted].topic_id
    cluster.restart(3)
    cluster.wait_until_in_sync(grown)
    with cluster.admin() as admin:
        assert admin.describe_topics([deleted])[deleted].topic_id == new_id
        assert len(admin.describe_topics([grown])[grown].partitions) == 3
    held = {path.name for path in cluster.brokers[3].data_dir.glob(f"{grown}-*")}
    cluster.wait_until(
        lambda: (
            {path.name for path in cluster.brokers[3].data_dir.glob(f"{grown}-*")}
            == {f"{grown}-{number}" for number in range(3)}
        ),
        f"broker 3 has all partitions of {grown}, not only {held}",
    )
