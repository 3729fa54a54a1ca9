"""The cluster as the newest metadata has it, and how this broker follows the metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import PAUSE, ROWS_PER_STEP, Collected, gauge

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

NO_LEADER = -1


def collect(broker: Broker) -> Collected:
    partitions = offline = 0
    topics = broker.image.topics
    for topic in topics.values():
        for index, placed in enumerate(topic.partitions):
            if partitions % ROWS_PER_STEP == 0:
                yield PAUSE
            partitions += 1
            held = broker.replicas.get(topic.name, index)
            has_failed_here = held is not None and held.is_leader and held.log.offline
            offline += placed.leader == NO_LEADER or has_failed_here
    prefix = "kafka_controller_kafkacontroller_"
    yield gauge(prefix + "activecontrollercount", "1 on the controller", int(broker.controller.active))
    yield gauge(prefix + "globaltopiccount", "Topics of the cluster", len(topics))
    yield gauge(prefix + "globalpartitioncount", "Partitions of the cluster", partitions)
    yield gauge(prefix + "offlinepartitionscount", "Partitions without a leader that can serve them", offline)
    yield gauge(
        "kafka_server_broker_metadata_metrics_metadata_apply_error_count",
        "Changes of the metadata that a part of this broker failed to take",
        broker.followers.failures,
    )
    yield gauge(
        "barnabas_metadata_followers_behind",
        "Parts of this broker that have not taken the newest metadata yet",
        len(broker.followers.behind),
    )
