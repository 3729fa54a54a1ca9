"""What /health and /ready of a broker check.

/health fails if a restart may help: no log directory can be used. That it is answered at all shows that the
event loop runs. /ready fails while clients should use other brokers: during the start, while the controller
keeps this broker fenced, and from the beginning of a stop on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.server import Check

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def health(broker: Broker) -> Iterator[Check]:
    yield Check("event loop", None)
    yield _log_directories(broker)


def readiness(broker: Broker) -> Iterator[Check]:
    yield _started(broker)
    yield _unfenced(broker)
    yield _log_directories(broker)


def _started(broker: Broker) -> Check:
    if broker.is_ready:
        return Check("started", None)
    if broker.loading is not None:
        return Check("started", f"the broker is starting: {broker.loading}")
    return Check("started", "the broker is starting or stopping")


def _unfenced(broker: Broker) -> Check:
    is_fenced = not hasattr(broker, "metadata") or broker.life.is_fenced
    return Check("unfenced", "the controller has not unfenced this broker yet" if is_fenced else None)


def _log_directories(broker: Broker) -> Check:
    if not hasattr(broker, "logs"):
        return Check("log directories", None)
    offline = ", ".join(map(str, broker.logs.offline_dirs))
    if any(directory.online for directory in broker.logs.directories):
        return Check("log directories", None, f"offline: {offline}" if offline else None)
    return Check("log directories", f"none can be used; offline: {offline}")
