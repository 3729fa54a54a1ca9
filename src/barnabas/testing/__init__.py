"""A broker or a cluster for tests, ours and our users': `with barnabas.testing.Broker() as broker:`."""

from typing import TYPE_CHECKING, Any

from barnabas.testing.broker import Broker

if TYPE_CHECKING:
    from barnabas.testing.cluster import Cluster

__all__ = ["Broker", "Cluster"]


def __getattr__(name: str) -> Any:
    # Imported late: a test with one broker needs neither the clients nor ZooKeeper.
    if name == "Cluster":
        from barnabas.testing.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
