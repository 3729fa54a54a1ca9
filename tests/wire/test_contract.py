"""Compares our schema rows and codec with two others: kafka-python, made from Kafka's own JSON files, and
kio.

kafka-python has the APIs that clients use. It checks our schemas, too, because those come from kio. The APIs
in JUDGED_BY_KIO_ONLY are used between brokers or newer than kafka-python: kio checks their codec, nothing
checks their schema. Comments at the conversions say where the two libraries differ from Kafka."""

import datetime
import importlib
import io
import re
import struct
import uuid
import warnings
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from kio.serial import entity_reader, entity_writer

import barnabas.client
from barnabas.broker.apis import ROWS
from barnabas.kernels.codec import Reader
from barnabas.kernels.codec_write import Writer
from barnabas.wire.apis import Api, api_of
from barnabas.wire.message import NEVER, Field, Message
from barnabas.wire.messages import (
    MODULES,
    NAMES,
    consumer_protocol_assignment,
    consumer_protocol_subscription,
    end_txn_marker,
)
from barnabas.wire.plans import plan_of

# kafka-python reads its schemas with a function that is deprecated in Python.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol.schemas
    from kafka.protocol.schemas import StructField, load_json
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")

VARIANTS = ("full", "nulls", "empty", "extreme")
RESOURCES = Path(kafka.protocol.schemas.__file__).parent / "resources"
APIS = [api for api in map(api_of, MODULES) if api is not None]
JUDGED_BY_KAFKA_PYTHON = [api for api in APIS if (RESOURCES / f"{api.request.__name__}.json").exists()]
JUDGED_BY_KIO_ONLY = {
    "allocate_producer_ids",
    "alter_partition",
    "broker_heartbeat",
    "consumer_group_describe",
    "consumer_group_heartbeat",
    "create_delegation_token",
    "describe_delegation_token",
    "envelope",
    "expire_delegation_token",
    "renew_delegation_token",
    "unregister_broker",
}


def write(message: Message, version: int, flexible: bool) -> bytes:
    writer = Writer(b"")
    writer.struct(plan_of(type(message), version, flexible), message)
    return b"".join(writer.finish())


def read(cls: type[Message], version: int, flexible: bool, data: bytes) -> Any:
    return Reader(data).struct(plan_of(cls, version, flexible))


def fields_in(cls: type[Message], version: int) -> list[Field]:
    return [field for field in cls.FIELDS if field.first <= version <= field.last]


# --- kafka-python -----------------------------------------------------------------------------------------


@cache
def schema_of(name: str) -> StructField:
    """The schema from Kafka's JSON, without the patches of kafka-python."""
    return StructField(load_json(name))


def as_dictionary(message: Message, version: int) -> dict[str, Any]:
    """Our message for kafka-python, without tagged structs at their default, which it does not know."""
    result = {}
    for field in fields_in(type(message), version):
        value = getattr(message, field.name)
        if field.tag >= 0 and value == getattr(type(message)(), field.name):
            continue
        result[field.name] = _foreign(field, value, version)
    return result


def _foreign(field: Field, value: Any, version: int) -> Any:
    if isinstance(value, list):
        return [_foreign(field, item, version) for item in value]
    if isinstance(value, Message):
        return as_dictionary(value, version)
    # kafka-python shows the zero uuid as None.
    if field.type == "uuid" and value is not None:
        return uuid.UUID(bytes=value) if any(value) else None
    return bytes(value) if isinstance(value, memoryview) else value


def kafka_python_judges(cls: type[Message], message: Message, version: int, flexible: bool) -> None:
    schema = schema_of(cls.__name__)
    values = as_dictionary(message, version)
    ours = write(message, version, flexible)
    theirs = schema.encode(values, version=version, compact=flexible, tagged=flexible)
    assert ours == theirs
    stream = io.BytesIO(ours)
    assert schema.decode(stream, version=version, compact=flexible, tagged=flexible) == values
    assert stream.read() == b""
    assert as_dictionary(read(cls, version, flexible, theirs), version) == values


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("api", JUDGED_BY_KAFKA_PYTHON, ids=lambda api: api.name)
def test_bytes_and_values_agree_with_kafka_python(api: Api, variant: str, sample: Any) -> None:
    for version in range(api.first, api.last + 1):
        for cls in (api.request, api.response):
            kafka_python_judges(cls, sample(cls, version, variant), version, api.is_flexible(version))


@pytest.mark.parametrize("module", [consumer_protocol_assignment, consumer_protocol_subscription])
def test_embedded_schemas_agree_with_kafka_python(module: Any, sample: Any) -> None:
    name = "".join(part.title() for part in module.__name__.rpartition(".")[2].split("_"))
    cls = getattr(module, name)
    for version in range(module.VERSIONS[0], module.VERSIONS[1] + 1):
        for variant in VARIANTS:
            kafka_python_judges(cls, sample(cls, version, variant), version, version >= module.FLEXIBLE_FROM)


def assert_same_schema(cls: type[Message], theirs: Any, version: int) -> None:
    """Compare names, order, tags, nullability and defaults directly: zero bytes would hide differences."""
    expected = [field for field in theirs.fields.values() if field.for_version_q(version)]
    ours = fields_in(cls, version)
    assert [field.name for field in ours if field.tag < 0] == [
        field.name for field in expected if not field.tagged_field_q(version)
    ]
    assert {field.name: field.tag for field in ours if field.tag >= 0} == {
        field.name: field.tag for field in expected if field.tagged_field_q(version)
    }
    for field in ours:
        their_field = theirs.fields[field.name]
        assert (field.nullable_from <= version) == their_field.nullable_for_version_q(version), field
        assert field.array == (their_field.is_array() or their_field.is_struct_array()), field
        if isinstance(field.type, str):
            assert their_field.type_str.removeprefix("[]") == field.type
            assert_same_default(cls, field, their_field)
        else:
            assert_same_schema(field.type, their_field, version)


