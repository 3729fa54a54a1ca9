"""What a broker says while it runs: one line per event on standard error, for people or for machines."""

import json
import logging
import sys
import time


class TextFormatter(logging.Formatter):
    """Kafka's shape: [time] LEVEL message (logger)."""

    def __init__(self) -> None:
        super().__init__("[%(asctime)s] %(levelname)s %(message)s (%(name)s)")


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event)


def configure_logging(level: str, style: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
