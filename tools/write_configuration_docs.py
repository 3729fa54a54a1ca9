"""Write docs/configuration.md from the tables: `python -m tools.write_configuration_docs`."""

from collections.abc import Iterable
from pathlib import Path

from barnabas.config.broker import SUBJECTS
from barnabas.config.definition import INT_MAX, LONG_MAX, ConfigKey
from barnabas.config.group import GROUP_KEYS
from barnabas.config.keys_topic import TOPIC_KEYS
from barnabas.config.parsing import render

TARGET = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

INTRODUCTION = """\
# Configuration

Written by `python -m tools.write_configuration_docs` from the tables in `src/barnabas/config`; change those.

A broker reads its settings from a file and from the command line: `barnabas start --config server.properties
--override num.partitions=3`. The keys are Kafka's, so a `server.properties` of Kafka can be used as it is. A
wrong value stops the broker with one sentence; an unknown key gives a warning.
[Settings](how-it-works/settings.md) says how to change them while brokers run, which value counts if there
are several, and which of these keys you should know.

- **effect**: *yes* means that this release acts on the key; *accepted* means that the value is checked and
  described, but has no effect yet.
- **change**: *read-only* keys are read at start; *per-broker* keys can be changed on a running broker, and
  *cluster-wide* keys also for all brokers at once. A changed key that has an effect takes effect at once.
- Keys that begin with `listener.name.<listener>.` set a key for one listener: see [security.md](security.md).

Differences from Kafka: the default of `listeners` is this machine only; `node.id` has a default;
`process.roles` and `controller.listener.names` may be left out; ZooKeeper's keys are kept, because a cluster
runs on ZooKeeper, and the keys of KRaft's quorum are accepted without effect.
"""


GROUPS = """\
Settings of one group, given with IncrementalAlterConfigs (resource type GROUP) while it runs or before it
exists; the broker's `group.consumer.min.*` and `group.consumer.max.*` bound them.
"""


def document() -> str:
    parts = [INTRODUCTION, "\n## Topics\n\n", _topic_table(TOPIC_KEYS.values())]
    parts += ["\n## Consumer groups\n\n", GROUPS, "\n", _topic_table(GROUP_KEYS.values())]
    for subject, keys in SUBJECTS.items():
        parts += [f"\n## Brokers: {subject}\n\n", _broker_table(keys.values())]
    return "".join(parts)


def _broker_table(keys: Iterable[ConfigKey]) -> str:
    lines = [
        "| key | meaning | type | default | allowed | importance | change | effect |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [row(*_common(key), key.importance, key.mode, effect_of(key)) for key in keys]
    return "\n".join(lines) + "\n"


def _topic_table(keys: Iterable[ConfigKey]) -> str:
    lines = [
        "| key | meaning | type | default | allowed | broker keys | effect |",
        "|---|---|---|---|---|---|---|",
    ]
    for key in keys:
        synonyms = ", ".join(f"`{name}`" for name in key.synonyms)
        lines.append(row(*_common(key), synonyms, effect_of(key)))
    return "\n".join(lines) + "\n"


def _common(key: ConfigKey) -> tuple[str, ...]:
    allowed = key.check.allowed if key.check is not None else ""
    return f"`{key.name}`", key.doc, key.type.name.lower(), default_of(key), allowed


def default_of(key: ConfigKey) -> str:
    if key.default in (INT_MAX, LONG_MAX):
        return "no limit"
    text = render(key.default)
    if text is None:
        return "not set"
    return f"`{text}`" if text else "empty"


def effect_of(key: ConfigKey) -> str:
    return "yes" if key.honoured else "accepted"


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    TARGET.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
