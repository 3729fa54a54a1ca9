"""The checker on histories of a model: legal ones are clean, and every change that breaks one is found."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.jepsen.checker import Kind, Rules, check
from tests.jepsen.history import Operation
from tests.jepsen.model import Model
from tests.jepsen.mutations import MUTATIONS, NotPossible, mutate
from tests.jepsen.story import COPIERS

RULES = Rules(exactly_once_groups=frozenset({COPIERS}))
SEEDS = st.integers(0, 2**32)


@given(seed=SEEDS, steps=st.integers(0, 300))
@settings(max_examples=400)
def test_a_legal_history_is_clean(seed: int, steps: int) -> None:
    history = Model(Random(seed)).run(steps)
    for rules in RULES, replace(RULES, read_to_end=False):
        verdict = check(history, rules)
        assert verdict.ok, str(verdict)


@pytest.mark.parametrize("kind", Kind)
@given(seed=SEEDS, steps=st.integers(100, 300))
@settings(max_examples=40)
def test_an_illegal_history_is_found(kind: Kind, seed: int, steps: int) -> None:
    random = Random(seed)
    history = Model(random).run(steps)
    try:
        broken = mutate(history, kind, random)
    except NotPossible:
        assume(False)
    assert kind in check(broken, RULES).kinds
    assert check(history, RULES).ok  # the change was the reason


def test_there_is_a_change_for_every_kind() -> None:
    assert set(MUTATIONS) == set(Kind)


def _names(operation: Operation) -> set[tuple[str, ...]]:
    return {tuple(map(str, micro[:2])) for micro in operation.value}


def test_the_model_makes_everything_that_the_checker_has_to_judge() -> None:
    """A model that leaves something out would test nothing of it."""
    history = Model(Random(1)).run(3000)
    seen = {(operation.type, operation.function) for operation in history}
    for function in ("send", "poll", "txn", "commit", "reset", "seek"):
        assert {(type, function) for type in ("invoke", "ok", "fail", "unknown")} <= seen
    assert {("ok", "assign"), ("ok", "subscribe"), ("ok", "crash"), ("ok", "committed")} <= seen
    assert {operation.commit for operation in history if operation.function == "txn"} == {True, False}
    micro = {name for operation in history if operation.function == "poll" for name, *_ in operation.value}
    assert micro == {"poll", "rebalance"}
    sends = [micro for operation in history if operation.function == "send" for micro in operation.value]
    assert {micro[3] for micro in sends if len(micro) > 3} == {"ok", "fail", "unknown"}
    copies = [each for each in history if each.function == "txn" and ("commit", COPIERS) in _names(each)]
    assert {(each.type, each.commit) for each in copies} == {
        (type, commit) for type in ("invoke", "ok", "fail", "unknown") for commit in (True, False)
    }
    counts = check(history).counts
    assert min(counts.committed, counts.aborted, counts.unknown, counts.read) > 100
