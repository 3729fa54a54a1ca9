"""`barnabas configs`: show and change settings of topics, brokers and groups, and quotas of users, clients
and addresses, as kafka-configs.sh does."""

import argparse

from barnabas.cli.configs.altering import alter
from barnabas.cli.configs.arguments import add_arguments
from barnabas.cli.configs.credentials import alter_credentials, alters_credentials, described_credentials
from barnabas.cli.configs.describing import describe
from barnabas.cli.configs.entities import QUOTA_TYPES, entity_of, types_and_names
from barnabas.cli.configs.quotas import Named, alter_quotas, check_named, describe_quotas
from barnabas.cli.connecting import admin_of
from barnabas.cli.failures import ToolError

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Show or change settings of topics, brokers, groups, loggers and metrics subscriptions, quotas of users,
clients and ips, and SCRAM credentials of users.
`synonyms` shows where a value comes from: the first one is used; the others are used if it is deleted."""
EXAMPLES = """\
  barnabas configs --bootstrap-server localhost:9092 --describe --topic orders
  barnabas configs --bootstrap-server localhost:9092 --describe --broker 1 --all
  barnabas configs --bootstrap-server localhost:9092 --alter --topic orders \\
      --add-config 'cleanup.policy=[compact,delete],segment.ms=3600000'
  barnabas configs --bootstrap-server localhost:9092 --alter --topic orders --delete-config segment.ms
  barnabas configs --bootstrap-server localhost:9092 --alter --entity-type brokers --entity-default \\
      --add-config log.retention.ms=86400000
  barnabas configs --bootstrap-server localhost:9092 --alter --group billing \\
      --add-config consumer.session.timeout.ms=50000
  barnabas configs --bootstrap-server localhost:9092 --alter --client billing \\
      --add-config producer_byte_rate=1048576,consumer_byte_rate=2097152
  barnabas configs --bootstrap-server localhost:9092 --describe --entity-type users --entity-type clients
  barnabas configs --bootstrap-server localhost:9092 --alter --user alice \\
      --add-config 'SCRAM-SHA-256=[iterations=8192,password=alice-secret]'
  barnabas configs --bootstrap-server localhost:9092 --alter --user alice --delete-config SCRAM-SHA-256
"""


def run(options: argparse.Namespace) -> int:
    if len(options.actions) != 1:
        raise ToolError("Command must include exactly one action: --describe, --alter.")
    (action,) = options.actions
    named = Named(*types_and_names(options))
    has_quotas = named.types[0] in QUOTA_TYPES
    if has_quotas:
        check_named(named, action)
    entity = None if has_quotas else entity_of(options, action)
    if options.bootstrap_server is None:
        raise ToolError(
            "There are no separate controllers: use --bootstrap-server HOST:PORT "
            "with the address of a broker."
        )
    with admin_of(options) as admin:
        if entity is None:
            if action == "describe":
                return describe_quotas(admin, named, options, described_credentials(admin, named))
            is_credential = alters_credentials(named, options)
            return (alter_credentials if is_credential else alter_quotas)(admin, named, options)
        return (describe if action == "describe" else alter)(admin, entity, options)
