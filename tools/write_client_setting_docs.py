"""Write docs/client-settings.md from the tables of keys: `python -m tools.write_client_setting_docs`."""

from collections.abc import Iterable
from pathlib import Path

from barnabas.client.keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from barnabas.client.keys_security import SECURITY_KEYS
from barnabas.config.definition import ConfigKey
from tools.write_configuration_docs import default_of, effect_of, row

TARGET = Path(__file__).resolve().parent.parent / "docs" / "client-settings.md"
TABLES = {"Producer": PRODUCER_KEYS, "Consumer": CONSUMER_KEYS, "Admin": ADMIN_KEYS}

INTRODUCTION = """\
# Settings of the clients

Written by `python -m tools.write_client_setting_docs` from the tables in `src/barnabas/client/keys.py`;
change those.

The keys, defaults and units are those of Kafka's Java clients. Write them as keyword arguments with
underscores (`Producer(bootstrap_servers="localhost:9092", linger_ms=20)`), or in a dict with dots
(`Producer({"linger.ms": 20})`). An unknown key is an error that suggests a known one. [Clients](clients.md)
shows the important ones.

**effect**: *yes* means that the clients act on the key; *accepted* means that the value is checked, but has
no effect, so that settings written for another client work.
"""


def document() -> str:
    names = set.intersection(*(set(table) for table in TABLES.values()))
    # A key is common only if it has the same default everywhere.
    names = {name for name in names if len({str(table[name].default) for table in TABLES.values()}) == 1}
    common = [key for name, key in PRODUCER_KEYS.items() if name in names - set(SECURITY_KEYS)]
    parts = [INTRODUCTION, "\n## All clients\n\n", _table(common)]
    for title, table in TABLES.items():
        parts += [f"\n## {title}\n\n", _table(key for name, key in table.items() if name not in names)]
    security = "\n## Security\n\n[Clients](clients.md#security) says which of these belong together.\n\n"
    return "".join([*parts, security, _table(SECURITY_KEYS.values())])


def _table(keys: Iterable[ConfigKey]) -> str:
    lines = ["| key | meaning | type | default | allowed | effect |", "|---|---|---|---|---|---|"]
    for key in sorted(keys, key=lambda key: key.name):
        allowed = key.check.allowed if key.check is not None else ""
        cells = (f"`{key.name}`", key.doc, key.type.name.lower(), default_of(key), allowed, effect_of(key))
        lines.append(row(*cells))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
