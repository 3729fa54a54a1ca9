"""What DescribeConfigs says, compared with answers that Kafka 4.3.1 gave to the same settings."""

from barnabas.config.describe import ConfigEntry, describe_broker, describe_cluster_default, describe_topic
from barnabas.config.values import BrokerConfig

FILE = BrokerConfig(
    {
        "log.retention.hours": "24",
        "log.segment.bytes": "2000000",
        "custom.key": "abc",
        "ssl.keystore.password": "secret",
        "listener.name.plaintext.ssl.keystore.password": "x",
    }
)
CLUSTER = {"log.segment.bytes": "3000000", "log.retention.ms": "7200000", "max.connections": "100"}
BROKER = {"log.segment.bytes": "4000000", "log.cleaner.threads": "2"}


def shown(entry: ConfigEntry) -> str:
    synonyms = ";".join(f"{name}={value}/{int(source)}" for name, value, source in entry.synonyms)
    return f"{entry.value}/{int(entry.source)} {synonyms}".strip()


def topic(
    overrides: dict[str, str], *, cluster: dict[str, str], broker: dict[str, str]
) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in describe_topic(FILE, cluster, broker, overrides)}


def broker() -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in describe_broker(FILE, CLUSTER, BROKER)}


def test_a_topic_value_lists_every_source_most_specific_first() -> None:
    entries = topic({}, cluster=CLUSTER, broker=BROKER)
    assert shown(entries["segment.bytes"]) == (
        "4000000/2 log.segment.bytes=4000000/2;log.segment.bytes=3000000/3;"
        "log.segment.bytes=2000000/4;log.segment.bytes=1073741824/5"
    )


def test_an_override_comes_first_and_is_shown_in_its_typed_form() -> None:
    overrides = {
        "retention.ms": " 5000",
        "cleanup.policy": "compact, delete",
        "min.cleanable.dirty.ratio": "1e-5",
    }
    entries = topic(overrides, cluster=CLUSTER, broker=BROKER)
    assert shown(entries["retention.ms"]) == (
        "5000/1 retention.ms=5000/1;log.retention.ms=7200000/3;"
        "log.retention.hours=24/4;log.retention.hours=168/5"
    )
    assert shown(entries["cleanup.policy"]) == (
        "compact,delete/1 cleanup.policy=compact,delete/1;log.cleanup.policy=delete/5"
    )
    assert shown(entries["min.cleanable.dirty.ratio"]) == (
        "1.0E-5/1 min.cleanable.dirty.ratio=1.0E-5/1;log.cleaner.min.cleanable.ratio=0.5/5"
    )


def test_a_value_from_a_coarser_unit_is_a_default_without_synonyms_as_in_kafka() -> None:
    entries = topic({}, cluster={}, broker={})
    assert shown(entries["retention.ms"]) == "86400000/5"
    assert shown(entries["segment.ms"]) == "604800000/5"
    assert shown(entries["flush.ms"]) == "9223372036854775807/5"


def test_topic_keys_are_never_read_only_and_internal_ones_appear_when_set() -> None:
    entries = topic({}, cluster={}, broker={})
    assert not any(entry.read_only or entry.sensitive for entry in entries.values())
    assert "internal.segment.bytes" not in entries
    set_one = topic({"internal.segment.bytes": "50"}, cluster={}, broker={})
    assert shown(set_one["internal.segment.bytes"]) == "50/1 internal.segment.bytes=50/1"


def test_broker_values() -> None:
    entries = broker()
    assert shown(entries["log.segment.bytes"]).startswith("4000000/2 log.segment.bytes=4000000/2;")
    assert shown(entries["log.cleaner.threads"]) == "2/2 log.cleaner.threads=2/2;log.cleaner.threads=1/5"
    assert shown(entries["max.connections"]) == "100/3 max.connections=100/3;max.connections=2147483647/5"
    assert shown(entries["log.retention.ms"]) == (
        "7200000/3 log.retention.ms=7200000/3;log.retention.hours=24/4;log.retention.hours=168/5"
    )
    assert shown(entries["log.dirs"]) == "None/5"
    assert shown(entries["log.cleaner.io.max.bytes.per.second"]).startswith("1.7976931348623157E308/5 ")


def test_what_may_change_at_run_time_is_not_read_only() -> None:
    entries = broker()
    assert entries["log.retention.hours"].read_only
    assert not entries["log.retention.ms"].read_only
    assert not entries["listeners"].read_only


def test_secrets_and_unknown_values_are_hidden_everywhere() -> None:
    entries = broker()
    for name in ("ssl.keystore.password", "custom.key", "listener.name.plaintext.ssl.keystore.password"):
        entry = entries[name]
        assert entry.sensitive and entry.value is None
        assert [synonym.value for synonym in entry.synonyms] == [None] * len(entry.synonyms) != []
    assert int(entries["custom.key"].type) == 0
    prefixed = entries["listener.name.plaintext.ssl.keystore.password"]
    assert [synonym.name for synonym in prefixed.synonyms] == [prefixed.name, "ssl.keystore.password"]


def test_the_cluster_default_lists_only_what_was_set() -> None:
    entries = {entry.name: shown(entry) for entry in describe_cluster_default(CLUSTER)}
    assert entries == {name: f"{value}/3 {name}={value}/3" for name, value in CLUSTER.items()}


def test_a_dynamic_secret_of_the_cluster_is_hidden() -> None:
    (entry,) = describe_cluster_default({"listener.name.a.ssl.key.password": "secret"})
    assert "secret" not in str(entry)
