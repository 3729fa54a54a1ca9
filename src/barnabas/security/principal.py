"""Principals: the names of users, as ACLs, quotas and `super.users` have them: `User:alice`."""

from typing import NamedTuple

USER = "User"


class Principal(NamedTuple):
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


# Everybody who has not shown who they are.
ANONYMOUS = Principal(USER, "ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """`User:alice`; ValueError if it has another form."""
    kind, separator, name = text.partition(":")
    if not separator or not kind or not name:
        raise ValueError(f"{text!r} is not a principal: it must be written type:name, such as User:alice")
    return Principal(kind, name)
