"""The options of `barnabas configs`: the entity and the changes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.parsing import parsed

from barnabas.cli.configs.altering import operations_of, parse_added
from barnabas.cli.configs.describing import entry_line, header, source_name
from barnabas.cli.configs.entities import DEFAULT_NAME, Entity, entity_of
from barnabas.cli.failures import ToolError
from barnabas.client.admin import AlterConfigOp, ConfigEntry, ConfigOperation, ConfigSynonym
from barnabas.config.definition import Source


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ("--entity-type topics --entity-name orders", Entity("topics", "orders")),
        ("--topic orders", Entity("topics", "orders")),
        ("--entity-type topics", Entity("topics", None)),
        ("--entity-type brokers --entity-default", Entity("brokers", DEFAULT_NAME)),
        ("--broker-defaults", Entity("brokers", DEFAULT_NAME)),
        ("--broker 1", Entity("brokers", "1")),
        ("--broker-logger 1", Entity("broker-loggers", "1")),
        ("--group billing", Entity("groups", "billing")),
        ("--client-metrics all", Entity("client-metrics", "all")),
    ],
)
def test_the_entity_of_options(arguments: str, expected: Entity) -> None:
    assert entity_of(parsed("configs", "--describe", *arguments.split()), "describe") == expected


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("", "At least one entity type"),
        ("--entity-type topcs", "Invalid entity type topcs"),
        ("--topic a --entity-name b", "should not be used in conjunction"),
        ("--topic a --broker 1", "Only 'users' and 'clients'"),
        ("--entity-type topics --entity-type topics", "Duplicate entity type"),
        ("--entity-type topics --entity-name a --entity-name b", "Only one name"),
        ("--entity-type topics --entity-default", "--entity-default must not be specified"),
        ("--entity-type broker-loggers", "An entity name must be specified"),
        ("--broker one", "must be a valid integer broker id, but it is: one"),
        ("--topic a*", "Topic name 'a\\*' has characters"),
    ],
)
def test_options_without_a_valid_entity(arguments: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        entity_of(parsed("configs", "--describe", *arguments.split()), "describe")


def test_a_change_needs_a_name() -> None:
    with pytest.raises(ToolError, match="An entity name must be specified with --alter of topics"):
        entity_of(parsed("configs", "--alter", "--entity-type", "topics"), "alter")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=[x,y],b=2", {"a": "x,y", "b": "2"}),
        ("a=[x=1,y=2]", {"a": "x=1,y=2"}),
        ("a = 1 , b= 2", {"a": "1", "b": "2"}),
        ("a=", {"a": ""}),
        (
            "leader.replication.throttled.replicas=*,b=*",
            {"leader.replication.throttled.replicas": "*", "b": "*"},
        ),
    ],
)
def test_settings_to_add(text: str, expected: dict[str, str]) -> None:
    assert parse_added(text) == expected


@pytest.mark.parametrize("text", ["a", "a=1,b", "a=1=2", "", "a=1,,b=2"])
def test_invalid_settings_to_add(text: str) -> None:
    with pytest.raises(ToolError, match="key=val"):
        parse_added(text)


_KEYS = st.text("abc._-", min_size=1, max_size=8)
_VALUES = st.lists(st.text("xyz09:*", min_size=1, max_size=5), min_size=1, max_size=4)


@given(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=5))
def test_values_in_brackets_are_parsed(settings: dict[str, list[str]]) -> None:
    text = ",".join(f"{key}=[{','.join(values)}]" for key, values in settings.items())
    assert parse_added(text) == {key: ",".join(values) for key, values in settings.items()}


def test_changes_from_all_options(tmp_path: Path) -> None:
    file = tmp_path / "more.properties"
    file.write_text("a=1\n# comment\nb = x,y\n")
    options = parsed(
        "configs", "--alter", "--topic", "t", "--add-config-file", str(file), "--delete-config", "c, d"
    )
    assert operations_of(options) == [
        AlterConfigOp("a", "1"),
        AlterConfigOp("b", "x,y"),
        AlterConfigOp("c", None, ConfigOperation.DELETE),
        AlterConfigOp("d", None, ConfigOperation.DELETE),
    ]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("", "At least one of --add-config"),
        ("--add-config a=1 --delete-config a", "Cannot add and delete the same setting: a"),
        ("--add-config a$b=1", "Invalid character found for config key: a\\$b"),
        ("--add-config a=1 --add-config-file x", "Only one of --add-config or --add-config-file"),
    ],
)
def test_invalid_changes(arguments: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        operations_of(parsed("configs", "--alter", "--topic", "t", *arguments.split()))


def test_a_line_shows_the_synonyms_in_order() -> None:
    entry = ConfigEntry(
        "retention.ms",
        "1",
        Source.TOPIC,
        synonyms=(
            ConfigSynonym("retention.ms", "1", Source.TOPIC),
            ConfigSynonym("log.retention.ms", None, Source.STATIC_BROKER),
        ),
    )
    assert entry_line(entry) == (
        "  retention.ms=1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1, "
        "STATIC_BROKER_CONFIG:log.retention.ms=null}"
    )
    secret = ConfigEntry("ssl.key.password", None, Source.DYNAMIC_BROKER, is_sensitive=True)
    assert entry_line(secret) == "  ssl.key.password=null sensitive=true synonyms={}"


def test_headers() -> None:
    assert header(Entity("groups", "g"), with_all=False) == "Dynamic configs for group g are:"
    assert header(Entity("groups", "g"), with_all=True) == "All configs for group g are:"
    assert header(Entity("brokers", ""), with_all=True) == "Default configs for brokers in the cluster are:"


def test_an_unknown_source_is_printed_as_unknown() -> None:
    assert source_name(99) == "UNKNOWN"
