"""`barnabas console-consumer`: prints the records of topics, as bytes, as JSON, or decoded."""

from barnabas.cli.console_consumer.options import DESCRIPTION, EXAMPLES, add_arguments
from barnabas.cli.console_consumer.reading import run

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]
