"""The column "effect" of the configuration page is true: a key that is said to have an effect is read."""

from dataclasses import fields
from pathlib import Path

import barnabas
from barnabas.config.broker import BROKER_KEYS
from barnabas.config.topic import TOPIC_KEYS, TopicConfig

SOURCES = "".join(
    path.read_text()
    for path in Path(barnabas.__file__).parent.rglob("*.py")
    # The tables name keys, but do not read them.
    if not path.name.startswith("keys_") and path.name != "dynamic_settings.py"
)
OUTSIDE_CONFIG = "".join(
    path.read_text() for path in Path(barnabas.__file__).parent.rglob("*.py") if path.parent.name != "config"
)


def test_every_broker_key_said_to_have_an_effect_is_read() -> None:
    through_topics = {synonym for key in TOPIC_KEYS.values() for synonym in key.synonyms}
    unread = [
        name
        for name, key in BROKER_KEYS.items()
        if key.honoured and name not in through_topics and f'"{name}"' not in SOURCES
    ]
    assert unread == []


def test_every_field_of_a_topics_settings_is_read() -> None:
    unread = [field.name for field in fields(TopicConfig) if f".{field.name}" not in OUTSIDE_CONFIG]
    assert unread == []
