"""How often each connection of our clients logs in."""

from collections import Counter

import pytest

from barnabas.net.authenticating import Authentication


def logins_by_connection(monkeypatch: pytest.MonkeyPatch) -> Counter[object]:
    """Counts the logins that succeed in this process, from now on. A connection that logs in again before its
    session is over has more than one. Whether it does so in time depends on the machine, so tests wait for it
    with this, not for an amount of time."""
    logins: Counter[object] = Counter()
    begin = Authentication.begin

    async def counted(authentication: Authentication) -> None:
        await begin(authentication)
        logins[authentication] += 1

    monkeypatch.setattr(Authentication, "begin", counted)
    return logins
