"""Writes src/barnabas/wire/messages/ from kio's per-version classes: `python -m tools.generate_messages`.

kio has one class per struct and version. Here all versions of a struct become one class with the union of
their fields, and rows that say which version has which field. kio's durations and timestamps become Kafka's
`_ms` integers again. The modules are committed; the contract test in tests/wire checks them."""

import dataclasses
import datetime
import importlib
import keyword
import re
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import kio.schema

TARGET = Path(__file__).parent.parent / "src/barnabas/wire/messages"
KIO = Path(kio.schema.__file__).parent
# The APIs that the broker or a client speaks, by key. To add one, add its line and run this tool.
APIS = (
    "produce",
    "fetch",
    "list_offsets",
    "metadata",
    "offset_commit",
    "offset_fetch",
    "find_coordinator",
    "join_group",
    "heartbeat",
    "leave_group",
    "sync_group",
    "describe_groups",
    "list_groups",
    "sasl_handshake",
    "api_versions",
    "create_topics",
    "delete_topics",
    "delete_records",
    "init_producer_id",
    "offset_for_leader_epoch",
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "end_txn",
    "write_txn_markers",
    "txn_offset_commit",
    "describe_acls",
    "create_acls",
    "delete_acls",
    "describe_configs",
    "alter_configs",
    "alter_replica_log_dirs",
    "describe_log_dirs",
    "sasl_authenticate",
    "create_partitions",
    "create_delegation_token",
    "renew_delegation_token",
    "expire_delegation_token",
    "describe_delegation_token",
    "delete_groups",
    "elect_leaders",
    "incremental_alter_configs",
    "alter_partition_reassignments",
    "list_partition_reassignments",
    "offset_delete",
    "describe_client_quotas",
    "alter_client_quotas",
    "describe_user_scram_credentials",
    "alter_user_scram_credentials",
    "alter_partition",
    "update_features",
    "envelope",
    "describe_cluster",
    "describe_producers",
    "broker_heartbeat",
    "unregister_broker",
    "describe_transactions",
    "list_transactions",
    "allocate_producer_ids",
    "consumer_group_heartbeat",
    "consumer_group_describe",
    "list_config_resources",
    "describe_topic_partitions",
)
# Not requests, but structures that some requests carry as bytes.
DATA_SCHEMAS = ("consumer_protocol_assignment", "consumer_protocol_subscription", "end_txn_marker")
NEVER = 32767
WIRE_TYPES = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
PYTHON_TYPES = {"bool": "bool", "string": "str", "uuid": "bytes", "bytes": "bytes", "float64": "float"}
IMPLICIT_DEFAULTS = {"bool": "False", "string": '""', "uuid": "bytes(16)", "bytes": 'b""', "float64": "0.0"}


@dataclasses.dataclass
class Field:
    name: str
    wire_type: str
    struct: "Struct | None"
    array: bool
    default: str
    tag: int
    versions: list[int]
    nullable_versions: list[int]
    records_type: str = "Records"

    def shape(self) -> tuple[object, ...]:
        """What must be equal in two fields so that they can be merged over versions."""
        return self.name, self.wire_type, self.array, self.default, self.tag


@dataclasses.dataclass
class Struct:
    name: str
    fields: list[Field]

    def signature(self) -> str:
        """Equal for structs that are the same on the wire, in all versions, including their parts."""
        parts = [
            f"{field.shape()}{field.versions}{field.nullable_versions}"
            f"{field.struct.signature() if field.struct else ''}"
            for field in self.fields
        ]
        return f"{self.name}{parts}"

    def walk(self) -> Iterator["Struct"]:
        """The parts of this struct, then the struct itself: the order in which a module must define them."""
        for field in self.fields:
            if field.struct is not None:
                yield from field.struct.walk()
        yield self


# --- reading kio ---


