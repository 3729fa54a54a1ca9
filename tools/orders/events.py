"""A shop's events: orders, some of them late, some sent twice, a few invalid. Every run has the same ones."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

CATEGORIES = {"books": 18, "coffee": 12, "garden": 45, "music": 25, "tools": 60}
OPENING = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
# A customer's phone may be offline, so an order may reach the shop this late; the watermark waits longer.
LATE_MINUTES_MAX = 20


@dataclass
class Expected:
    """What the shop has sent; the results of the pipeline are compared with this."""

    sent: int = 0
    orders: int = 0
    duplicates: int = 0
    undecodable: int = 0
    rejected: int = 0
    closings: int = 0
    revenue_cents: int = 0
    ids: set[str] = field(default_factory=set)


class Shop:
    """One working day; `day` yields the key and value of each event, in the order in which they are sent."""

    def __init__(self, events: int, seed: int = 7) -> None:
        self.expected = Expected()
        self._events = events
        self._random = random.Random(seed)

    def day(self) -> Iterator[tuple[bytes, bytes]]:
        last: tuple[bytes, bytes] | None = None
        for number in range(self._events):
            moment = OPENING + timedelta(seconds=number * 36_000 / self._events)
            chance = self._random.random()
            if chance < 0.02 and last is not None:
                self.expected.duplicates += 1
                yield self._sent(last)
            elif chance < 0.03:
                self.expected.undecodable += 1
                yield self._sent((b"?", b'{"order_id": "o-%d", "amount": ' % number))
            elif chance < 0.04:
                yield self._sent(self._bad_order(number, moment))
            else:
                last = self._order(number, moment)
                yield self._sent(last)

    def closing(self) -> tuple[bytes, bytes]:
        """The last event of the day: its time is so late that the watermark passes all orders."""
        self.expected.closings += 1
        moment = OPENING + timedelta(hours=14)
        return self._sent(self._record("closing", "closing", "closing", 0.0, moment))

    def _order(self, number: int, moment: datetime) -> tuple[bytes, bytes]:
        category = self._random.choice(list(CATEGORIES))
        cents = round(CATEGORIES[category] * 100 * self._random.uniform(0.5, 4.0))
        if self._random.random() < 0.05:
            moment -= timedelta(minutes=self._random.uniform(1, LATE_MINUTES_MAX))
        order = f"o-{number}"
        self.expected.orders += 1
        self.expected.revenue_cents += cents
        self.expected.ids.add(order)
        return self._record(order, f"c-{self._random.randrange(500)}", category, cents / 100, moment)

    def _bad_order(self, number: int, moment: datetime) -> tuple[bytes, bytes]:
        """Valid JSON that is not a valid order: it has no customer, or a negative amount."""
        self.expected.rejected += 1
        customer = None if number % 2 else "c-1"
        return self._record(f"o-{number}", customer, "coffee", -1.0 if customer else 5.0, moment)

    def _record(
        self, order: str, customer: str | None, category: str, amount: float, moment: datetime
    ) -> tuple[bytes, bytes]:
        event = {
            "order_id": order,
            "customer": customer,
            "category": category,
            "amount": amount,
            "at": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        return order.encode(), json.dumps(event).encode()

    def _sent(self, record: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        self.expected.sent += 1
        return record
