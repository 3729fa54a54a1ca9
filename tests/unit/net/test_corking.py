"""Requests that a connection collects between cork() and uncork()."""

import asyncio
from typing import Any, cast

import pytest

from barnabas.errors import KafkaError
from barnabas.net.agreeing import VersionRange
from barnabas.net.broker_connection import BrokerConnection, ConnectionSettings
from barnabas.wire.messages import produce


class _Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def get_extra_info(self, _: str) -> Any:
        return self

    def setsockopt(self, *_: object) -> None:
        pass

    def write(self, data: memoryview) -> None:
        self.written.append(bytes(data))


def _request(records: bytes, index: int = 0) -> produce.ProduceRequest:
    data = produce.PartitionProduceData(index=index, records=memoryview(records))
    topic = produce.TopicProduceData(name="topic", partition_data=[data])
    return produce.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])


def _connection() -> tuple[BrokerConnection, _Transport]:
    connection = BrokerConnection("broker", 9092, ConnectionSettings(client_id="test"))
    transport = _Transport()
    connection.connection_made(cast(asyncio.Transport, transport))
    connection.versions = {produce.API_KEY: VersionRange(3, 12)}
    return connection, transport


def _ask(connection: BrokerConnection, request: produce.ProduceRequest) -> None:
    connection.ask(produce.API_KEY, request, lambda _: None)


def test_corked_requests_are_written_at_once_and_are_the_same_bytes() -> None:
    async def run() -> None:
        plain, expected = _connection()
        corked, transport = _connection()
        corked.cork()
        for records in (b"a" * 5000, b"b" * 3):
            _ask(plain, _request(records))
            _ask(corked, _request(records))
        assert transport.written == []
        corked.uncork()
        assert transport.written == [b"".join(expected.written)]
        assert corked.pending == plain.pending == 2

    asyncio.run(run())


def test_after_a_corked_request_that_cannot_be_encoded_others_are_written() -> None:
    async def run() -> None:
        connection, transport = _connection()
        connection.cork()
        with pytest.raises(KafkaError):
            _ask(connection, _request(b"a", index=2**40))
        connection.uncork()
        assert transport.written == []
        _ask(connection, _request(b"b" * 10))
        assert len(transport.written) == 1

    asyncio.run(run())
