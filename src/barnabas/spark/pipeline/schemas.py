"""How the values of a source become columns: the options of the data source, and the schema. Touches no
Spark.

The schema of JSON and CSV is written as in CREATE TABLE. That of Avro is JSON, or comes from a registry; a
schema as in CREATE TABLE then chooses columns. That of Protobuf is a set of descriptors, in base64."""

import json
from collections.abc import Iterator

from barnabas.spark.options import OptionError, read_options
from barnabas.spark.pipeline.definition import DECODED, Source
from barnabas.spark.settings import decoding_of, topics_of

DELETED_COLUMN = "_deleted boolean"


def decode_options(source: Source) -> dict[str, str]:
    """The options of the data source for decoding."""
    given = {
        "decode": source.decode,
        "badRecords": "fail" if source.bad_records == "fail" else "null",
        "schema.registry.url": source.registry,
        "envelope": source.envelope if source.envelope != "none" else None,
        "avroSchema": source.schema if _is_avro(source) else None,
        "protobufDescriptors": source.schema if source.decode == "protobuf" else None,
        "protobufMessage": source.message,
    }
    return {name: value for name, value in given.items() if value is not None}


def _is_avro(source: Source) -> bool:
    """Whether the schema is an Avro schema, not one as in CREATE TABLE."""
    return source.decode == "avro" and source.schema is not None and source.schema.lstrip()[:1] in ("{", "[")


def columns_of(source: Source, record: str) -> str:
    """The schema of a decoded source as in CREATE TABLE: the columns of the value, and those in `record`.
    Asks the registry if the schema comes from there."""
    if source.decode == "protobuf" or (
        source.decode == "avro" and (source.schema is None or _is_avro(source))
    ):
        own = _named_columns(source)
    else:
        own = f"{source.schema}".strip().rstrip(",")
        if source.envelope != "none":
            own = f"{own}\n, {DELETED_COLUMN}"
    # A comment at the end of the schema must not hide the rest.
    return f"{own}\n, {record}"


def _named_columns(source: Source) -> str:
    """The columns of the schema that the options name."""
    from barnabas.spark.columns import value_schema
    from barnabas.spark.ddl import ddl_of

    values = read_options({**decode_options(source), **source.options, **_subscription(source)})
    return ddl_of(value_schema(decoding_of(values), topics_of(values)))


def _subscription(source: Source) -> dict[str, str]:
    if source.pattern is not None:
        return {"subscribePattern": source.pattern}
    return {"subscribe": ",".join(source.topics)}


def schema_problems(name: str, source: Source) -> Iterator[str]:
    """What is wrong with the schema of a source, as far as it shows without Spark and without a registry."""
    if source.message is not None and source.decode != "protobuf":
        yield f"message of source {name} is for decode: protobuf; remove it."
    if source.envelope != "none" and source.decode not in ("json", "avro"):
        yield f"envelope of source {name} needs decode: json or avro."
    if source.schema is None:
        if source.schema_file is None:
            yield from _missing_schema(name, source)
        return
    if source.decode not in DECODED:
        yield f"Source {name} decodes nothing, so it needs no schema: set decode, or remove the schema."
    elif source.decode in ("json", "csv") and source.schema.lstrip()[:1] in ("{", "["):
        yield (
            f"The schema of source {name} is JSON, but decode: {source.decode} needs one as in CREATE"
            " TABLE, such as 'id string, amount double'."
        )
    elif source.decode == "avro" and not _is_avro(source) and source.registry is None:
        yield (
            f"The schema of source {name} is not an Avro schema in JSON, which decode: avro needs without a"
            " registry: name a file such as order.avsc in schema_file, or set registry."
        )
    elif source.decode == "protobuf" or _is_avro(source):
        yield from _unreadable(name, source)


def _missing_schema(name: str, source: Source) -> Iterator[str]:
    if source.decode == "json":
        yield f"Source {name} decodes JSON and needs a schema, such as 'id string, amount double'."
    if source.decode == "csv":
        yield f"Source {name} decodes CSV and needs a schema, such as 'id string, amount double'."
    if source.decode == "avro" and source.registry is None:
        yield (
            f"Source {name} decodes Avro and needs a schema: the URL of a registry, or a file such as"
            " order.avsc in schema_file."
        )
    if source.decode == "protobuf":
        yield (
            f"Source {name} decodes Protobuf and needs schema_file, a file that protoc --include_imports"
            " --descriptor_set_out writes, and message."
        )


def _unreadable(name: str, source: Source) -> Iterator[str]:
    place = "" if source.schema_file is None else f" in {source.schema_file}"
    if _is_avro(source):
        try:
            json.loads(str(source.schema))
        except json.JSONDecodeError as error:
            where = f"{place}, line {error.lineno}," if place else ""
            yield f"The Avro schema of source {name}{where} is not valid JSON: {error.msg}."
            return
    if source.decode == "protobuf" and source.message is None:
        yield f"Source {name} needs message, the name of a message{place}, such as shop.Order."
        return
    try:
        columns_of(source, DELETED_COLUMN)
    except (OptionError, ImportError) as error:
        yield f"Source {name}{place}: {error}"
