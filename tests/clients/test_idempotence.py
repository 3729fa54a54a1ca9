"""Each record exactly once, although acknowledgements are lost on the way."""

import pytest
from tests.clients.client import Client, Message, Sending, numbered
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import CLIENTS
from tests.clients.lossy_proxy import LossyProxy

IDEMPOTENT = Sending(idempotent=True)


def test_idempotent_producer_delivers(client: Client, topic: str) -> None:
    assert client.produce(topic, numbered(300), IDEMPOTENT) == list(range(300))
    assert client.offset_range(topic) == (0, 300)


def test_two_idempotent_producers_share_a_partition(client: Client, topic: str) -> None:
    for turn in range(3):
        first = turn * 10
        assert client.produce(topic, numbered(10), IDEMPOTENT) == list(range(first, first + 10))


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_lost_acknowledgements_make_no_duplicates(bootstrap: str, topic: str, name: str, codec: str) -> None:
    sent = numbered(60)
    with LossyProxy(bootstrap, acks_to_lose=3) as proxy:
        sending = Sending(idempotent=True, compression=codec, linger_ms=0)
        offsets = CLIENTS[name](proxy.bootstrap).produce(topic, sent, sending)
        assert proxy.acks_lost == 3
    assert offsets == list(range(60))
    received = ConfluentClient(bootstrap).read(topic, 60)
    assert [message.value for message in received] == [message.value for message in sent]
    assert ConfluentClient(bootstrap).offset_range(topic) == (0, 60)


def test_without_idempotence_the_proxy_does_cause_duplicates(bootstrap: str, topic: str) -> None:
    """Without idempotence, the duplicates that the test above excludes do happen."""
    with LossyProxy(bootstrap, acks_to_lose=1) as proxy:
        ConfluentClient(proxy.bootstrap).produce(topic, [Message(b"once?")], Sending(linger_ms=0))
        assert proxy.acks_lost == 1
    assert ConfluentClient(bootstrap).offset_range(topic) == (0, 2)
