"""Leader epochs over restarts: kept after a clean stop, raised after kill -9, and sent to clients."""

from tests.support.raw_client import RawClient

from barnabas.testing import Broker
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def epoch_of(broker: Broker, topic: str) -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
    with RawClient("127.0.0.1", broker.port) as client:
        epoch: int = client.call(3, 12, request).topics[0].partitions[0].leader_epoch
        return epoch


def test_a_clean_stop_keeps_the_epoch_and_a_kill_raises_it() -> None:
    with Broker(subprocess=True) as broker:
        first = epoch_of(broker, "orders")
        broker.restart()
        assert epoch_of(broker, "orders") == first
        broker.kill()
        broker.start()
        assert epoch_of(broker, "orders") == first + 1
