"""Transactions that this broker coordinates."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import PAUSE, ROWS_PER_STEP, Collected, gauge, gauges, labels
from barnabas.transactions.states import AT_REST, State

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

# In these states something is still to be done: by the client, or by the coordinator.
OPEN_STATES = tuple(state for state in State if state not in AT_REST and state is not State.DEAD)


def collect(broker: Broker) -> Collected:
    states: Counter[State] = Counter()
    now_ms = oldest_ms = broker.clock.now_ms()
    for shard in list(broker.transactions.shards()):
        for number, transaction in enumerate(list(shard.machine.transactions.values())):
            if number % ROWS_PER_STEP == 0:
                yield PAUSE
            states[transaction.state] += 1
            if transaction.state in OPEN_STATES and transaction.start_ms >= 0:
                oldest_ms = min(oldest_ms, transaction.start_ms)
    yield gauge("barnabas_transactional_ids", "Transactional ids that are known here", states.total())
    yield gauges(
        "barnabas_open_transactions",
        "Transactions that are not complete, by state",
        ((labels(state=state.shown), states[state]) for state in OPEN_STATES),
    )
    yield gauge(
        "barnabas_oldest_transaction_seconds",
        "Age of the oldest transaction that is not complete; 0 if there is none",
        (now_ms - oldest_ms) / 1000,
    )
