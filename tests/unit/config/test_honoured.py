"""The column "has effect" of the configuration page is true: what is marked is read somewhere."""

from pathlib import Path

import barnabas
from barnabas.config.broker import BROKER_KEYS
from barnabas.config.topic import TOPIC_KEYS

SOURCES = "".join(
    path.read_text()
    for path in Path(barnabas.__file__).parent.rglob("*.py")
    if not path.name.startswith("keys_")
)


def test_every_broker_key_said_to_have_an_effect_is_read() -> None:
    through_topics = {synonym for key in TOPIC_KEYS.values() for synonym in key.synonyms}
    unread = [
        name
        for name, key in BROKER_KEYS.items()
        if key.honoured and name not in through_topics and f'"{name}"' not in SOURCES
    ]
    assert unread == []
