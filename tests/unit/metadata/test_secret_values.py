"""Secret settings are encrypted in ZooKeeper. test_embedded.py has the same for a broker that runs alone."""

import asyncio
import secrets

import pytest
from tests.support.zookeeper import zookeeper

from barnabas.config.values import BrokerConfig
from barnabas.errors import KafkaError
from barnabas.metadata.configs import ConfigRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import BROKER_RESOURCE, TOPIC_RESOURCE
from barnabas.metadata.records import ConfigRecord, MetadataRecord, ScramCredentialRecord, TopicRecord
from barnabas.metadata.secret_values import PREFIX, SecretValues
from barnabas.metadata.store import RecordBatch, Snapshot, StoreError
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings
from barnabas.metadata.zookeeper.store import ZooKeeperStore

KEY = "listener.name.internal.ssl.keystore.password"
RECORDS: tuple[MetadataRecord, ...] = (
    ConfigRecord(BROKER_RESOURCE, "1", KEY, "open sesame äö" * 5),
    ConfigRecord(BROKER_RESOURCE, "1", "log.cleaner.threads", "2"),
    ConfigRecord(BROKER_RESOURCE, "2", KEY, None),
    ConfigRecord(TOPIC_RESOURCE, "a", "retention.ms", "5"),
    TopicRecord("a", b"1" * 16),
)
CREDENTIAL = ScramCredentialRecord("alice", 1, "4096,salt,stored,server")


def value_of(record: MetadataRecord) -> str:
    assert isinstance(record, ConfigRecord) and record.value is not None
    return record.value


def test_only_secrets_are_encrypted_and_each_time_differently() -> None:
    values = SecretValues.of(["key"], "cluster")
    sealed, again = values.sealed(RECORDS), values.sealed(RECORDS)
    assert sealed[1:] == list(RECORDS[1:])
    assert value_of(sealed[0]).startswith(PREFIX) and "sesame" not in value_of(sealed[0])
    assert value_of(sealed[0]) != value_of(again[0])
    assert values.opened(tuple(sealed)) == RECORDS
    # What is encrypted already stays as it is.
    assert values.sealed(sealed) == sealed


def test_credentials_are_encrypted_if_there_is_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    values = SecretValues.of(["key"], "cluster")
    (sealed,) = values.sealed([CREDENTIAL])
    assert isinstance(sealed, ScramCredentialRecord)
    assert sealed.credential is not None and sealed.credential.startswith(PREFIX)
    assert values.opened((sealed,)) == (CREDENTIAL,)
    moved = ScramCredentialRecord("bob", 1, sealed.credential)
    assert values.opened((moved,)) == (moved,)
    assert "without encryption" not in caplog.text
    assert SecretValues().sealed([CREDENTIAL, CREDENTIAL]) == [CREDENTIAL, CREDENTIAL]
    assert caplog.text.count("without encryption") <= 1
    removal = ScramCredentialRecord("alice", 1, None)
    assert values.sealed([removal]) == [removal]


@pytest.mark.parametrize("secret, cluster", [("other", "cluster"), ("key", "other")])
def test_another_secret_or_cluster_cannot_decrypt(secret: str, cluster: str) -> None:
    sealed = tuple(SecretValues.of(["key"], "cluster").sealed(RECORDS))
    assert SecretValues.of([secret], cluster).opened(sealed) == sealed
    assert SecretValues().opened(sealed) == sealed


def test_the_old_secret_can_still_decrypt_after_a_change() -> None:
    sealed = tuple(SecretValues.of(["old"], "cluster").sealed(RECORDS))
    both = SecretValues.of(["new", "old"], "cluster")
    assert both.opened(sealed) == RECORDS
    rewritten = tuple(both.sealed(both.opened(sealed)))
    assert SecretValues.of(["new", None], "cluster").opened(rewritten) == RECORDS


def test_a_changed_or_moved_value_is_not_decrypted() -> None:
    values = SecretValues.of(["key"], "cluster")
    sealed = values.sealed(RECORDS[:1])[0]
    text = value_of(sealed)
    for changed in (text[:-6] + "AAAA==", text[:-4], PREFIX, PREFIX + "%%%", PREFIX + "é"):
        record = ConfigRecord(BROKER_RESOURCE, "1", KEY, changed)
        assert values.opened((record,)) == (record,)
    for moved in (
        ConfigRecord(BROKER_RESOURCE, "2", KEY, text),
        ConfigRecord(BROKER_RESOURCE, "1", "x", text),
    ):
        assert values.opened((moved,)) == (moved,)


def test_without_a_key_a_secret_is_refused() -> None:
    with pytest.raises(StoreError, match=r"set password\.encoder\.secret"):
        SecretValues().sealed(RECORDS)
    alone = ConfigRules(lambda: BrokerConfig({}))
    alone.check_broker("1", {KEY: "x"})
    member = ConfigRules(lambda: BrokerConfig({"zookeeper.connect": "a:1"}))
    with pytest.raises(KafkaError, match=r"set password\.encoder\.secret to the same value on all brokers"):
        member.check_broker("1", {KEY: "x"})
    with_secret = {"zookeeper.connect": "a:1", "password.encoder.secret": "s"}
    ConfigRules(lambda: BrokerConfig(with_secret)).check_broker("1", {KEY: "x"})


def test_zookeeper_has_no_secret_and_the_brokers_have_it() -> None:
    connect = f"{zookeeper().connect}/secrets/{secrets.token_hex(4)}"
    settings = ZooKeeperSettings(connect, 10_000, secrets=("the-key", None))

    async def story() -> None:
        store = await ZooKeeperStore.open(settings)
        epoch = (await store.campaign(1)).epoch
        await store.append(RECORDS, 0, epoch)
        data, _ = await store.connection.call("get", f"{settings.chroot}/barnabas/log/0000000000")
        assert b"sesame" not in data and PREFIX.encode() in data
        assert list(await store.read(0)) == [RecordBatch(0, RECORDS)]
        other = await ZooKeeperStore.open(ZooKeeperSettings(connect, 10_000, secrets=("wrong",)))
        [batch] = await other.read(0)
        assert value_of(batch.records[0]).startswith(PREFIX)
        await store.snapshot(MetadataImage().apply(RECORDS), epoch)
        [snapshot] = await store.read(0)
        assert isinstance(snapshot, Snapshot) and RECORDS[0] in snapshot.records
        assert "the-key" not in repr(settings)
        await other.close()
        await store.close()

    asyncio.run(story())
