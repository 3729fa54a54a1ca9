"""What a handler knows about the request that it answers, and what a row of the API table contains."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from barnabas.replication.gate import Asker
from barnabas.wire.codec import Chunk, RequestHeader

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.session import Session
    from barnabas.config.listeners import Listener
    from barnabas.net.connection import Connection

# A request may have this many array elements, all its arrays together. As objects they and their answer take
# up to 600 bytes each, whatever the size of the frame: an element can be as short as two bytes. A consumer of
# tens of thousands of partitions has fewer. A frame with more is refused like a broken one.
ELEMENTS_MAX = 50_000
# A request with more than this is long, and long requests are answered one at a time (long_requests.py).
# Kafka's advice is at most 4,000 partitions for each broker: requests for all of them are short, and never
# wait for others.
SHORT_ELEMENTS_MAX = 5_000
# An answer explains this many of its errors; the others have their code only, so that it stays small.
MESSAGES_MAX = 1000

# A handler answers at once (None is no answer: acks=0), or returns a coroutine or a Later that will, or a
# generator that is run in turns (turns.py). What runs before the first pause runs in the order in which the
# requests of a connection arrived.
Handler: TypeAlias = Callable[["Call", Any], Any]


class Call:
    """One request: who asks, in which version.

    `is_forwarded`: another broker got it from a client, and sent it here because this is the controller."""

    __slots__ = (
        "_asker",
        "broker",
        "connection",
        "frame_bytes",
        "handler_ns",
        "header",
        "is_forwarded",
        "session",
        "started_ns",
        "throttle_ms",
    )

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        session: Session,
        header: RequestHeader,
        *,
        is_forwarded: bool = False,
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.session = session
        self.header = header
        self.is_forwarded = is_forwarded
        self._asker: Asker | None = None
        # For quotas: the size of the frame, when it arrived, the time that the handler took (0: all the time
        # since then), and for how long the client is throttled (None: that is not decided yet).
        self.frame_bytes = 0
        self.started_ns = 0
        self.handler_ns = 0
        self.throttle_ms: int | None = None

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def listener(self) -> Listener:
        return self.session.listener

    @property
    def asker(self) -> Asker:
        """Who asks, for the gate."""
        if self._asker is None:
            self._asker = self.session.asker(self.header.client_id, self.header.api_version)
        return self._asker


class Encoded:
    """An answer whose frame is written already, by a handler that does not need the codec."""

    __slots__ = ("chunks",)

    def __init__(self, chunks: list[Chunk]) -> None:
        self.chunks = chunks


class Api(NamedTuple):
    """One row declares an API: dispatch and ApiVersions are computed from the rows."""

    key: int
    name: str
    versions: tuple[int, int]
    handler: Handler
    # The lowest version in ApiVersions, if it is lower than the lowest one that is served: some old clients
    # look only for that (Produce 0).
    advertised_from: int | None = None
    # Features come before the first handshake of a client; everything else may need one.
    before_authentication: bool = False
    # For brokers only: ApiVersions does not show it to clients.
    between_brokers: bool = False

    @property
    def advertised(self) -> tuple[int, int]:
        low, high = self.versions
        return (low if self.advertised_from is None else self.advertised_from), high
