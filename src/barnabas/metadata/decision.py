"""A decision: the records to write, and the answer to give when they are written. See controller.py."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.records import MetadataRecord

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Decision(Generic[Result]):
    records: tuple[MetadataRecord, ...]
    result: Result


def invalid_request(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, sentence)
