"""Who uses the console: cookies, tokens against forged requests, and the clients of those who have logged in.

A visitor has a cookie with a random id. The token for requests that change something is a MAC of that id, so
that visitors cost no memory. A user who has logged in has an entry here with a workspace: clients with her
own name, and what they have seen. Entries end after some idle time and, at the latest, after a working
day."""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections import deque
from dataclasses import dataclass, field

from barnabas.console.failures import ApiError
from barnabas.console.workspace import Workspace

IDLE_SECONDS = 30 * 60.0
LIFE_SECONDS = 12 * 3600.0
SESSIONS_MAX = 200
ID_BYTES = 32
# Wrong passwords that one address may try in a minute.
FAILURES_MAX = 10
FAILURES_SECONDS = 60.0
ADDRESSES_MAX = 10_000
# At the same time: each one computes a salted password, which is slow on purpose.
LOGINS_AT_ONCE = 4


@dataclass
class Session:
    user: str
    workspace: Workspace
    created: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=time.monotonic)

    def is_over(self, now: float) -> bool:
        return now - self.used > IDLE_SECONDS or now - self.created > LIFE_SECONDS


class Sessions:
    def __init__(self) -> None:
        self._secret = secrets.token_bytes(ID_BYTES)
        self._by_id: dict[str, Session] = {}
        self._failures: dict[str, deque[float]] = {}
        self.logins = asyncio.Semaphore(LOGINS_AT_ONCE)

    @staticmethod
    def new_id() -> str:
        return secrets.token_urlsafe(ID_BYTES)

    def token_of(self, visitor: str) -> str:
        """The token that a page with this cookie must send when it changes something."""
        return hmac.new(self._secret, visitor.encode(), hashlib.sha256).hexdigest()

    def is_token(self, visitor: str, token: str) -> bool:
        return hmac.compare_digest(self.token_of(visitor).encode(), token.encode())

    def get(self, visitor: str) -> Session | None:
        session = self._by_id.get(visitor)
        now = time.monotonic()
        if session is None or session.is_over(now):
            return None
        session.used = now
        return session

    def add(self, session: Session) -> str:
        """Keep a session under a new id: the id from before the login may be known to others."""
        if len(self._by_id) >= SESSIONS_MAX:
            raise ApiError(503, "TOO_MANY_SESSIONS", "Too many users are logged in: try again later.")
        visitor = self.new_id()
        self._by_id[visitor] = session
        return visitor

    async def remove(self, visitor: str) -> None:
        session = self._by_id.pop(visitor, None)
        if session is not None:
            await session.workspace.close()

    async def remove_old(self) -> None:
        now = time.monotonic()
        for visitor in [visitor for visitor, session in self._by_id.items() if session.is_over(now)]:
            await self.remove(visitor)

    async def close(self) -> None:
        for visitor in list(self._by_id):
            await self.remove(visitor)

    # ---- wrong passwords

    def check_failures(self, address: str) -> None:
        failures = self._failures.get(address, deque())
        while failures and failures[0] < time.monotonic() - FAILURES_SECONDS:
            failures.popleft()
        if len(failures) >= FAILURES_MAX:
            raise ApiError(
                429, "TOO_MANY_ATTEMPTS", "Too many wrong passwords: wait a minute, then try again."
            )

    def note_failure(self, address: str) -> None:
        if address not in self._failures and len(self._failures) >= ADDRESSES_MAX:
            self._failures.pop(next(iter(self._failures)))
        self._failures.setdefault(address, deque(maxlen=FAILURES_MAX)).append(time.monotonic())
