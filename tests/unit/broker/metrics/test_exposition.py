"""The text is written in steps, between which the loop serves others."""

import asyncio
import gzip

from barnabas.broker.metrics.exposition import write
from barnabas.broker.metrics.families import PAUSE, ROWS_PER_STEP, Collected, gauge, gauges, labels


def many_rows() -> Collected:
    yield gauges("many", "Very many rows", ((labels(row=row), row) for row in range(10 * ROWS_PER_STEP)))


def long_search() -> Collected:
    for _ in range(10):
        yield PAUSE
    yield gauge("found", "What was looked for", 1)


def turns_during(collected: Collected, *, as_gzip: bool) -> tuple[bytes, int]:
    async def story() -> tuple[bytes, int]:
        writing = asyncio.ensure_future(write(collected, open_metrics=False, gzip=as_gzip))
        turns = 0
        while not writing.done():
            turns += 1
            await asyncio.sleep(0)
        return await writing, turns

    return asyncio.run(story())


def test_many_rows_are_written_in_steps() -> None:
    text, turns = turns_during(many_rows(), as_gzip=False)
    assert turns >= 10
    assert text.count(b"\n") == 2 + 10 * ROWS_PER_STEP
    assert text.endswith(b'many{row="1999"} 1999\n')


def test_compressing_goes_in_the_same_steps() -> None:
    compressed, turns = turns_during(many_rows(), as_gzip=True)
    assert turns >= 10
    assert gzip.decompress(compressed) == turns_during(many_rows(), as_gzip=False)[0]


def test_a_collector_pauses_where_it_yields_nothing() -> None:
    text, turns = turns_during(long_search(), as_gzip=False)
    assert turns >= 10
    assert text == b"# HELP found What was looked for\n# TYPE found gauge\nfound 1\n"
