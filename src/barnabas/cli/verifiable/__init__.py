"""Clients that print every event as one JSON object: for tests of systems, as Kafka's own tests use them."""

import json
import threading
import time
from typing import Any

_LOCK = threading.Lock()


def print_event(name: str, **fields: Any) -> None:
    """The time comes first, then the name, as in Kafka's tools. Events may come from several threads."""
    event = {"timestamp": int(time.time() * 1000), "name": name, **fields}
    with _LOCK:
        print(json.dumps(event, separators=(",", ":")), flush=True)
