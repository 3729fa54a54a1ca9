"""transactions with a broker: listing, describing and ending them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Ran, Run
from tests.clients.broker_process import running_broker
from tests.support.raw_calls import new_topic
from tests.support.raw_client import RawClient
from tests.support.raw_transactions import OLD, RawTransactional

import barnabas
from barnabas.client.admin import NewTopic
from barnabas.errors import ErrorCode, KafkaError

Tool = Callable[..., Ran]


@pytest.fixture
def topic(admin: barnabas.Admin, topic_name: str) -> str:
    admin.create_topics([NewTopic(topic_name, partitions=2)])
    return topic_name


@pytest.fixture
def tool(run: Run, bootstrap: str) -> Tool:
    def tool(*arguments: str) -> Ran:
        return run("transactions", "--bootstrap-server", bootstrap, *arguments)

    return tool


@pytest.fixture
def producer(bootstrap: str, topic: str) -> Iterator[barnabas.Producer]:
    """A producer with an open transaction in both partitions; its transactional id is the topic's name."""
    with barnabas.Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0)
        producer.send(topic, b"open", partition=1)
        producer.flush()
        yield producer


def cells(line: str) -> list[str]:
    return [cell.rstrip(" ") for cell in line.split("\t")][:-1]


def test_transactions_are_listed(tool: Tool, producer: barnabas.Producer, topic: str) -> None:
    listed = tool("list")
    assert (listed.code, listed.err) == (0, "")
    assert cells(listed.lines[0]) == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    (mine,) = [cells(line) for line in listed.lines if line.startswith(topic)]
    assert mine[1] == "1" and mine[3] == "Ongoing"
    only = json.loads(tool("list", "--transactional-id-pattern", f"{topic[:-3]}.*", "--json").out)
    assert [(each["transactionalId"], each["transactionState"]) for each in only] == [(topic, "Ongoing")]
    assert topic not in tool("list", "--duration-filter", "3600000").out


def test_a_transaction_is_described(tool: Tool, producer: barnabas.Producer, topic: str) -> None:
    header, row = map(cells, tool("describe", "--transactional-id", topic).lines)
    shown = dict(zip(header, row, strict=True))
    assert (shown["TransactionalId"], shown["TransactionState"]) == (topic, "Ongoing")
    assert shown["TopicPartitions"] == f"{topic}-0,{topic}-1"
    assert int(shown["TransactionDurationMs"]) >= 0 and shown["TransactionTimeoutMs"] == "60000"
    producer.commit_transaction()
    (after,) = json.loads(tool("describe", "--transactional-id", topic, "--json").out)
    assert after["transactionState"] in ("PrepareCommit", "CompleteCommit")
    missing = tool("describe", "--transactional-id", "nobody")
    assert missing.code == 1
    assert missing.err.startswith(
        "Error: Failed to describe transaction state of transactional-id `nobody`: "
    )


def test_producers_are_described(tool: Tool, producer: barnabas.Producer, topic: str) -> None:
    where = ("describe-producers", "--topic", topic, "--partition", "0")
    header, row = map(cells, tool(*where).lines)
    shown = dict(zip(header, row, strict=True))
    assert shown["CurrentTransactionStartOffset"] == "0" and shown["LastSequence"] == "0"
    assert shown["LatestCoordinatorEpoch"] == "-1"
    assert json.loads(tool(*where, "--broker-id", "1", "--json").out)[0]["currentTransactionStartOffset"] == 0
    producer.abort_transaction()
    assert cells(tool(*where).lines[1])[-1] == "None"
    for wrong in (("--topic", "nowhere", "--partition", "0"), (*where[1:], "--broker-id", "77")):
        refused = tool("describe-producers", *wrong)
        assert refused.code == 1 and "Failed to describe producers for partition " in refused.err


