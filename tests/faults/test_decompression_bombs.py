"""Small batches that expand to very much: they are decompressed in a thread, and nobody else waits for it."""

from collections.abc import Callable, Iterator

import pytest
from tests.support.frame_probe import TRIES, WAIT_SECONDS_MAX, Probe
from tests.support.raw_calls import PRODUCE, Topic, batch_of, new_topic, produce_request
from tests.support.raw_client import RawClient

from barnabas.clock import SystemClock
from barnabas.records.builder import build_batch
from barnabas.testing import Broker
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

EXPANDED_BYTES = 30_000_000
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"message.max.bytes": "3000000"}, subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output(), broker.output()[-3000:]


def waited(broker: Broker, topic: Topic, probed: Topic, requests: list[ProduceRequest]) -> float:
    """The longest wait of another client while these requests are answered, which must be in order."""
    with (
        RawClient("127.0.0.1", broker.port, timeout_seconds=120) as client,
        Probe(broker, probed) as probe,
    ):
        sent = [client.send(PRODUCE, 9, request) for request in requests]
        offsets = []
        for correlation_id in sent:
            received, answer = client.receive(PRODUCE, 9)
            assert received == correlation_id
            answers = [part for topic in answer.responses for part in topic.partition_responses]
            assert {part.error_code for part in answers} == {0}
            offsets += [part.base_offset for part in answers if part.index == 0]
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
    return probe.longest_seconds


def shortest(broker: Broker, requests_of: Callable[[Topic], list[ProduceRequest]]) -> float:
    """The shortest of several tries: a wait that the machine caused does not come back in every try."""
    with RawClient("127.0.0.1", broker.port) as client:
        topic, probed = new_topic(client, 50), new_topic(client)
    waits = []
    for _ in range(TRIES):
        waits.append(waited(broker, topic, probed, requests_of(topic)))
        if waits[-1] <= WAIT_SECONDS_MAX:
            break
    return min(waits)


class RequestsOf:
    """Bombs with plain batches in between, so that the order can be seen."""

    def __init__(self, codec: int) -> None:
        now_ms = SystemClock().now_ms()
        bomb = build_batch([(now_ms, b"key", bytes(EXPANDED_BYTES), [])], compression=codec)
        self.batches = [bytes(bomb), batch_of(b"plain")] * 3

    def __call__(self, topic: Topic) -> list[ProduceRequest]:
        return [produce_request(topic, batch, acks=1) for batch in self.batches]


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_makes_nobody_wait_and_keeps_its_place(broker: Broker, codec: str) -> None:
    requests_of = RequestsOf(CODECS[codec])
    assert len(requests_of.batches[0]) < EXPANDED_BYTES // 10
    assert shortest(broker, requests_of) <= WAIT_SECONDS_MAX


@pytest.mark.parametrize("codec", CODECS)
def test_a_request_of_very_many_small_compressed_batches_makes_nobody_wait(
    broker: Broker, codec: str
) -> None:
    now_ms = SystemClock().now_ms()
    batch = bytes(build_batch([(now_ms, b"key", bytes(100_000), [])], compression=CODECS[codec]))

    def requests_of(topic: Topic) -> list[ProduceRequest]:
        parts = [PartitionProduceData(index=index % 50, records=batch) for index in range(1000)]
        data = TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=parts)
        return [ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[data])]

    assert shortest(broker, requests_of) <= WAIT_SECONDS_MAX
