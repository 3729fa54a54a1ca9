"""Strays: partitions on disk that the metadata does not know.

They were written by a Kafka broker, or belong to a topic whose deletion was interrupted. With
barnabas.adopt.log.dirs they become topics of this cluster; otherwise their directories are renamed. They are
never removed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.metadata.adoption import FoundTopic, FoundTopics

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.log.manager import LogManager
    from barnabas.metadata.image import MetadataImage

logger = logging.getLogger(__name__)


async def adopt_strays(broker: Broker) -> None:
    """Only for a broker that is alone, which is its own controller."""
    logs, image = broker.logs, broker.image
    unknown: dict[str, FoundTopic] = {}
    for log in logs.logs():
        topic = log.partition.topic
        if topic not in image.topics:
            stray = unknown.setdefault(topic, FoundTopic(topic, log.topic_id, {}))
            stray.epochs[log.partition.partition] = log.leader_epochs.latest
    if unknown:
        topics = FoundTopics(list(unknown.values()), logs.highest_producer_id)
        adopted = await broker.controller.adopt_topics(topics, broker.id)
        logger.info("adopted %d topics found on disk: %s", len(adopted), ", ".join(sorted(adopted)))


def set_strays_aside(logs: LogManager, image: MetadataImage) -> None:
    strays = [log.partition for log in logs.logs() if image.partition(*log.partition) is None]
    for partition in strays:
        path = logs.set_aside(partition)
        logger.warning(
            "%s belongs to no topic of this cluster; its directory is now %s", partition, path.name
        )
