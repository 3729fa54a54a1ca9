"""When brokers on one machine poll for events."""

import asyncio

import pytest

from barnabas.broker import processors
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import BrokerRecord, Listener
from barnabas.net import spinning


def image(*hosts: str, fenced: int = 0) -> MetadataImage:
    """Brokers 1, 2, ... on these hosts; the last ones are fenced."""
    return MetadataImage().apply(
        BrokerRecord(
            number, 0, b"i" * 16, (Listener("PLAINTEXT", host, 9092),), fenced=number > len(hosts) - fenced
        )
        for number, host in enumerate(hosts, 1)
    )


def test_only_living_brokers_with_the_same_host_share_the_machine() -> None:
    assert processors.brokers_on_this_machine(image("a"), 1) == 1
    assert processors.brokers_on_this_machine(image("a", "b", "a", "a", fenced=1), 1) == 2
    assert processors.brokers_on_this_machine(image("a", "b"), 9) == 1


@pytest.mark.parametrize(("hosts", "may_spin"), [(("a",), True), (("a", "b"), True), (("a", "a"), False)])
def test_a_broker_polls_only_if_there_are_processors_for_all(
    hosts: tuple[str, ...], may_spin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spinning.os, "cpu_count", lambda: 2)

    async def story() -> None:
        processors.share_processors(image(*hosts), 1)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, spinning.SpinningEventLoop)
        assert loop._spinning_selector.may_spin == may_spin

    with asyncio.Runner(loop_factory=spinning.new_event_loop) as runner:
        runner.run(story())
