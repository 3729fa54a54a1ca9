"""Decisions about quotas of clients. Pure: they return records and answers.

One entity gets one answer: if one of its changes is refused, none of them is made."""

from collections.abc import Mapping
from typing import TypeAlias

from barnabas.errors import KafkaError
from barnabas.metadata.decision import Decision, invalid_request
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import ClientQuotaRecord
from barnabas.security.quotas import Entity, describe_entity, entity_problem, value_problem

# The new value of each key; None removes it.
Changes: TypeAlias = Mapping[str, float | None]
# None: the entity, or one of its keys, is in the request more than once.
Alterations: TypeAlias = Mapping[Entity, Changes | None]
Results: TypeAlias = dict[Entity, KafkaError | None]


def alter_client_quotas(image: MetadataImage, alterations: Alterations) -> Decision[Results]:
    results: Results = {}
    records: list[ClientQuotaRecord] = []
    for entity, changes in alterations.items():
        try:
            if changes is None:
                raise invalid_request(f"Ignoring duplicate entity {describe_entity(entity)}")
            records.extend(_records(image, entity, changes))
        except KafkaError as error:
            results[entity] = error.as_result()
        else:
            results[entity] = None
    return Decision(tuple(records), results)


def _records(image: MetadataImage, entity: Entity, changes: Changes) -> list[ClientQuotaRecord]:
    problem = entity_problem(entity)
    if problem is not None:
        raise invalid_request(problem)
    current = image.client_quotas.get(entity, {})
    records = []
    for key, value in changes.items():
        if value is not None:
            problem = value_problem(entity, key, value)
            if problem is not None:
                raise invalid_request(problem)
        # A key that is removed need not be known: it is not there.
        if current.get(key) != value:
            records.append(ClientQuotaRecord(entity, key, value))
    return records
