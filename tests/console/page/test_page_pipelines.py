"""Pipelines: their queries, what is wrong with one, and dead letters that are sent again."""

import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect
from tests.clients.broker_process import PROGRAM
from tests.console.page.conftest import MakeTopic, Visit, running_console
from tests.console.test_api_pipelines import PIPELINE

import barnabas
from barnabas.spark.dead_letter_headers import STEP_HEADER, TOPIC_HEADER


def test_dead_letters_of_a_pipeline_are_replayed(
    context: BrowserContext,
    bootstrap: str,
    producer: barnabas.Producer,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    topic, letters = make_topic("read"), make_topic("letters")
    headers = [(TOPIC_HEADER, topic.encode()), (STEP_HEADER, b"orders")]
    producer.send(letters, b"not json", headers=headers).result(30)
    file, broken = tmp_path / "small.yaml", tmp_path / "broken.yaml"
    file.write_text(PIPELINE.format(bootstrap=bootstrap, topic=topic, letters=letters))
    broken.write_text("sources: nothing\n")
    options = ("--pipeline", str(file), "--pipeline", str(broken))
    with running_console(bootstrap, tmp_path, *options) as console:
        visit = Visit(context, console.url)
        visit.open("/pipelines")
        cards = visit.page.locator(".stack > .panel")
        expect(cards).to_have_count(2)
        visit.sees(cards.nth(0), "orders-to-copies")
        visit.sees(cards.nth(0), f"Dead letters: 0 in {letters}")
        expect(cards.nth(1).locator(".problem")).to_be_visible()
        cards.nth(0).get_by_role("button", name="Replay…").click()
        dialog = visit.page.locator("dialog")
        visit.sees(dialog, "1 dead letters would be sent")
        assert "pipeline replay-dlq" in visit.finish(dialog, "Replay")
        visit.page.goto(f"{console.url}/topics/{topic}/messages")
        visit.sees(visit.table("Messages"), "not json")
        visit.check()


CHECKED = """\
name: checked
bootstrap: {bootstrap}
checkpoint: ./state
sources:
  orders: {{topic: {topic}, decode: json, schema: "id long"}}
quality:
  orders: [{{name: known, check: id > 0, action: fail}}]
sinks:
  - {{from: orders, table: {{path: ./tables/orders, format: parquet}}}}
"""


@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
def test_a_query_that_failed_says_why(
    context: BrowserContext,
    bootstrap: str,
    producer: barnabas.Producer,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    topic = make_topic("checked")
    producer.send(topic, b'{"id": 0}').result(30)
    file = tmp_path / "checked.yaml"
    file.write_text(CHECKED.format(bootstrap=bootstrap, topic=topic))
    command = [str(PROGRAM), "pipeline", "run", str(file), "--once", "--master", "local[1]"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 1, ran.stderr
    assert "rule 'known'" in ran.stderr.splitlines()[-1]
    with running_console(bootstrap, tmp_path, "--pipeline", str(file)) as console:
        visit = Visit(context, console.url)
        visit.open("/pipelines")
        card = visit.page.locator(".stack > .panel")
        expect(card.locator("h2").first).to_have_text("checked failed")
        row = visit.table("Queries").locator("tbody tr")
        visit.sees(row, "failed")
        visit.sees(row.locator(".error-text"), "rule 'known'")
        visit.check()
