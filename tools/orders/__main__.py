"""`make run`: a broker, a day of a shop's orders, a pipeline on Spark over them, and the proof of the result.

KEEP=1 leaves the broker serving until Ctrl-C, with the web console on a free port or CONSOLE_PORT."""

import logging
import os
import shutil
import sys
import time
import warnings
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

import barnabas
from barnabas.cli.console_process import ConsoleProcess
from barnabas.cli.output import columns
from barnabas.cli.pipeline_screen import screen
from barnabas.client.admin import NewTopic
from barnabas.spark.pipeline.definition import Pipeline
from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.running import run
from barnabas.spark.pipeline.status import HEADERS, status_of, table_rows
from barnabas.spark.session import SparkMissing, session_of
from barnabas.testing import Broker
from tools.orders.events import Shop
from tools.orders.proof import checks

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "orders" / "pipeline.yaml"
DIRECTORY = ROOT / "build" / "orders"
EVENTS = 40_000
# Java compiles quickly instead of well: most of its code runs only a few times here. And its collector has no
# threads that would take the cores from Spark.
SHORT_RUN = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
TOPICS = ("orders", "orders-enriched", "orders-dead-letters")
console = Console()


def main() -> None:
    warnings.simplefilter("ignore")
    logging.getLogger("pyspark").setLevel(logging.ERROR)
    console.print("[bold]Barnabas[/bold]: a shop's orders through a broker and a pipeline on Spark\n")
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(parents=True)
    started = time.monotonic()
    with Broker(subprocess=True) as broker:
        step(f"broker on {broker.bootstrap}, answering after {time.monotonic() - started:.2f} s")
        os.environ["BARNABAS_BOOTSTRAP"] = broker.bootstrap
        os.environ["ORDERS_DIR"] = str(DIRECTORY)
        pipeline = load(FILE)
        create_topics(broker.bootstrap)
        shop = run_in_two_parts(pipeline, broker.bootstrap)
        prove(broker.bootstrap, shop)
        show(pipeline)
        if os.environ.get("KEEP"):
            keep(broker.bootstrap)


def step(text: str) -> None:
    console.print(f"[green]✓[/green] {text}")


def create_topics(bootstrap: str) -> None:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 4, 1) for topic in TOPICS])


def run_in_two_parts(pipeline: Pipeline, bootstrap: str) -> Shop:
    """The morning; then the afternoon, which goes on from the checkpoints of the morning."""
    shop = Shop(EVENTS)
    day = shop.day()
    try:
        spark = session_of("orders", "local[2]", settings=SHORT_RUN)
    except SparkMissing as error:
        raise SystemExit(str(error)) from error
    try:
        step(f"Spark {spark.version} on local[2]")
        for name, count in (("the morning", EVENTS * 6 // 10), ("the afternoon", EVENTS)):
            produce(bootstrap, shop, list(islice(day, count)), name)
            if name == "the afternoon":
                produce(bootstrap, shop, [shop.closing()], "the closing")
            start = time.monotonic()
            with screen(f"pipeline over {name}") as shown:
                done = run(spark, pipeline, FILE.parent, once=True, watch=shown.show)
            rows = sum(each.rows for each in done)
            took = time.monotonic() - start
            step(f"pipeline over {name}: {len(done)} queries read {rows:,} rows in {took:.1f} s")
    finally:
        spark.stop()
    return shop


def produce(bootstrap: str, shop: Shop, records: list[tuple[bytes, bytes]], name: str) -> None:
    start = time.monotonic()
    with barnabas.Producer(bootstrap_servers=bootstrap, compression_type="lz4", linger_ms=5) as producer:
        shown = track(
            records, f"  producing {name}", console=console, transient=True, disable=not sys.stdout.isatty()
        )
        futures = [producer.send("orders", value, key) for key, value in shown]
    for future in futures:
        future.result(30)
    step(f"{name}: {len(records):,} events acknowledged in {time.monotonic() - start:.1f} s")


def prove(bootstrap: str, shop: Shop) -> None:
    table = Table(title="The proof", title_justify="left")
    for header in ("what", "sent", "counted", ""):
        table.add_column(header, justify="left" if header in ("what", "") else "right")
    results = checks(bootstrap, DIRECTORY, shop.expected)
    for check in results:
        expected, counted = (
            f"{len(each):,}" if isinstance(each, set) else f"{each:,}"
            for each in (check.expected, check.counted)
        )
        table.add_row(check.what, expected, counted, "[green]✓[/green]" if check.holds else "[red]✗[/red]")
    console.print(table)
    wrong = [check.what for check in results if not check.holds]
    if wrong:
        raise SystemExit(f"These numbers are not as expected: {'; '.join(wrong)}.")
    step("every event is accounted for, each exactly once")


def show(pipeline: Pipeline) -> None:
    console.print("\nWhere the pipeline is (barnabas pipeline status):")
    console.print(
        columns(HEADERS, table_rows(status_of(pipeline, FILE.parent).queries)),
        highlight=False,
        soft_wrap=True,
    )
    console.print(
        f"\nTables (Delta): {DIRECTORY / 'tables' / 'orders'} and {DIRECTORY / 'tables' / 'revenue'}\n"
        f"Next: edit {FILE.relative_to(ROOT)} and run [bold]make run[/bold] again, or keep the broker with "
        "[bold]make run KEEP=1[/bold] and look at what it holds:\n"
        "  .venv/bin/barnabas console-consumer --bootstrap-server HOST:PORT --topic orders-enriched "
        "--from-beginning",
        soft_wrap=True,
    )


def keep(bootstrap: str) -> None:
    console.print(f"\nThe broker keeps running at [bold]{bootstrap}[/bold]; Ctrl-C stops it.")
    port = int(os.environ.get("CONSOLE_PORT", "0"))
    try:
        with ConsoleProcess(bootstrap, port, pipelines=[FILE]):
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        console.print("stopping")


if __name__ == "__main__":
    main()
