"""Which quota applies to whom, and which entities, keys and values are valid."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.quotas import (
    CLIENT_ID,
    CLIENT_KEYS,
    CONNECTION_CREATION_RATE,
    DEFAULT,
    EXACT,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    SPECIFIED,
    USER,
    ClientQuotas,
    Entity,
    FilterPart,
    Limit,
    describe_entity,
    entity_of,
    entity_problem,
    matches,
    value_problem,
)

# Kafka's order of precedence, for the user "u" and the client id "c"; who shares the limit.
LEVELS: list[tuple[Entity, tuple[str, str]]] = [
    (entity_of([(USER, "u"), (CLIENT_ID, "c")]), ("u", "c")),
    (entity_of([(USER, "u"), (CLIENT_ID, None)]), ("u", "c")),
    (entity_of([(USER, "u")]), ("u", "")),
    (entity_of([(USER, None), (CLIENT_ID, "c")]), ("u", "c")),
    (entity_of([(USER, None), (CLIENT_ID, None)]), ("u", "c")),
    (entity_of([(USER, None)]), ("u", "")),
    (entity_of([(CLIENT_ID, "c")]), ("", "c")),
    (entity_of([(CLIENT_ID, None)]), ("", "c")),
]


def quotas(*entities: tuple[Entity, float]) -> ClientQuotas:
    return ClientQuotas({entity: {PRODUCER_BYTE_RATE: value} for entity, value in entities})


@pytest.mark.parametrize("chosen", list(itertools.product([False, True], repeat=8)))
def test_the_most_specific_of_the_eight_levels_applies(chosen: tuple[bool, ...]) -> None:
    present = [index for index, is_there in enumerate(chosen) if is_there]
    table = quotas(*((LEVELS[index][0], index + 1) for index in present))
    expected = Limit(present[0] + 1, *LEVELS[present[0]][1]) if present else None
    assert table.limit(PRODUCER_BYTE_RATE, "u", "c") == expected


def test_each_key_has_its_own_level() -> None:
    table = ClientQuotas(
        {LEVELS[0][0]: {PRODUCER_BYTE_RATE: 1}, LEVELS[7][0]: {REQUEST_PERCENTAGE: 50}},
    )
    assert table.limit(REQUEST_PERCENTAGE, "u", "c") == Limit(50, "", "c")
    assert table.has(REQUEST_PERCENTAGE)
    assert not table.has(CONNECTION_CREATION_RATE)


def test_quotas_of_others_do_not_apply() -> None:
    table = quotas(*((entity, 1) for entity, _ in LEVELS if None not in dict(entity).values()))
    assert table.limit(PRODUCER_BYTE_RATE, "other", "other") is None


@pytest.mark.parametrize("client_id", [None, ""])
def test_a_client_without_an_id_has_only_the_quota_of_its_user(client_id: str | None) -> None:
    table = quotas((LEVELS[1][0], 1), (LEVELS[7][0], 2))
    assert table.limit(PRODUCER_BYTE_RATE, "u", client_id) is None
    table = quotas((LEVELS[1][0], 1), (LEVELS[5][0], 3))
    assert table.limit(PRODUCER_BYTE_RATE, "u", client_id) == Limit(3, "u", "")


def test_addresses_have_rates_of_connections() -> None:
    table = ClientQuotas(
        {
            ((IP, "10.0.0.1"),): {CONNECTION_CREATION_RATE: 5},
            ((IP, "::0001"),): {CONNECTION_CREATION_RATE: 7},
        }
    )
    assert not table.has_clients
    assert table.connection_rate("10.0.0.1") == 5
    assert table.connection_rate("::1") == 7
    assert table.connection_rate("10.0.0.2") is None
    table = ClientQuotas({((IP, None),): {CONNECTION_CREATION_RATE: 9}})
    assert table.connection_rate("10.0.0.2") == 9


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([], "empty"),
        ([("group", "g")], "entity type: group"),
        ([(USER, "")], "Empty user"),
        ([(IP, "1.2.3.4"), (USER, "u")], "combination"),
        ([(IP, "1.2.3.4"), (CLIENT_ID, None)], "combination"),
        ([(IP, "nowhere")], "nowhere is not a valid IP"),
    ],
)
def test_wrong_entities(parts: list[tuple[str, str | None]], problem: str) -> None:
    assert problem in (entity_problem(entity_of(parts)) or "")


def test_right_entities() -> None:
    for entity, _ in LEVELS:
        assert entity_problem(entity) is None
    assert entity_problem(((IP, None),)) is None
    assert entity_problem(((IP, "::1"),)) is None


@pytest.mark.parametrize(
    ("entity", "key", "value", "problem"),
    [
        (((USER, "u"),), "retention.ms", 1, "Invalid configuration key retention.ms"),
        (((USER, "u"),), CONNECTION_CREATION_RATE, 1, "Invalid configuration key"),
        (((IP, "::1"),), PRODUCER_BYTE_RATE, 1, "Invalid configuration key"),
        (((USER, "u"),), PRODUCER_BYTE_RATE, 0, "must be greater than 0"),
        (((USER, "u"),), REQUEST_PERCENTAGE, -1, "must be greater than 0"),
        (((USER, "u"),), REQUEST_PERCENTAGE, math.nan, "must be greater than 0"),
        (((USER, "u"),), PRODUCER_BYTE_RATE, 1.5, "cannot be a fractional value"),
        (((USER, "u"),), PRODUCER_BYTE_RATE, 1e19, "too large for a LONG"),
        (((IP, None),), CONNECTION_CREATION_RATE, 2.0**31, "too large for an INT"),
    ],
)
def test_wrong_values(entity: Entity, key: str, value: float, problem: str) -> None:
    assert problem in (value_problem(entity, key, value) or "")


def test_right_values() -> None:
    for key in CLIENT_KEYS:
        assert value_problem(((USER, "u"),), key, 1000) is None
    assert value_problem(((USER, "u"),), REQUEST_PERCENTAGE, 0.5) is None
    assert value_problem(((IP, None),), CONNECTION_CREATION_RATE, 10) is None


def test_an_entity_in_an_error() -> None:
    entity = entity_of([(USER, None), (CLIENT_ID, "c")])
    assert describe_entity(entity) == "ClientQuotaEntity(entries={client-id=c, user=null})"


# ---- filters

names = st.sampled_from([None, "a", "b"])
entities = st.dictionaries(st.sampled_from([USER, CLIENT_ID, IP]), names, max_size=3).map(
    lambda parts: entity_of(parts.items())
)


@st.composite
def filters(draw: st.DrawFn) -> list[FilterPart]:
    kinds = draw(st.sets(st.sampled_from([USER, CLIENT_ID, IP])))
    parts = []
    for kind in kinds:
        match_type = draw(st.sampled_from([EXACT, DEFAULT, SPECIFIED]))
        parts.append(
            FilterPart(kind, match_type, draw(st.sampled_from("ab")) if match_type == EXACT else None)
        )
    return parts


@given(entities, filters(), st.booleans())
def test_filters(entity: Entity, parts: list[FilterPart], strict: bool) -> None:
    has = dict(entity)
    expected = not strict or {part.type for part in parts} == set(has)
    for part in parts:
        if part.type not in has:
            expected = False
        elif part.match_type == DEFAULT:
            expected &= has[part.type] is None
        elif part.match_type == EXACT:
            expected &= has[part.type] == part.name
    assert matches(entity, parts, strict=strict) == expected