def assert_same_default(cls: type[Message], field: Field, their_field: Any) -> None:
    if field.type == "records":  # null in Kafka, empty in kafka-python
        return
    expected = their_field.default
    if field.type == "uuid" and not field.array and expected is None:
        expected = bytes(16)
    assert getattr(cls(), field.name) == expected, field


@pytest.mark.parametrize("api", JUDGED_BY_KAFKA_PYTHON, ids=lambda api: api.name)
def test_schema_rows_agree_with_kafkas_json(api: Api) -> None:
    for cls in (api.request, api.response):
        schema = schema_of(cls.__name__)
        first, last = schema._versions
        flexible_from = StructField.parse_versions(load_json(cls.__name__)["flexibleVersions"])[0]
        assert (api.first, api.last, api.flexible_from) == (first, last, flexible_from % (NEVER + 1))
        for version in range(api.first, api.last + 1):
            assert_same_schema(cls, schema, version)


# --- kio --------------------------------------------------------------------------------------------------


def kio_entity(module_name: str, kind: str, name: str, version: int) -> Any:
    return getattr(importlib.import_module(f"kio.schema.{module_name}.v{version}.{kind}"), name)


def _from_kio(value: Any) -> Any:
    """Convert kio's timedeltas, datetimes, error codes and Nones to the values on the wire."""
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, Enum):
        return value.value
    return value.bytes if isinstance(value, uuid.UUID) else value


def assert_same_as_kio(message: Any, entity: Any, version: int) -> None:
    for field in fields_in(type(message), version):
        name = field.name if hasattr(entity, field.name) else field.name.removesuffix("_ms")
        assert_same_value(field, getattr(message, field.name), getattr(entity, name), version)


def assert_same_value(field: Field, ours: Any, theirs: Any, version: int) -> None:
    if ours is None:
        assert theirs is None
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same_value(field, our_item, their_item, version)
    elif isinstance(ours, Message):
        assert_same_as_kio(ours, theirs, version)
    elif theirs is None and field.type in ("uuid", "int64"):
        assert ours in (bytes(16), -1)
    else:
        assert ours == _from_kio(theirs), field


@pytest.mark.parametrize("variant", ("full", "nulls", "empty"))
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_bytes_and_values_agree_with_kio(api: Api, variant: str, sample: Any) -> None:
    for version in range(api.first, api.last + 1):
        for kind, cls in (("request", api.request), ("response", api.response)):
            entity = kio_entity(api.name, kind, cls.__name__, version)
            kio_judges(sample(cls, version, variant), entity, version, api.is_flexible(version))


def kio_judges(message: Message, entity: Any, version: int, flexible: bool) -> None:
    ours = write(message, version, flexible)
    decoded, size = entity_reader(entity)(ours, 0)
    assert size == len(ours)
    assert_same_as_kio(message, decoded, version)
    stream = io.BytesIO()
    entity_writer(entity)(stream, decoded)
    assert stream.getvalue() == ours
    assert read(type(message), version, flexible, stream.getvalue()) == message


def test_the_end_marker_agrees_with_kio(sample: Any) -> None:
    message = sample(end_txn_marker.EndTxnMarker, 0, "full")
    kio_judges(
        message, kio_entity("end_txn_marker", "data", "EndTxnMarker", 0), 0, end_txn_marker.FLEXIBLE_FROM <= 0
    )


# --- the comparisons find mistakes
# --------------------------------------------------------------------------------


def corrupted(api: Api, name: str, **changes: Any) -> type[Message]:
    rows = tuple(row._replace(**changes) if row.name == name else row for row in api.request.FIELDS)
    assert rows != api.request.FIELDS
    return type(api.request.__name__, (api.request,), {**api.request.DEFAULTS, "FIELDS": rows})


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "min_bytes", "type": "int64"},
        {"name": "rack_id", "first": 12},
        {"name": "rack_id", "nullable_from": 11},
        {"name": "cluster_id", "tag": 7},
        {"name": "session_epoch", "last": 10},
    ],
    ids=str,
)
def test_a_wrong_schema_row_is_caught(changes: dict[str, Any], sample: Any) -> None:
    api = api_of(1)
    assert api is not None
    wrong = corrupted(api, changes.pop("name"), **changes)
    with pytest.raises((AssertionError, KeyError, struct.error)):
        for version in range(api.first, api.last + 1):
            for variant in VARIANTS:
                kafka_python_judges(wrong, sample(wrong, version, variant), version, api.is_flexible(version))
            assert_same_schema(wrong, schema_of("FetchRequest"), version)


def test_every_api_is_compared_and_those_with_one_library_only_are_listed() -> None:
    assert {api.name for api in APIS} - {api.name for api in JUDGED_BY_KAFKA_PYTHON} == JUDGED_BY_KIO_ONLY


def test_only_messages_that_are_used_are_generated() -> None:
    """A message belongs to an API that the broker serves, or a client imports it."""
    client = Path(barnabas.client.__file__).parent
    imported = "\n".join(path.read_text() for path in client.rglob("*.py"))
    unused = [
        module
        for key, module in MODULES.items()
        if key not in ROWS and not re.search(rf"\b{module}\b", imported)
    ]
    assert unused == []
    assert MODULES.keys() <= NAMES.keys()
