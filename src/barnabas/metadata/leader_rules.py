"""What elections need besides the image: the settings of topics. Pure, but for the configuration it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.config.topic import TopicConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_changes import Election, Electorate


@dataclass(frozen=True, slots=True)
class LeaderRules:
    """`topic_config` gives the settings of a topic from its overrides."""

    topic_config: Callable[[Mapping[str, str]], TopicConfig]

    def electorate(
        self,
        image: MetadataImage,
        topic: str,
        may_lead: Callable[[int], bool],
        election: Election | None = None,
    ) -> Electorate:
        """Who elects the leaders of a topic. By default, out-of-sync replicas may lead where the topic's
        settings allow it."""
        config = self.topic_config(image.topic_config(topic))
        if election is None:
            election = Election.UNCLEAN if config.unclean_leader_election_enable else Election.ONLINE
        return Electorate(may_lead, config.min_insync_replicas, election)


def active_brokers(image: MetadataImage) -> frozenset[int]:
    return frozenset(broker.id for broker in image.brokers.values() if broker.is_active)