def test_a_transaction_is_aborted(tool: Tool, producer: barnabas.Producer, topic: str) -> None:
    """The tool writes a marker without the coordinator: the transaction ends in that partition only."""
    where = ("--topic", topic, "--partition", "0")
    wrong = tool("abort", *where, "--start-offset", "9")
    assert wrong.code == 1
    assert f"Could not find any open transactions starting at offset 9 on partition {topic}-0" in wrong.err
    assert tool("abort", *where, "--start-offset", "0").code == 0
    assert cells(tool("describe-producers", *where).lines[1])[-1] == "None"
    (state,) = json.loads(tool("describe-producers", "--topic", topic, "--partition", "1", "--json").out)
    given = ("--producer-id", str(state["producerId"]), "--producer-epoch", str(state["producerEpoch"]))
    other = ("abort", "--topic", topic, "--partition", "1")
    assert "Missing required argument --coordinator-epoch" in tool(*other, *given).err
    assert tool(*other, *given, "--coordinator-epoch", "-1").code == 0
    assert "must be identified either with --start-offset" in tool(*other).err


def test_a_healthy_transaction_does_not_hang(tool: Tool, producer: barnabas.Producer, topic: str) -> None:
    result = tool("find-hanging", "--topic", topic, "--max-transaction-timeout", "-1")
    assert (result.code, len(result.lines)) == (0, 1)
    assert cells(result.lines[0])[-1] == "Duration(min)"
    assert tool("find-hanging", "--broker-id", "1", "--json").code == 0
    assert "requires either --topic or --broker-id" in tool("find-hanging").err
    assert "requires --topic" in tool("find-hanging", "--broker-id", "1", "--partition", "0").err


@pytest.mark.parametrize(
    "verb, flag",
    [("force-terminate", "--transactional-id"), ("forceTerminateTransaction", "--transactionalId")],
)
def test_a_producer_is_fenced(
    tool: Tool, producer: barnabas.Producer, topic: str, verb: str, flag: str
) -> None:
    assert tool(verb, flag, topic).code == 0
    (after,) = json.loads(tool("describe", "--transactional-id", topic, "--json").out)
    assert after["topicPartitions"] == []
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    missing = tool(verb, flag, "nobody")
    assert missing.code == 1 and "Failed to force terminate transactionalId `nobody`" in missing.err
    assert "nobody" not in tool("list").out


def test_the_address_may_be_after_the_verb(run: Run, bootstrap: str) -> None:
    assert run("transactions", "list", "--bootstrap-server", bootstrap).code == 0
    missing = run("transactions", "list")
    assert missing.code == 1 and "are required: --bootstrap-server" in missing.err


def test_verbs_are_completed(run: Run) -> None:
    (line,) = [line for line in run("completion", "bash").lines if line.strip().startswith("transactions)")]
    assert {"find-hanging", "--start-offset", "--bootstrap-server"} <= set(line.replace('"', " ").split())
    assert "-a find-hanging" in run("completion", "fish").out


def test_the_error_for_a_wrong_verb_is_one_sentence(tool: Tool) -> None:
    assert tool().err.count("\n") == 1
    assert "invalid choice: 'lost'" in tool("lost").err


def test_a_hanging_transaction_is_found_and_repaired(run: Run, tmp_path: Path) -> None:
    """Without verification, a record can begin a transaction that the coordinator does not know."""
    careless = {"transaction.partition.verification.enable": "false"}
    with running_broker(tmp_path, careless) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        with RawClient(host, int(port)) as client:
            topic = new_topic(client)
            producer = RawTransactional(client, "hanging", OLD)
            producer.init()
            assert producer.produce(topic, b"never ended") == ErrorCode.NONE

        def tool(*arguments: str) -> Ran:
            return run("transactions", "--bootstrap-server", broker.bootstrap, *arguments)

        search = ("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "-1")
        (transaction,) = json.loads(tool(*search, "--json").out)
        assert (transaction["topic"], transaction["partition"], transaction["startOffset"]) == (
            topic.name,
            0,
            0,
        )
        assert cells(tool(*search).lines[1])[:2] == [topic.name, "0"]
        where = ("--topic", topic.name, "--partition", "0")
        assert tool("abort", *where, "--start-offset", str(transaction["startOffset"])).code == 0
        assert json.loads(tool(*search, "--json").out) == []
