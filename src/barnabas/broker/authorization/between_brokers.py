"""The requests of brokers (AlterPartition, Envelope, BrokerHeartbeat, AllocateProducerIds) are served only on
the listener through which brokers talk to each other, with and without an authorizer. On any other listener
the connection is closed, as in Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.broker.dispatch import Refusal

if TYPE_CHECKING:
    from barnabas.broker.call import Api, Call


def on_their_listener(rows: Mapping[int, Api], listener_name: str) -> dict[int, Api]:
    """The same APIs; those of brokers only on this listener."""
    return {key: _limited(row, listener_name) if row.between_brokers else row for key, row in rows.items()}


def _limited(row: Api, listener_name: str) -> Api:
    def handler(call: Call, request: Any) -> Any:
        if call.listener.name != listener_name:
            raise Refusal(f"{row.name} is served only on the listener {listener_name}", row.key)
        return row.handler(call, request)

    return row._replace(handler=handler)
