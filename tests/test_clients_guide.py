"""The examples of docs/clients.md run unchanged, one after the other, on one broker."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker

GUIDE = (Path(__file__).parent.parent / "docs" / "clients.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", GUIDE, re.DOTALL))
PRINTED = {
    "sending": r"RecordMetadata\(topic='orders', partition=0, offset=0, .*\)\nwritten: 1\n",
    "reading": r"0 b'42' b'one coffee' \(\('table', b'7'\),\)\n1 None b'no key, no wait' \(\)\n2 0\n",
    "tables": r"\{TopicPartition\(topic='readings', partition=0\): "
    r"Written\(count=3, offsets=\(range\(0, 3\),\)\)\}\n"
    r"\{'offset': 2, 'key': b'a', 'value': b'21.0'\}\n",
    "workers": r"2\n",
    "asyncio": r"0\nb'42' b'3.50'\n",
    "transactions": r"2\n",
    "interceptor": r"\[b\"today's\"\]\noffers-0 3\n",
    "admin": r"\['menus'\] \['wines'\]\n\{TopicPartition\(topic='orders', partition=0\): 0\}\n",
    "types": r"coffee at table 7\n",
}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker.bootstrap


def test_the_examples_print_what_they_promise(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(EXAMPLES) == list(PRINTED)
    for name, code in EXAMPLES.items():
        exec(compile(code.replace("127.0.0.1:9092", bootstrap), name, "exec"), {"__name__": name})
        printed = capsys.readouterr().out
        assert re.fullmatch(PRINTED[name], printed), f"{name} printed {printed!r}"


def test_what_the_guide_names_exists() -> None:
    import barnabas

    names = re.findall(r"`(\w+Error)`", GUIDE)
    assert names
    assert [name for name in names if not hasattr(barnabas, name)] == []
