"""Strays: partitions on disk that the metadata does not know.

They were written by a Kafka broker, or belong to a topic whose deletion was interrupted. With
barnabas.adopt.log.dirs they become topics of this cluster; otherwise their directories are renamed. They are
never removed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.metadata.adoption import FoundTopic, FoundTopics

if TYPE_CHECKING:
    from barnabas.log.manager import LogManager
    from barnabas.metadata.controller import Controller
    from barnabas.metadata.image import MetadataImage

logger = logging.getLogger(__name__)


async def adopt_strays(
    logs: LogManager, image: MetadataImage, controller: Controller, broker_id: int
) -> None:
    unknown: dict[str, FoundTopic] = {}
    for log in logs.logs():
        topic = log.partition.topic
        if topic not in image.topics:
            stray = unknown.setdefault(topic, FoundTopic(topic, log.topic_id, {}))
            stray.epochs[log.partition.partition] = log.leader_epochs.latest
    if unknown:
        topics = FoundTopics(list(unknown.values()), logs.highest_producer_id)
        adopted = await controller.adopt_topics(topics, broker_id)
        logger.info("adopted %d topics found on disk: %s", len(adopted), ", ".join(sorted(adopted)))


def set_strays_aside(logs: LogManager, image: MetadataImage) -> None:
    strays = [log.partition for log in logs.logs() if image.partition(*log.partition) is None]
    for partition in strays:
        path = logs.set_aside(partition)
        logger.warning(
            "%s belongs to no topic of this cluster; its directory is now %s", partition, path.name
        )
