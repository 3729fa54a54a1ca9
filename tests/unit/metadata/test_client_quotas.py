"""Quotas in the metadata: what an alteration writes, and what the image has after it."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.client_quotas import Changes, alter_client_quotas
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import ClientQuotaRecord
from barnabas.security.quotas import CLIENT_ID, IP, USER, Entity, entity_of

ALICE: Entity = ((USER, "alice"),)
RATE = "producer_byte_rate"


def altered(image: MetadataImage, entity: Entity, changes: Changes | None) -> MetadataImage:
    decision = alter_client_quotas(image, {entity: changes})
    assert decision.result == {entity: None}
    return image.apply(decision.records)


def refused(entity: Entity, changes: Changes | None) -> KafkaError:
    decision = alter_client_quotas(MetadataImage(), {entity: changes})
    (error,) = decision.result.values()
    assert error is not None
    assert error.code == ErrorCode.INVALID_REQUEST
    assert not decision.records
    return error


def test_a_quota_is_set_changed_and_removed() -> None:
    image = altered(MetadataImage(), ALICE, {RATE: 1000, "request_percentage": 50.5})
    assert image.client_quotas == {ALICE: {RATE: 1000, "request_percentage": 50.5}}
    image = altered(image, ALICE, {RATE: 2000})
    assert image.client_quotas == {ALICE: {RATE: 2000, "request_percentage": 50.5}}
    image = altered(image, ALICE, {RATE: None, "request_percentage": None})
    assert image.client_quotas == {}


def test_what_is_already_so_is_not_written() -> None:
    image = altered(MetadataImage(), ALICE, {RATE: 1000})
    assert alter_client_quotas(image, {ALICE: {RATE: 1000, "consumer_byte_rate": None}}).records == ()


def test_if_one_change_is_refused_the_others_of_the_entity_are_not_made() -> None:
    image = MetadataImage()
    other: Entity = ((CLIENT_ID, None),)
    decision = alter_client_quotas(image, {ALICE: {RATE: 1000, "nonsense": 1}, other: {RATE: 5}})
    assert decision.result[other] is None
    assert decision.records == (ClientQuotaRecord(other, RATE, 5),)


def test_refusals() -> None:
    assert "duplicate entity" in refused(ALICE, None).message
    assert "empty client quota entity" in refused((), {RATE: 1}).message
    assert "Invalid configuration key" in refused(((IP, None),), {RATE: 1}).message
    assert "combination" in refused(entity_of([(IP, "::1"), (USER, "u")]), {}).message
    assert "greater than 0" in refused(ALICE, {RATE: 0}).message


def test_the_difference_says_whether_quotas_changed() -> None:
    image, difference = MetadataImage().apply_and_compare([ClientQuotaRecord(ALICE, RATE, 1)])
    assert difference.client_quotas_changed
    assert image.difference(MetadataImage()).client_quotas_changed
    assert not image.apply_and_compare([ClientQuotaRecord(ALICE, RATE, 1)])[1].client_quotas_changed


keys = st.sampled_from(["producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate"])
entities = st.dictionaries(
    st.sampled_from([USER, CLIENT_ID]), st.sampled_from([None, "a", "b"]), min_size=1
).map(lambda parts: entity_of(parts.items()))
changes = st.dictionaries(keys, st.none() | st.integers(1, 5).map(float), max_size=3)


@given(st.lists(st.tuples(entities, changes), max_size=20))
def test_the_image_is_what_was_set_last_and_a_snapshot_brings_it_back(
    steps: list[tuple[Entity, Changes]],
) -> None:
    image = MetadataImage()
    expected: dict[Entity, dict[str, float]] = {}
    for entity, step in steps:
        image = altered(image, entity, step)
        values = expected.setdefault(entity, {})
        values.update({key: value for key, value in step.items() if value is not None})
        for key in [key for key, value in step.items() if value is None]:
            values.pop(key, None)
    expected = {entity: values for entity, values in expected.items() if values}
    assert image.client_quotas == expected
    assert MetadataImage().apply(image.records()).client_quotas == expected
