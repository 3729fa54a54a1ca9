"""DescribeClientQuotas, key 48, versions 0-1: the quotas of users, client ids and addresses.

Behaviour: the filter is checked as Kafka does. Its parts match a name, the default, or both; if it is strict,
the entity has no other parts."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.security.quotas import (
    DEFAULT,
    ENTITY_TYPES,
    EXACT,
    IP,
    SPECIFIED,
    Entity,
    FilterPart,
    QuotaValues,
    matches,
)
from barnabas.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

# As Kafka's messages spell the types of a match that have no name in them.
NAMELESS = {DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}


def describe_client_quotas(
    call: Call, request: DescribeClientQuotasRequest
) -> Work[DescribeClientQuotasResponse]:
    try:
        _check_filter(request.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    parts = [FilterPart(part.entity_type, part.match_type, part.match) for part in request.components]
    entries: list[EntryData] = []
    for entity, values in call.broker.image.client_quotas.items():
        if matches(entity, parts, strict=request.strict):
            entries.append(_entry(entity, values))
        yield
    return DescribeClientQuotasResponse(entries=entries)


def _entry(entity: Entity, values: QuotaValues) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[ValueData(key=key, value=value) for key, value in values.items()],
    )


def _check_filter(components: Iterable[ComponentData]) -> None:
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in seen:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Entity type {kind} cannot appear more than once in the filter.",
            )
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        seen.add(kind)
        _check_match(component)
    if IP in seen and len(seen) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component.",
        )


def _check_match(component: ComponentData) -> None:
    if component.match_type == EXACT:
        if component.match is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Request specified MATCH_TYPE_EXACT, but set match string to null.",
            )
    elif component.match_type not in NAMELESS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}")
    elif component.match is not None:
        name = NAMELESS[component.match_type]
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Request specified {name}, but also specified a match string."
        )
