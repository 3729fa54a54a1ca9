"""Requests to APIs that a broker without security and with one replica answers with an error or with nothing.

ANSWERS holds what Apache Kafka 4.3.1 answers, byte for byte; our broker must answer the same. `make
test-java` asks a running Kafka again. No request changes anything."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.raw_client import RawClient

from barnabas.wire.apis import api_of
from barnabas.wire.message import Message
from barnabas.wire.messages import alter_client_quotas as quota_changes
from barnabas.wire.messages import alter_partition_reassignments as moves
from barnabas.wire.messages import alter_replica_log_dirs as log_dirs
from barnabas.wire.messages import alter_user_scram_credentials as scram_changes
from barnabas.wire.messages import create_acls as acl_creations
from barnabas.wire.messages import create_delegation_token as new_tokens
from barnabas.wire.messages import create_topics, sasl_authenticate, sasl_handshake, unregister_broker
from barnabas.wire.messages import delete_acls as acl_deletions
from barnabas.wire.messages import describe_acls as acls
from barnabas.wire.messages import describe_client_quotas as quotas
from barnabas.wire.messages import describe_delegation_token as tokens
from barnabas.wire.messages import describe_user_scram_credentials as scram
from barnabas.wire.messages import elect_leaders as elections
from barnabas.wire.messages import expire_delegation_token as token_ends
from barnabas.wire.messages import list_partition_reassignments as listed_moves
from barnabas.wire.messages import renew_delegation_token as token_renewals
from barnabas.wire.messages import update_features as features

# Written by `python -m tests.java.record_answers`: a line for each call, the answer in hexadecimal digits.
ANSWERS = Path(__file__).with_name("unsecured_answers.txt")
# Both brokers must have this id, and TOPIC as their only topic.
BROKER_ID, ABSENT_BROKER_ID = 1, 99
TOPIC, ABSENT = "reassigned", "absent"
PARTITION_COUNT = 2
CREATE_TOPICS = 19


class Call(NamedTuple):
    """One request in one version. `ident` names it in the list of recorded answers."""

    ident: str
    api_key: int
    version: int
    request: Message


def prepare(client: RawClient) -> None:
    """Make the topic that the requests speak of."""
    topic = create_topics.CreatableTopic(name=TOPIC, num_partitions=PARTITION_COUNT, replication_factor=1)
    answer = client.call(CREATE_TOPICS, 7, create_topics.CreateTopicsRequest(topics=[topic]))
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message


def recorded_answers() -> dict[str, str]:
    lines = (line.split(" = ") for line in ANSWERS.read_text().splitlines())
    return {ident: answer for ident, answer in lines}


def answers_of(client: RawClient, log_dir: str) -> dict[str, str]:
    """What the broker answers to every call: the whole frame behind the correlation id."""
    return {call.ident: answer_to(client, call) for call in calls(log_dir)}


def answer_to(client: RawClient, call: Call) -> str:
    client.send(call.api_key, call.version, call.request)
    return client.receive_frame()[4:].hex()


def calls(log_dir: str) -> Iterator[Call]:
    """Every request in every version; `log_dir` is the directory in which the broker has the topic."""
    tables = (_acls(), _tokens(), _sasl(), _elections(), _moves(), _log_dirs(log_dir), _quotas(), _users())
    for name, module, request in chain(*tables, _features(), _brokers()):
        api = api_of(module.API_KEY)
        assert api is not None
        for version in range(api.first, api.last + 1):
            yield Call(f"{api.name} v{version}: {name}", api.key, version, request)


Row = tuple[str, Any, Message]


def _acls() -> Iterator[Row]:
    yield (
        "topics",
        acls,
        acls.DescribeAclsRequest(
            resource_type_filter=2,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        ),
    )
    creation = acl_creations.AclCreation(
        resource_type=2, resource_name=TOPIC, principal="User:a", host="*", operation=3, permission_type=3
    )
    for count in range(3):
        yield f"{count}", acl_creations, acl_creations.CreateAclsRequest(creations=[creation] * count)
    deletion = acl_deletions.DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter=TOPIC,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    for count in range(3):
        yield f"{count}", acl_deletions, acl_deletions.DeleteAclsRequest(filters=[deletion] * count)


def _tokens() -> Iterator[Row]:
    renewer = new_tokens.CreatableRenewers(principal_type="User", principal_name="b")
    yield (
        "of the user",
        new_tokens,
        new_tokens.CreateDelegationTokenRequest(
            owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=-1
        ),
    )
    yield (
        "of another",
        new_tokens,
        new_tokens.CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name="a", renewers=[renewer], max_lifetime_ms=1000
        ),
    )
    yield "token", token_renewals, token_renewals.RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=-1)
    yield "token", token_ends, token_ends.ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=-1)
    yield "all", tokens, tokens.DescribeDelegationTokenRequest(owners=None)
    yield "none", tokens, tokens.DescribeDelegationTokenRequest(owners=[])


def _sasl() -> Iterator[Row]:
    yield "PLAIN", sasl_handshake, sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN")
    yield (
        "bytes",
        sasl_authenticate,
        sasl_authenticate.SaslAuthenticateRequest(auth_bytes=b"\0user\0password"),
    )


def _elections() -> Iterator[Row]:
    def election(*topics: tuple[str, list[int]], kind: int = 0) -> Message:
        partitions = [elections.TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in topics]
        return elections.ElectLeadersRequest(election_type=kind, topic_partitions=partitions)

    yield "of some", elections, election((TOPIC, [1, 0, 5]), (ABSENT, [0]))
    yield "of none", elections, election()
    yield "of no partition", elections, election((TOPIC, []))
    yield "of all", elections, elections.ElectLeadersRequest(topic_partitions=None)
    # Version 0 has no type and means the first.
    yield "unclean", elections, election((TOPIC, [0]), (ABSENT, [0]), kind=1)
    yield "unclean, of all", elections, elections.ElectLeadersRequest(election_type=1, topic_partitions=None)
    yield "of unknown type", elections, election((TOPIC, [0]), (ABSENT, [0]), kind=7)
    yield (
        "of unknown type, of all",
        elections,
        elections.ElectLeadersRequest(election_type=7, topic_partitions=None),
    )


def _moves() -> Iterator[Row]:
    def move(topic: str, replicas_of: dict[int, list[int] | None], may_change: bool = True) -> Message:
        partitions = [
            moves.ReassignablePartition(partition_index=index, replicas=replicas)
            for index, replicas in replicas_of.items()
        ]
        return moves.AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=may_change,
            topics=[moves.ReassignableTopic(name=topic, partitions=partitions)],
        )

    yield "nothing", moves, moves.AlterPartitionReassignmentsRequest(allow_replication_factor_change=False)
    yield "no partition", moves, move(TOPIC, {})
    yield "to where it is", moves, move(TOPIC, {1: [BROKER_ID], 0: [BROKER_ID]})
    yield "as many replicas", moves, move(TOPIC, {0: [BROKER_ID]}, may_change=False)
    yield "cancelled", moves, move(TOPIC, {0: None, 1: None})
    for name, replicas in (
        ("to an absent broker", [ABSENT_BROKER_ID]),
        ("to two brokers", [BROKER_ID, ABSENT_BROKER_ID]),
        ("to one broker twice", [BROKER_ID, BROKER_ID]),
        ("to broker -1", [-1]),
        ("to no broker", []),
    ):
        yield name, moves, move(TOPIC, {0: replicas})
    yield "of absent partitions", moves, move(TOPIC, {7: [BROKER_ID], 8: None})
    yield "of an absent topic", moves, move(ABSENT, {0: [BROKER_ID]})
    yield "all", listed_moves, listed_moves.ListPartitionReassignmentsRequest(topics=None)
    yield "none", listed_moves, listed_moves.ListPartitionReassignmentsRequest(topics=[])
    named = [
        listed_moves.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 9])
        for name in (TOPIC, ABSENT)
    ]
    yield "some", listed_moves, listed_moves.ListPartitionReassignmentsRequest(topics=named)


def _log_dirs(log_dir: str) -> Iterator[Row]:
    def move(*targets: tuple[str, str, list[int]]) -> Message:
        return log_dirs.AlterReplicaLogDirsRequest(
            dirs=[
                log_dirs.AlterReplicaLogDir(
                    path=path, topics=[log_dirs.AlterReplicaLogDirTopic(name=topic, partitions=numbers)]
                )
                for path, topic, numbers in targets
            ]
        )

    yield "nothing", log_dirs, move()
    yield "to where it is", log_dirs, move((log_dir, TOPIC, [0]))
    yield "to an absent directory", log_dirs, move(("/nowhere", TOPIC, [0]))
    yield "to a path with a slash behind", log_dirs, move((log_dir + "/", TOPIC, [0]))
    yield "of an absent partition", log_dirs, move((log_dir, TOPIC, [9]))
    yield "of an absent topic", log_dirs, move((log_dir, ABSENT, [0]))
    yield "of an absent topic to an absent directory", log_dirs, move(("/nowhere", ABSENT, [0]))
    yield "of a partition named twice", log_dirs, move((log_dir, TOPIC, [0, 0]), ("/nowhere", TOPIC, [0]))


def _quotas() -> Iterator[Row]:
    def described(*parts: tuple[str, int, str | None], strict: bool = False) -> Message:
        components = [
            quotas.ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in parts
        ]
        return quotas.DescribeClientQuotasRequest(components=components, strict=strict)

    yield "all", quotas, described()
    yield "all, strict", quotas, described(strict=True)
    for name, parts in {
        "a user": [("user", 0, "a")],
        "the default client id": [("client-id", 1, None)],
        "any address": [("ip", 2, None)],
        "user and client id": [("user", 2, None), ("client-id", 0, "c")],
        "unknown entity": [("planet", 2, None)],
        "empty entity": [("", 2, None)],
        "unknown match": [("user", 7, None)],
        "exact without a name": [("user", 0, None)],
        "default with a name": [("user", 1, "a")],
        "any with a name": [("user", 2, "a")],
        "the same entity twice": [("user", 0, "a"), ("user", 0, "a")],
        "user and address": [("user", 0, "a"), ("ip", 0, "127.0.0.1")],
    }.items():
        yield name, quotas, described(*parts)
    yield from _quota_changes()


def _quota_changes() -> Iterator[Row]:
    removal = quota_changes.OpData(key="producer_byte_rate", remove=True)

    def change(*entities: list[tuple[str, str | None]], removals: int = 1) -> Message:
        entries = [
            quota_changes.RequestEntryData(
                entity=[quota_changes.EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
                ops=[removal] * removals,
            )
            for parts in entities
        ]
        return quota_changes.AlterClientQuotasRequest(entries=entries, validate_only=True)

    yield "nothing", quota_changes, change()
    yield "removed", quota_changes, change([("user", "a")])
    yield "removed, the default", quota_changes, change([("client-id", None)])
    yield "removed, of two parts", quota_changes, change([("user", "u"), ("client-id", "c")])
    yield "no change", quota_changes, change([("user", "a")], removals=0)
    yield "of nobody", quota_changes, change([])
    yield "of an unknown entity", quota_changes, change([("planet", "x")])
    yield "of an empty name", quota_changes, change([("user", "")])
    yield "of the same user twice", quota_changes, change([("user", "a")], [("user", "a")])


def _users() -> Iterator[Row]:
    def described(*names: str) -> Message:
        return scram.DescribeUserScramCredentialsRequest(users=[scram.UserName(name=name) for name in names])

    yield "all", scram, scram.DescribeUserScramCredentialsRequest(users=None)
    yield "none", scram, described()
    yield "one", scram, described("alice")
    yield "twice", scram, described("alice", "alice")

    def deleted(name: str, mechanism: int = 1) -> Message:
        deletion = scram_changes.ScramCredentialDeletion(name=name, mechanism=mechanism)
        return scram_changes.AlterUserScramCredentialsRequest(deletions=[deletion, deletion])

    def upserted(name: str = "alice", mechanism: int = 1, iterations: int = 4096, times: int = 1) -> Message:
        upsertion = scram_changes.ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"secret"
        )
        return scram_changes.AlterUserScramCredentialsRequest(upsertions=[upsertion] * times)

    yield "nothing", scram_changes, scram_changes.AlterUserScramCredentialsRequest()
    yield "delete", scram_changes, deleted("alice")
    yield "delete without a name", scram_changes, deleted("")
    yield "delete an unknown mechanism", scram_changes, deleted("alice", mechanism=7)
    yield "set without a name", scram_changes, upserted(name="")
    yield "set an unknown mechanism", scram_changes, upserted(mechanism=0)
    yield "too few iterations", scram_changes, upserted(iterations=4095)
    yield "too many iterations", scram_changes, upserted(mechanism=2, iterations=16385)
    yield "set twice", scram_changes, upserted(times=2)


def _features() -> Iterator[Row]:
    def update(*levels: tuple[str, int], upgrade_type: int = 1) -> Message:
        updates = [
            features.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
            for name, level in levels
        ]
        return features.UpdateFeaturesRequest(feature_updates=updates, validate_only=True)

    yield "nothing", features, update()
    yield "as it is", features, update(("group.version", 1), ("transaction.version", 2))
    yield "too high", features, update(("transaction.version", 3))
    yield "lower", features, update(("transaction.version", 1))
    yield "negative", features, update(("group.version", -1))
    yield "unknown", features, update(("group.version", 1), ("nonsense", 1))
    yield "unknown, to 0", features, update(("nonsense", 0))
    # Version 0 has no type of update.
    yield "unknown type of update", features, update(("group.version", 1), upgrade_type=9)


def _brokers() -> Iterator[Row]:
    for broker_id in (ABSENT_BROKER_ID, -1):
        yield (
            str(broker_id),
            unregister_broker,
            unregister_broker.UnregisterBrokerRequest(broker_id=broker_id),
        )
