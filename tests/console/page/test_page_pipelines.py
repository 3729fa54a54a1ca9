"""Pipelines: their queries, what is wrong with one, and dead letters that are sent again."""

from pathlib import Path

from playwright.sync_api import BrowserContext, expect
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
