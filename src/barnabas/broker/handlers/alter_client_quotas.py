"""AlterClientQuotas, key 49, versions 0-1: set or remove quotas, each entity with a result of its own.

Behaviour: an entity is checked as Kafka does; one that is named twice is refused once. Removing a quota
succeeds, since there is none; setting one is refused with UNSUPPORTED_VERSION.
Not done:  quotas, and so the check of their names and values."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.handlers.describe_client_quotas import CLIENT_ID, IP, USER
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, shortened
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    RequestEntryData,
    ResponseEntryData,
)

# What an entity is made of: the type and name (None: the default) of each of its parts.
Entity = dict[str, str | None]


def alter_client_quotas(call: Call, request: AlterClientQuotasRequest) -> Work[AlterClientQuotasResponse]:
    answers: dict[tuple[tuple[str, str | None], ...], ResponseEntryData] = {}
    for entry in request.entries:
        entity: Entity = {}
        for part in entry.entity:
            entity[part.entity_type] = part.entity_name
            yield
        key = tuple(sorted(entity.items(), key=lambda part: part[0]))
        if key in answers:
            text = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in key)
            code, message = (
                ErrorCode.INVALID_REQUEST,
                f"Ignoring duplicate entity ClientQuotaEntity(entries={{{text}}})",
            )
        else:
            code, message = _judge(entity, entry)
        answers[key] = answer = ResponseEntryData(
            error_code=code, error_message=None if code == ErrorCode.NONE else shortened(message)
        )
        for kind, name in key:
            answer.entity.append(EntityData(entity_type=kind, entity_name=name))
            yield
        yield
    return AlterClientQuotasResponse(entries=list(answers.values()))


def _judge(entity: Entity, entry: RequestEntryData) -> tuple[ErrorCode, str]:
    if not entity:
        return ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity"
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, IP):
            return ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}"
        if name == "":
            return ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported"
    if not all(change.remove for change in entry.ops):
        return ErrorCode.UNSUPPORTED_VERSION, "this release of Barnabas has no quotas"
    return ErrorCode.NONE, ""
