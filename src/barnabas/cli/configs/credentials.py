"""SCRAM credentials of users: `SCRAM-SHA-256=[iterations=8192,password=...]`, as in kafka-configs.sh."""

import argparse
import re
from collections.abc import Iterator

from barnabas.cli.configs.altering import operations_of
from barnabas.cli.configs.quotas import Named
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.client.admin import (
    Admin,
    AdminError,
    AlterConfigOp,
    ConfigOperation,
    ScramDeletion,
    ScramUpsertion,
)
from barnabas.client.errors import UnsupportedVersionError
from barnabas.security import scram

ITERATIONS = 4096
_CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)", re.DOTALL)


def alters_credentials(named: Named, options: argparse.Namespace) -> bool:
    """Whether the change is about credentials. Those and quotas cannot be changed together."""
    if "users" not in named.types:
        return False
    keys = [operation.name for operation in operations_of(options)]
    ours = [key for key in keys if key in scram.BY_NAME]
    if not ours:
        return False
    if "clients" in named.types:
        raise ToolError(
            "Only quota configs can be changed for 'clients' using --bootstrap-server. "
            f"Unexpected config names: {', '.join(ours)}."
        )
    if len(ours) < len(keys):
        raise ToolError(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using "
            "--bootstrap-server."
        )
    if "" in named.names:
        raise ToolError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using "
            "--bootstrap-server."
        )
    return True


def alter_credentials(admin: Admin, named: Named, options: argparse.Namespace) -> int:
    if options.all or options.json:
        raise ToolError("--all and --json can only be used with --describe.")
    (user,) = named.names
    changes = [_change(user, operation) for operation in operations_of(options)]
    for change in changes:
        # A broker takes one change of a user in a request.
        try:
            admin.alter_user_scram_credentials([change])
        except AdminError as error:
            (failure,) = error.errors.values()
            raise ToolError(failure.message) from error
    print(f"Completed updating config for user {user}.")
    return 0


def _change(user: str, operation: AlterConfigOp) -> ScramUpsertion | ScramDeletion:
    if operation.operation == ConfigOperation.DELETE:
        return ScramDeletion(user, operation.name)
    match = _CREDENTIAL.fullmatch(operation.value or "")
    if match is None or not match[2]:
        # The value is not repeated: it may have a password in it.
        raise ToolError(
            f"Invalid credential property {operation.name}: it must be [password=...] or "
            "[iterations=...,password=...]."
        )
    iterations = int(match[1]) if match[1] not in (None, "", "-", "-1") else ITERATIONS
    mechanism = scram.BY_NAME[operation.name]
    if iterations < mechanism.iterations_min:
        raise ToolError(
            f"Iterations {iterations} is less than the minimum {mechanism.iterations_min} required for "
            f"{mechanism.name}."
        )
    return ScramUpsertion(user, match[2], mechanism.name, iterations)


def described_credentials(admin: Admin, named: Named) -> Iterator[tuple[str, dict[str, int]]]:
    """The iterations of each mechanism, by user; nobody if the options are about clients or defaults."""
    if list(named.types) != ["users"] or "" in named.names:
        return
    try:
        found, _ = results_and_errors(
            lambda: admin.describe_user_scram_credentials(list(named.names) or None)
        )
    except UnsupportedVersionError:
        return
    for user, infos in found.items():
        yield user, {info.mechanism: info.iterations for info in infos}
