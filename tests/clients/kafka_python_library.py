"""What the suite uses of kafka-python besides its plain client, imported without its warnings."""

import warnings

with warnings.catch_warnings():
    # It uses a call that is deprecated in Python 3.11; our tests treat warnings as errors.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import (
        ConsumerRebalanceListener,
        KafkaAdminClient,
        KafkaConsumer,
        KafkaProducer,
        OffsetAndMetadata,
        TopicPartition,
        errors,
    )
    from kafka.admin import MemberToRemove
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import BrokerResponseError, KafkaError, ProducerFencedError

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
__all__ = [
    "ASSIGNORS",
    "BrokerResponseError",
    "ConsumerRebalanceListener",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaError",
    "KafkaProducer",
    "MemberToRemove",
    "OffsetAndMetadata",
    "ProducerFencedError",
    "TopicPartition",
    "errors",
]
