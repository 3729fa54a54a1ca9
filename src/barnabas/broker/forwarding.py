"""Admin requests that reach a broker which is not the controller: the controller answers them.

The frame of the client is sent to the controller as it is, in an Envelope. Its handler
(handlers/envelope.py) answers it as if it had come from the client. The client gets that answer when this
broker has the metadata that it refers to: a Metadata request right after CreateTopics sees the topic.

If there is no controller for a while, the request waits. When the time is over, the local handler answers:
the controller of this broker refuses each change with NOT_CONTROLLER, and clients try again.

A broker that cannot reach the controller sends the Envelope to another broker, which relays it
(controller_relay.py).

Two fields of the Envelope have our own form. `request_principal` is a Sender. `response_data` begins with
the offset of the metadata up to which the client's broker has to catch up."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.broker.call import Encoded
from barnabas.broker.turns import completed
from barnabas.errors import ErrorCode, KafkaError
from barnabas.security.principal import Principal, parse_principal
from barnabas.wire.apis import api_of
from barnabas.wire.message import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.call import Call
    from barnabas.broker.session import Session

logger = logging.getLogger(__name__)

# The dispatcher forwards these as a whole: CreateTopics, DeleteTopics, CreatePartitions, ElectLeaders,
# AlterPartitionReassignments, ListPartitionReassignments, AlterClientQuotas, AlterUserScramCredentials,
# UnregisterBroker, CreateAcls, DeleteAcls, and CreateDelegationToken, RenewDelegationToken and
# ExpireDelegationToken.
TOKEN_KEYS = frozenset({38, 39, 40})
FORWARDED_WHOLE = frozenset({19, 20, 30, 31, 37, 43, 45, 46, 49, 51, 64}) | TOKEN_KEYS
# AlterConfigs and IncrementalAlterConfigs: the handler answers for this broker's own settings and loggers,
# and forwards what is left.
FORWARDED_IN_PART = frozenset({33, 44})
FORWARDED = FORWARDED_WHOLE | FORWARDED_IN_PART
# Requests of brokers themselves, which come in an envelope only if they are relayed: AlterPartition,
# BrokerHeartbeat, AllocateProducerIds.
RELAYED = frozenset({56, 63, 67})

# Clients wait 30 seconds for an answer. They must get one before they give up the connection.
FORWARD_SECONDS_MAX = 25.0
# With its envelope a frame must not be larger than what the controller accepts, and it must not occupy the
# connection for long. Clients of larger requests are sent to the controller (NOT_CONTROLLER).
FORWARDED_BYTES_MAX = 16 * 1024 * 1024

# Names of users are strings of the protocol, which have at most 32,767 bytes.
SENDER_BYTES_MAX = 40_000
_SENDER = struct.Struct(">iq?")
OFFSET = struct.Struct(">q")
_SIZE = struct.Struct(">i")
_THROTTLE = struct.Struct(">i")


class Sender(NamedTuple):
    """The broker that forwards, with its epoch; whether another one relays it; whose request it is (None: the
    broker's own)."""

    broker_id: int
    broker_epoch: int
    is_relayed: bool = False
    principal: Principal | None = None

    def to_bytes(self) -> bytes:
        principal = b"" if self.principal is None else str(self.principal).encode()
        return _SENDER.pack(self.broker_id, self.broker_epoch, self.is_relayed) + principal

    @classmethod
    def from_bytes(cls, data: bytes) -> Sender:
        """ValueError if it has another form."""
        if len(data) > SENDER_BYTES_MAX:
            raise ValueError(f"{len(data)} bytes are too many for a broker and a user")
        try:
            broker_id, broker_epoch, is_relayed = _SENDER.unpack_from(data)
        except struct.error as error:
            raise ValueError(str(error)) from error
        principal = data[_SENDER.size :].decode()
        return cls(broker_id, broker_epoch, is_relayed, parse_principal(principal) if principal else None)


def must_forward(broker: Broker, api_key: int, session: Session) -> bool:
    if api_key not in FORWARDED_WHOLE or not broker.is_clustered or broker.controller.active:
        return False
    # The controller does not know how the client is connected, so the broker refuses these itself.
    return api_key not in TOKEN_KEYS or session.may_manage_tokens


async def forward(call: Call, frame: memoryview, answer_here: Callable[[], Any]) -> Any:
    """The controller's answer to the frame; that of `answer_here` if the controller gives none in time."""
    if len(frame) <= FORWARDED_BYTES_MAX:
        try:
            answer = await call.broker.controller_channel.forward(
                frame, call.session, within_seconds=FORWARD_SECONDS_MAX
            )
        except KafkaError as error:
            logger.info("cannot forward a request of API %d: %s", call.header.api_key, error.message)
        else:
            chunks: list[Any] = [_SIZE.pack(len(answer)), *_throttled(call, answer)]
            return Encoded(chunks)
    return await completed(answer_here())


def _throttled(call: Call, answer: memoryview) -> list[bytes | memoryview]:
    """The answer with the longer of two throttle times: what the controller says, and what this broker
    measures."""
    position = _throttle_position(call) if call.broker.quotas.are_set else None
    if position is None:
        return [answer]
    (said_ms,) = _THROTTLE.unpack_from(answer, position)
    throttle_ms = max(said_ms, call.broker.quotas.charge(call, None, is_exempt=False))
    call.throttle_ms = throttle_ms
    return [answer[:position], _THROTTLE.pack(throttle_ms), answer[position + _THROTTLE.size :]]


def _throttle_position(call: Call) -> int | None:
    """Where the throttle time is in the answer: right after the header; None in APIs where it is not."""
    api = api_of(call.header.api_key)
    if api is None:
        return None
    first = next(field for field in api.response.FIELDS if field.first <= call.version <= field.last)
    if first.name != "throttle_time_ms":
        return None
    return 5 if api.has_flexible_response_header(call.version) else 4


def has_error(message: Message, code: ErrorCode) -> bool:
    """Whether the message, or any part of it, has this error code."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name == "error_code":
            if value == code:
                return True
        elif not isinstance(field.type, str) and value is not None:
            parts = value if field.array else (value,)
            if any(has_error(part, code) for part in parts):
                return True
    return False
