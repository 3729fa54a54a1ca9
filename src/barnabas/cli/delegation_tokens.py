"""`barnabas delegation-tokens`: create, renew, expire and describe delegation tokens, as
kafka-delegation-tokens.sh does."""

import argparse
import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.cli.output import print_json
from barnabas.security.principal import parse_principal

if TYPE_CHECKING:
    from barnabas.client.admin import Admin, DelegationToken

DESCRIPTION = """\
Delegation tokens let programs act for a user, for a limited time and without its password. A client logs in
with a token over SCRAM: the user name is the token's id, the password its HMAC, and the login module has the
option tokenauth="true". --command-config must have a login: a token is given only to those who have shown who
they are."""
EXAMPLES = """\
  barnabas delegation-tokens --bootstrap-server localhost:9093 --command-config alice.properties \\
      --create --max-life-time-period -1 --renewer-principal User:scheduler
  barnabas delegation-tokens --bootstrap-server localhost:9093 --command-config alice.properties --describe
  barnabas delegation-tokens --bootstrap-server localhost:9093 --command-config alice.properties \\
      --renew --renew-time-period -1 --hmac HMAC
  barnabas delegation-tokens --bootstrap-server localhost:9093 --command-config alice.properties \\
      --expire --expiry-time-period -1 --hmac HMAC
"""
HEADERS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)
ACTIONS = ("create", "renew", "expire", "describe")
# What each action needs besides the connection.
_NEEDED = {
    "create": ("max_life_time_period",),
    "renew": ("hmac", "renew_time_period"),
    "expire": ("hmac", "expiry_time_period"),
    "describe": (),
}
_ALLOWED = {
    "create": ("owner_principal", "renewer_principal"),
    "describe": ("owner_principal",),
}
_OPTIONS = (
    *("owner_principal", "renewer_principal", "max_life_time_period", "renew_time_period"),
    *("expiry_time_period", "hmac"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, server_flags=("--bootstrap-server",))
    for action, text in (
        ("create", "create a token"),
        ("renew", "let a token live longer"),
        ("expire", "let a token end sooner"),
        ("describe", "print tokens"),
    ):
        parser.add_argument(
            f"--{action}", action="append_const", dest="actions", const=action, default=[], help=text
        )
    for flag, text in (
        ("--owner-principal", "a user, as User:name: whose tokens"),
        ("--renewer-principal", "--create: a user who may renew the token, as User:name"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar="WHO", help=text)
    for flag, text in (
        ("--max-life-time-period", "--create: the longest life of the token; -1: as the broker says"),
        ("--renew-time-period", "--renew: for how long; -1: as the broker says"),
        ("--expiry-time-period", "--expire: after which time; -1: at once"),
    ):
        parser.add_argument(flag, type=int, metavar="MS", help=text)
    parser.add_argument("--hmac", help="--renew, --expire: the HMAC of the token, as --create printed it")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    if len(options.actions) != 1:
        raise ToolError("Command must include exactly one action: --create, --renew, --expire or --describe.")
    (action,) = options.actions
    _check(action, options)
    with admin_of(options) as admin:
        if action == "create":
            _create(admin, options)
        elif action == "describe":
            _describe(admin, options)
        else:
            _change(admin, action, options)
    return 0


def _check(action: str, options: argparse.Namespace) -> None:
    for name in _NEEDED[action]:
        if getattr(options, name) is None:
            raise ToolError(f"--{action} needs {_flag(name)}.")
    for name in _OPTIONS:
        if name not in (*_NEEDED[action], *_ALLOWED.get(action, ())) and getattr(options, name):
            raise ToolError(f"{_flag(name)} cannot be used with --{action}.")
    if options.command_config is None:
        raise ToolError("--command-config FILE is needed: it has the login that the broker asks for.")
    for text in (*options.owner_principal, *options.renewer_principal):
        try:
            parse_principal(text)
        except ValueError as error:
            raise ToolError(f"{error}.") from None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _create(admin: "Admin", options: argparse.Namespace) -> None:
    token = admin.create_delegation_token(
        options.renewer_principal,
        owner=options.owner_principal[0] if options.owner_principal else None,
        max_lifetime_ms=options.max_life_time_period,
    )
    if not options.json:
        print(f"Created delegation token with tokenId : {token.token_id}")
    _print([token], options)


def _describe(admin: "Admin", options: argparse.Namespace) -> None:
    tokens = admin.describe_delegation_tokens(options.owner_principal or None)
    if not options.json:
        print(f"Total number of tokens : {len(tokens)}")
    _print(tokens, options)


def _change(admin: "Admin", action: str, options: argparse.Namespace) -> None:
    try:
        secret = base64.b64decode(options.hmac, validate=True)
    except (binascii.Error, ValueError):
        raise ToolError("--hmac must be written as --create and --describe print it (Base64).") from None
    if action == "renew":
        expires_ms = admin.renew_delegation_token(secret, period_ms=options.renew_time_period)
    else:
        expires_ms = admin.expire_delegation_token(secret, period_ms=options.expiry_time_period)
    if options.json:
        print_json({"expiryTimestampMs": expires_ms})
    else:
        print(f"Completed {action} operation. New expiry date : {_date(expires_ms)}")


def _print(tokens: "Sequence[DelegationToken]", options: argparse.Namespace) -> None:
    if options.json:
        print_json([_as_json(token) for token in tokens])
        return
    rows = [
        (
            *(token.token_id, token.password, token.owner, token.requester, ",".join(token.renewers)),
            *map(_date, (token.issued_ms, token.expires_ms, token.ends_ms)),
        )
        for token in tokens
    ]
    for row in (HEADERS, *rows):
        print("\n" + " ".join(f"{cell:<{width}}" for cell, width in zip(row, WIDTHS, strict=True)))


def _as_json(token: "DelegationToken") -> dict[str, object]:
    return {
        "tokenId": token.token_id,
        "hmac": token.password,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issueTimestampMs": token.issued_ms,
        "expiryTimestampMs": token.expires_ms,
        "maxTimestampMs": token.ends_ms,
    }


def _date(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000).strftime("%Y-%m-%dT%H:%M")
