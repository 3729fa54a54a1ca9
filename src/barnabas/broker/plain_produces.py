"""The short way of one connection's Produces that bring one plain batch each.

Nearly all requests are of this kind, and several of them are answered in one call. All others, and those that
would be refused, are left to the ordinary way (handlers/produce.py), which knows every form, version and
error. Both ways ask the same gate and run the same append, and their answers have the same bytes.
A batch that other replicas have to confirm is answered when they have (broker/deferred_replies.py); meanwhile
the next plain batches of the connection are appended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.deferred_replies import DeferredReplies
from barnabas.broker.handlers.produce import TOPIC_ID_VERSION_MIN
from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.log_end import Permit
from barnabas.kernels.plain_frames import PlainProduces
from barnabas.replication.gate import ACKS_ALL

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.session import Session


class ShortWay(PlainProduces):
    # The answers that have to wait; None until there was one.
    waiting: DeferredReplies | None = None


def plain_produces(broker: Broker, session: Session) -> ShortWay:
    """The short way of a connection."""

    def ask(client_id: bytes | None, version: int, topic: bytes, index: int) -> Permit:
        """A permit for any number of acks."""
        try:
            name = topic.decode() if version < TOPIC_ID_VERSION_MIN else broker.image.topic_names.get(topic)
            client = None if client_id is None else client_id.decode()
        except UnicodeDecodeError:
            # The ordinary way says what is wrong.
            raise KafkaError(ErrorCode.INVALID_REQUEST) from None
        if broker.quotas.are_set and broker.quotas.limits_produces(session.principal.name, client):
            # Only the ordinary way throttles. When quotas change, permits are withdrawn.
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        asker = session.asker(client, version)._replace(is_short_way=True)
        return broker.gate.to_write(asker, name, index, ACKS_ALL)

    return ShortWay(ask, KafkaError, broker.config["socket.request.max.bytes"])
