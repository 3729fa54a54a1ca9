"""24 known mistakes in implementations of Kafka's protocol; the names of tests begin with the number.

1 ApiVersions header and fallback · 2 header versions · 3 ranges old librdkafka needs · 4 acks=0, order ·
5 fetch · 6 fetch sessions · 7 topic ids · 8 leader epochs · 9 JoinGroup · 10 rebalance delay ·
11 committed offsets · 12 auto-creation · 13 configs · 14 ListOffsets · 15 answers per topic ·
16 produce errors · 17 rewritten batches · 18 transactions · 19 coordinators · 20 throttling, client ids ·
21 advertised address · 22 unknown requests · 23 the event loop · 24 the new group protocols"""

import re
from pathlib import Path

NAME = re.compile(r"^def test((?:_\d+)+)_", re.MULTILINE)


def test_every_pitfall_has_a_test() -> None:
    numbers = {
        int(number)
        for path in Path(__file__).parent.glob("test_*.py")
        for match in NAME.finditer(path.read_text())
        for number in match[1].split("_")[1:]
    }
    assert numbers == set(range(1, 25))