def inner_type(annotation: object) -> tuple[object, bool, bool]:
    """(type, is array, is nullable) of a kio annotation: X, X | None, tuple[X, ...], tuple[X, ...] | None."""
    nullable = False
    if isinstance(annotation, types.UnionType):
        (annotation,) = (part for part in typing.get_args(annotation) if part is not types.NoneType)
        nullable = True
    if typing.get_origin(annotation) is not tuple:
        return annotation, False, nullable
    return inner_type(typing.get_args(annotation)[0])[0], True, nullable


def kafka_name(field: "dataclasses.Field[object]") -> str:
    kafka_type = field.metadata.get("kafka_type", "")
    name = f"{field.name}_ms" if kafka_type.startswith(("timedelta", "datetime")) else field.name
    return f"{name}_" if keyword.iskeyword(name) else name


def default_of(field: "dataclasses.Field[object]", wire_type: str, array: bool, struct: Struct | None) -> str:
    """The default as Python text."""
    value = field.default
    if array:
        return "None" if value is None else "EMPTY"
    if value is dataclasses.MISSING:
        if struct is not None:
            return f"shared_default({struct.name})"
        return IMPLICIT_DEFAULTS.get(wire_type, "None" if wire_type == "records" else "0")
    if field.metadata.get("kafka_type") == "datetime_i64":
        assert value is None
        return "-1"
    if value is None:
        return "bytes(16)" if wire_type == "uuid" else "None"
    if isinstance(value, datetime.timedelta):
        return str(value // datetime.timedelta(milliseconds=1))
    if dataclasses.is_dataclass(value):
        assert struct is not None
        return f"shared_default({struct.name})"
    if isinstance(value, str):
        return f'"{value}"'
    return str(int(value)) if isinstance(value, int) and not isinstance(value, bool) else repr(value)


def read_field(field: "dataclasses.Field[object]", version: int, structs: dict[str, Struct]) -> Field:
    kind, array, nullable = inner_type(field.type)
    struct = structs[typing.cast(type, kind).__name__] if dataclasses.is_dataclass(kind) else None
    kafka_type = field.metadata.get("kafka_type", "struct")
    wire_type = WIRE_TYPES.get(kafka_type, kafka_type)
    # kio shows an all-zero uuid and a timestamp of -1 as None; on the wire they are ordinary values.
    nullable = nullable and (array or not (wire_type == "uuid" or kafka_type == "datetime_i64"))
    return Field(
        name=kafka_name(field),
        wire_type=wire_type,
        struct=struct,
        array=array,
        default=default_of(field, wire_type, array, struct),
        tag=field.metadata.get("tag", -1),
        versions=[version],
        nullable_versions=[version] if nullable else [],
    )


# --- merging versions ---


def parts(entity: type) -> Iterator[type]:
    """The structs of a message in one version, the message last; a struct that is used twice comes twice."""
    for field in dataclasses.fields(entity):
        kind = inner_type(field.type)[0]
        if dataclasses.is_dataclass(kind):
            yield from parts(typing.cast(type, kind))
    yield entity


def merge(into: Struct, fields: list[Field]) -> None:
    """Add the fields of a newer version, each after the field it follows there, so that the order on the wire
    is right for both."""
    position = 0
    for field in fields:
        known = next((index for index, own in enumerate(into.fields) if own.name == field.name), None)
        if known is None:
            into.fields.insert(position, field)
            position += 1
            continue
        assert known >= position or field.tag >= 0, f"{into.name}.{field.name} changes its place"
        own = into.fields[known]
        assert own.shape() == field.shape(), f"{into.name}.{field.name} changes its shape"
        own.versions += field.versions
        own.nullable_versions += field.nullable_versions
        position = max(position, known + 1)


def read_message(api: str, kind: str, versions: list[int]) -> tuple[Struct, list[bool], int]:
    """(merged struct, flexible or not per version, api key or -1)."""
    camel = api.title().replace("_", "") + ("" if kind == "data" else kind.title())
    structs: dict[str, Struct] = {}
    flexible = []
    for version in versions:
        module = importlib.import_module(f"kio.schema.{api}.v{version}.{kind}")
        entity = next(cls for name, cls in vars(module).items() if name.lower() == camel.lower())
        flexible.append(entity.__flexible__)
        for part in dict.fromkeys(parts(entity)):
            struct = structs.setdefault(part.__name__, Struct(part.__name__, []))
            merge(struct, [read_field(field, version, structs) for field in dataclasses.fields(part)])
    return structs[entity.__name__], flexible, int(getattr(entity, "__api_key__", -1))


def versions_of(api: str) -> list[int]:
    names = [path.name for path in (KIO / api).iterdir() if re.fullmatch(r"v\d+", path.name)]
    return sorted(int(name[1:]) for name in names)


def separate_names(request: Struct, response: Struct) -> None:
    """If a struct of the request and one of the response have the same name but differ, both get a prefix."""
    ours = {struct.name: struct for struct in request.walk()}
    theirs = {struct.name: struct for struct in response.walk()}
    clashing = [name for name in ours.keys() & theirs if ours[name].signature() != theirs[name].signature()]
    for direction, message in (("Request", request), ("Response", response)):
        for struct in message.walk():
            if struct.name in clashing:
                rename(message, struct.name, f"{direction}{struct.name}")


def rename(message: Struct, old: str, new: str) -> None:
    for struct in message.walk():
        if struct.name == old:
            struct.name = new
        for field in struct.fields:
            field.default = field.default.replace(f"({old})", f"({new})")


# --- writing ---


def annotation(field: Field) -> str:
    if field.wire_type == "records":
        return f"{field.records_type} | None"
    name = field.struct.name if field.struct else PYTHON_TYPES.get(field.wire_type, "int")
    text = f"list[{name}]" if field.array else name
    return f"{text} | None" if field.nullable_versions else text


def row(field: Field) -> str:
    kind = field.struct.name if field.struct else f'"{field.wire_type}"'
    first, last = field.versions[0], field.versions[-1]
    assert field.versions == list(range(first, last + 1)), f"{field.name} comes and goes"
    parts = [f'"{field.name}"', kind, str(first), str(last)]
    if field.array:
        parts.append("array=True")
    if field.nullable_versions:
        assert field.nullable_versions[-1] == last, f"{field.name} stops being nullable"
        parts.append(f"nullable_from={field.nullable_versions[0]}")
    if field.tag >= 0:
        parts.append(f"tag={field.tag}")
    return f"Field({', '.join(parts)})"


def class_text(struct: Struct) -> str:
    lines = [f"class {struct.name}(Message):"]
    lines += [f"    {field.name}: {annotation(field)} = {field.default}" for field in struct.fields]
    lines += ["", "    FIELDS: ClassVar[tuple[Field, ...]] = ("] if struct.fields else ["    pass"]
    lines += [f"        {row(field)}," for field in struct.fields]
    lines += ["    )"] if struct.fields else []
    return "\n".join(lines)


def module_text(title: str, constants: list[str], messages: list[Struct]) -> str:
    classes: dict[str, str] = {}
    for message in messages:
        for struct in message.walk():
            text = class_text(struct)
            assert classes.setdefault(struct.name, text) == text, f"two different {struct.name}"
    body = "\n\n\n".join(classes.values())
    constant_text = "\n".join(constants)
    names = ("EMPTY", "NEVER", "Field", "Message", "Records", "shared_default")
    used = [name for name in names if re.search(rf"\b{name}\b", body + constant_text)]
    typing_import = "from typing import ClassVar\n\n" if "ClassVar" in body else ""
    return (
        f'"""{title} Written by tools/generate_messages.py."""\n\n'
        f"{typing_import}from barnabas.wire.message import {', '.join(used)}\n\n{constant_text}\n\n\n{body}\n"
    )


def flexible_from(versions: list[int], flexible: list[bool]) -> str:
    assert flexible == sorted(flexible)
    return str(versions[flexible.index(True)]) if True in flexible else "NEVER"


def api_module(api: str) -> tuple[int, str]:
    versions = versions_of(api)
    request, flexible, key = read_message(api, "request", versions)
    response, response_flexible, response_key = read_message(api, "response", versions)
    assert (flexible, key) == (response_flexible, response_key)
    separate_names(request, response)
    for field in (field for struct in request.walk() for field in struct.fields):
        # A broker reads requests, and records in them are views of the frame; a response may hold file
        # slices.
        field.records_type = "memoryview"
    constants = [
        f"API_KEY = {int(key)}",
        f"VERSIONS = ({versions[0]}, {versions[-1]})",
        f"FLEXIBLE_FROM = {flexible_from(versions, flexible)}",
    ]
    title = f"{request.name.removesuffix('Request')}, key {int(key)}, versions {versions[0]}-{versions[-1]}."
    text = module_text(title, constants, [request, response])
    return int(key), f"{text}\n\nREQUEST = {request.name}\nRESPONSE = {response.name}\n"


def data_module(schema: str) -> str:
    versions = versions_of(schema)
    message, flexible, _ = read_message(schema, "data", versions)
    constants = [
        f"VERSIONS = ({versions[0]}, {versions[-1]})",
        f"FLEXIBLE_FROM = {flexible_from(versions, flexible)}",
    ]
    return module_text(f"{message.name}, versions {versions[0]}-{versions[-1]}.", constants, [message])


class KafkaApi(typing.NamedTuple):
    name: str
    first: int
    last: int


def index_text(modules: dict[int, str], apis: dict[int, KafkaApi]) -> str:
    names = {key: f'"{api.name}"' for key, api in apis.items()}
    versions = {key: f"({api.first}, {api.last})" for key, api in apis.items()}
    return (
        '"""Canonical messages, one module per API, imported when first used.\n\n'
        'Written by tools/generate_messages.py."""\n\n'
        "# API key: the module here that has its messages.\n"
        f"MODULES = {rows_text({key: repr(name) for key, name in modules.items()})}\n"
        "# API key: Kafka's name of the API, also for those that have no module here.\n"
        f"NAMES = {rows_text(names)}\n"
        "# API key: its first and last version, likewise.\n"
        f"VERSIONS = {rows_text(versions)}\n"
    )


def rows_text(rows: dict[int, str]) -> str:
    return "{\n" + "".join(f"    {key}: {rows[key]},\n" for key in sorted(rows)) + "}"


def kafka_apis() -> dict[int, KafkaApi]:
    """All of Kafka's APIs, by key."""
    apis: dict[int, KafkaApi] = {}
    for path in sorted(KIO.glob("*/v*/request.py")):
        module = importlib.import_module(f"kio.schema.{path.parent.parent.name}.{path.parent.name}.request")
        for name, entity in vars(module).items():
            if name.endswith("Request") and hasattr(entity, "__api_key__"):
                version = int(entity.__version__)
                known = apis.get(int(entity.__api_key__), KafkaApi(name, version, version))
                apis[int(entity.__api_key__)] = KafkaApi(
                    name.removesuffix("Request"), min(known.first, version), max(known.last, version)
                )
    return apis


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    for stale in TARGET.glob("*.py"):
        stale.unlink()
    modules: dict[int, str] = {}
    for schema in DATA_SCHEMAS:
        (TARGET / f"{schema}.py").write_text(data_module(schema))
    for api in APIS:
        key, text = api_module(api)
        (TARGET / f"{api}.py").write_text(text)
        modules[key] = api
    (TARGET / "__init__.py").write_text(index_text(modules, kafka_apis()))
    for command in (["check", "--select", "I", "--fix"], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, "--quiet", str(TARGET)], check=True)


if __name__ == "__main__":
    main()
