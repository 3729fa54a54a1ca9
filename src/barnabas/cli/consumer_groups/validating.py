"""--validate-regex: whether brokers would take a regular expression as a subscription."""

from barnabas.coordination.patterns import Pattern
from barnabas.errors import KafkaError


def validate_regex(expression: str) -> int:
    try:
        Pattern(expression)
    except KafkaError as error:
        reason = error.message.removeprefix(f"{expression!r} is not a regular expression: ").rstrip(".")
        print(f"The regular expression `{expression}` is invalid: {reason}.")
        return 1
    print(f"The regular expression `{expression}` is valid.")
    return 0
