"""A broker or a cluster for tests, ours and our users': `with barnabas.testing.Broker() as broker:`."""

from typing import TYPE_CHECKING, Any

from barnabas.testing.broker import Broker

if TYPE_CHECKING:
    from barnabas.testing.cluster import Cluster
    from barnabas.testing.relay import Quality

__all__ = ["Broker", "Cluster", "Quality"]


def __getattr__(name: str) -> Any:
    # Imported late: a test with one broker needs neither the clients nor ZooKeeper.
    if name == "Cluster":
        from barnabas.testing.cluster import Cluster

        return Cluster
    if name == "Quality":
        from barnabas.testing.relay import Quality

        return Quality
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
