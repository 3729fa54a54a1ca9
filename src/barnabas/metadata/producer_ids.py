"""The decision that gives out producer ids: one block at a time, and never the same id twice. Pure.

The record is durable before the block is used. So a crash can lose ids, but cannot repeat them."""

from dataclasses import dataclass

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.brokers import check_broker_epoch
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import ProducerIdsRecord

BLOCK_SIZE = 1000
_PRODUCER_ID_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    first_id: int
    count: int


def allocate_producer_ids(
    image: MetadataImage, broker_id: int, broker_epoch: int
) -> Decision[ProducerIdBlock]:
    check_broker_epoch(image, broker_id, broker_epoch)
    first_id = image.next_producer_id
    if first_id > _PRODUCER_ID_MAX - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "there are no producer ids left")
    record = ProducerIdsRecord(broker_id, broker_epoch, first_id + BLOCK_SIZE)
    return Decision((record,), ProducerIdBlock(first_id, BLOCK_SIZE))
