"""Partitions as --topic names them: a topic, or TOPIC:0,1,2."""

from typing import TYPE_CHECKING

from barnabas.cli.failures import ToolError
from barnabas.cli.items import settled
from barnabas.client.types import TopicPartition
from barnabas.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client import Admin


def named_partitions(
    admin: "Admin", arguments: list[str], timeout: float
) -> tuple[list[TopicPartition], dict[str, KafkaError]]:
    """The partitions in order, and what is wrong with topics that were named as a whole."""
    found: set[TopicPartition] = set()
    whole = [argument for argument in arguments if ":" not in argument]
    for argument in arguments:
        if ":" in argument:
            found.update(_listed(argument))
    described, errors = settled(lambda: admin.describe_topics(whole, timeout=timeout)) if whole else ({}, {})
    for topic, description in described.items():
        found.update(TopicPartition(topic, info.partition) for info in description.partitions)
    return sorted(found), errors


def _listed(argument: str) -> list[TopicPartition]:
    topic, _, numbers = argument.partition(":")
    if not topic or ":" in numbers:
        raise ToolError(f"Invalid topic arg '{argument}', expected topic name and partitions.")
    for number in numbers.split(","):
        if not number.strip().isdecimal():
            raise ToolError(f"Invalid partition '{number}' specified in topic arg '{argument}'.")
    return [TopicPartition(topic, int(number)) for number in numbers.split(",")]
