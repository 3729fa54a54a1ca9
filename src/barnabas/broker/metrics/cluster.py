"""The cluster as the newest metadata has it, and how this broker follows the metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import PAUSE, ROWS_PER_STEP, Collected, counter, gauge

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

NO_LEADER = -1


def collect(broker: Broker) -> Collected:
    partitions = offline = unbalanced = moving = 0
    topics = broker.image.topics
    for topic in topics.values():
        for index, placed in enumerate(topic.partitions):
            if partitions % ROWS_PER_STEP == 0:
                yield PAUSE
            partitions += 1
            held = broker.replicas.get(topic.name, index)
            has_failed_here = held is not None and held.is_leader and held.log.offline
            offline += placed.leader == NO_LEADER or has_failed_here
            unbalanced += placed.leader != placed.replicas[0]
            moving += placed.is_reassigning
    prefix = "kafka_controller_kafkacontroller_"
    yield gauge(prefix + "activecontrollercount", "1 on the controller", int(broker.controller.active))
    yield gauge(prefix + "globaltopiccount", "Topics of the cluster", len(topics))
    yield gauge(prefix + "globalpartitioncount", "Partitions of the cluster", partitions)
    yield gauge(prefix + "offlinepartitionscount", "Partitions without a leader that can serve them", offline)
    yield gauge(
        prefix + "preferredreplicaimbalancecount", "Partitions not led by their first replica", unbalanced
    )
    yield gauge("barnabas_reassigning_partitions", "Partitions that are moving to other brokers", moving)
    yield from _controller(broker)
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


def _controller(broker: Broker) -> Collected:
    brokers, controller = broker.image.brokers.values(), broker.controller
    fenced = sum(other.fenced for other in brokers)
    yield gauge(
        "barnabas_controller_id",
        "The broker that is the controller by the newest metadata; -1 if there is none",
        broker.image.controller_id,
    )
    yield counter(
        "barnabas_broker_sessions_lost",
        "Sessions that this broker lost, each followed by a new registration",
        broker.life.sessions_lost,
    )
    prefix = "kafka_controller_kafkacontroller_"
    yield gauge(prefix + "activebrokercount", "Registered brokers that are not fenced", len(brokers) - fenced)
    yield gauge(prefix + "fencedbrokercount", "Registered brokers that are fenced", fenced)
    yield gauge(
        "barnabas_controller_queue_length",
        "Changes of the metadata that wait in this controller",
        controller.queue_length,
    )
    yield counter(
        "barnabas_controller_leader_elections",
        "Leaders that this controller has elected or removed",
        controller.elections.leaders,
    )
    yield counter(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "Leaders that this controller has elected although they were out of sync",
        controller.elections.unclean,
    )
