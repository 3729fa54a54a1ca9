"""Whether a leader knows that nobody else has led since some moment."""

from tests.unit.replication.conftest import ME, OTHER, THIRD, Held
from tests.unit.replication.test_leading import Story


def fetch_after(story: Story, broker_ids: tuple[int, ...], times: int) -> None:
    """Fetches of these followers, each some time after the one before."""
    for _ in range(times):
        story.pass_ms(10)
        for broker_id in broker_ids:
            story.fetch(broker_id, 0)


def test_while_the_store_is_away_all_who_could_lead_instead_must_have_sent_a_fetch(held: Held) -> None:
    story = Story(held, min_isr=2)
    now = held.clock.monotonic()
    assert story.partition.is_led_since(now), "while the store answers, nobody else has to be asked"
    story.partition.leading._surroundings.is_image_newest_since = lambda moment: False
    assert not story.partition.is_led_since(now)
    fetch_after(story, (OTHER,), times=3)
    assert not story.partition.is_led_since(now)
    fetch_after(story, (THIRD,), times=3)
    assert story.partition.is_led_since(now)
    assert not story.partition.is_led_since(held.clock.monotonic())
    # A replica that is not in sync cannot lead, unless there are too few that are.
    story.follow((ME, OTHER))
    now = held.clock.monotonic()
    fetch_after(story, (OTHER,), times=3)
    assert story.partition.is_led_since(now)
    story.follow((ME,))
    assert not story.partition.is_led_since(now)
    story.follow((OTHER,), leader=OTHER, leader_epoch=4)
    assert not story.partition.is_led_since(now)


def test_fetches_that_waited_in_the_sockets_of_a_paused_leader_do_not_count(held: Held) -> None:
    """A follower may have sent one over each of its two connections before the pause. It may lead by now."""
    story = Story(held, min_isr=2)
    story.partition.leading._surroundings.is_image_newest_since = lambda moment: False
    fetch_after(story, (OTHER, THIRD), times=3)
    story.pass_ms(60_000)
    now = held.clock.monotonic()
    fetch_after(story, (OTHER, THIRD), times=2)
    assert not story.partition.is_led_since(now)
    fetch_after(story, (OTHER, THIRD), times=1)
    assert story.partition.is_led_since(now)
