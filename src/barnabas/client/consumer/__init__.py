"""The consumer and the types its users need: records, listeners, assignors."""

from barnabas.client.consumer.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Subscription,
)
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.membership import RebalanceListener
from barnabas.client.consumer.records import ConsumerRecord, ConsumerRecords

__all__ = [
    "Assignor",
    "Consumer",
    "ConsumerRecord",
    "ConsumerRecords",
    "CooperativeStickyAssignor",
    "RangeAssignor",
    "RebalanceListener",
    "RoundRobinAssignor",
    "StickyAssignor",
    "Subscription",
]
