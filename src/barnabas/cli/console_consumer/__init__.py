"""`barnabas console-consumer`: records of topics on standard output, as bytes, as JSON, or decoded."""

from barnabas.cli.console_consumer.options import DESCRIPTION, EXAMPLES, add_arguments
from barnabas.cli.console_consumer.reading import run

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]
