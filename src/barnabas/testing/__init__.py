"""A broker for tests, ours and our users': `with barnabas.testing.Broker() as broker:`."""

from barnabas.testing.broker import Broker

__all__ = ["Broker"]
