"""Brokers that share a machine share its processors."""

import asyncio

from barnabas.metadata.image import MetadataImage
from barnabas.net.spinning import SpinningEventLoop


def brokers_on_this_machine(image: MetadataImage, broker_id: int) -> int:
    """How many living brokers have the same host name as this one; this one counts."""
    me = image.brokers.get(broker_id)
    if me is None:
        return 1
    hosts = {listener.host for listener in me.listeners}
    others = (broker for broker in image.brokers.values() if broker.id != broker_id and not broker.fenced)
    return 1 + sum(any(listener.host in hosts for listener in broker.listeners) for broker in others)


def share_processors(image: MetadataImage, broker_id: int) -> None:
    """A broker that polls for its next event must not take the processor from the broker it waits for."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, SpinningEventLoop):
        loop.share_processors(brokers_on_this_machine(image, broker_id))
