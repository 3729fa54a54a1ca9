"""AlterClientQuotas, key 49, versions 0-1: set or remove quotas, each entity with a result of its own.

Behaviour: an entity, its keys and values are checked as Kafka does (INVALID_REQUEST); an entity or key that
is named twice is refused. Removing a quota that is not there succeeds. With validate_only nothing is changed.
Unlike Kafka, an address must be an IP address, not the name of a host, and nothing of an entity that is named
twice is changed."""

from __future__ import annotations

from itertools import islice

from barnabas.broker.call import MESSAGES_MAX, Call
from barnabas.broker.portions import drained, drained_items
from barnabas.broker.turns import Work
from barnabas.errors import KafkaError, shortened
from barnabas.metadata.client_quotas import Changes, Results
from barnabas.security.quotas import Entity, entity_of
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    RequestEntryData,
    ResponseEntryData,
)

# Entities that are changed at once; others have a turn in between.
ENTITIES_PER_CHANGE = 100


def alter_client_quotas(call: Call, request: AlterClientQuotasRequest) -> Work[AlterClientQuotasResponse]:
    validate_only = request.validate_only
    alterations = drained_items((yield from _alterations(request)))
    response = AlterClientQuotasResponse()
    while portion := dict(islice(alterations, ENTITIES_PER_CHANGE)):
        results: Results
        try:
            results = yield call.broker.controller.alter_client_quotas(portion, validate_only=validate_only)
        except KafkaError as error:
            results = dict.fromkeys(portion, error)
        for entity, result in results.items():
            is_explained = len(response.entries) < MESSAGES_MAX
            response.entries.append((yield from _entry(entity, result, is_explained)))
    return response


def _alterations(request: AlterClientQuotasRequest) -> Work[dict[Entity, Changes | None]]:
    """What to change. None for an entity that is named twice, or has a key twice."""
    alterations: dict[Entity, Changes | None] = {}
    for entry in drained(request.entries):
        parts: dict[str, str | None] = {}
        for part in entry.entity:
            parts[part.entity_type] = part.entity_name
            yield
        entity = entity_of(parts.items())
        alterations[entity] = None if entity in alterations else (yield from _changes(entry))
        yield
    return alterations


def _changes(entry: RequestEntryData) -> Work[Changes | None]:
    changes: dict[str, float | None] = {}
    is_repeated = False
    for change in entry.ops:
        is_repeated |= change.key in changes
        changes[change.key] = None if change.remove else change.value
        yield
    return None if is_repeated else changes


def _entry(entity: Entity, error: KafkaError | None, is_explained: bool) -> Work[ResponseEntryData]:
    entry = ResponseEntryData(
        error_code=0 if error is None else error.code,
        error_message=None if error is None or not is_explained else shortened(error.message),
    )
    for kind, name in entity:
        entry.entity.append(EntityData(entity_type=kind, entity_name=name))
        yield
    return entry
