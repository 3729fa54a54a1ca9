"""How a row is run: contestants take turns, are warmed until two rounds agree, and then count."""

from collections.abc import Callable, Mapping

from tests.bench.figures import Sample, agree
from tests.bench.results import Result, RowResult
from tests.bench.rows import Round, Row
from tests.bench.stage import Stage

WARM_ROUNDS_MAX = 3
Notify = Callable[[str], None]  # called with a text that says what is being done


class Contestant:
    """Its rounds so far; one that has failed says why and is left out from then on."""

    def __init__(self, name: str, measure: Round, metric: str) -> None:
        self.name = name
        self._measure, self._metric = measure, metric
        self._warm: list[Sample] = []
        self._samples: list[Sample] = []
        self._failure = ""

    @property
    def is_warm(self) -> bool:
        if self._failure or len(self._warm) >= WARM_ROUNDS_MAX:
            return True
        last_two = [sample.values[self._metric] for sample in self._warm[-2:]]
        return len(last_two) == 2 and agree(*last_two)

    def warm(self) -> None:
        self._run(self._warm)

    def count(self) -> None:
        self._run(self._samples)

    def _run(self, into: list[Sample]) -> None:
        if self._failure:
            return
        try:
            into.append(self._measure())
        except (OSError, RuntimeError, AssertionError) as failure:
            self._failure = f"{type(failure).__name__}: {failure}"

    def result(self) -> Result:
        return Result.of(self.name, self._samples, len(self._warm), self._failure)


def run_row(row: Row, stage: Stage, notify: Notify) -> RowResult:
    """A row that fails has the error in its result; the others go on."""
    try:
        notify(f"{row.name}: preparing")
        with row.open(stage) as rounds:
            results = run_rounds(row, rounds, stage.size.rounds, notify)
    except (OSError, RuntimeError, AssertionError) as failure:
        results = [Result(name, (), failure=f"{type(failure).__name__}: {failure}") for name in stage.names]
    return RowResult(row.name, row.group, row.work, row.metric, row.goals, results)


def run_rounds(row: Row, rounds: Mapping[str, Round], count: int, notify: Notify) -> list[Result]:
    contestants = [Contestant(name, measure, row.metric) for name, measure in rounds.items()]
    for turn in range(WARM_ROUNDS_MAX if row.warms else 0):
        for each in contestants:
            if not each.is_warm:
                notify(f"{row.name}: {each.name}, warming up, round {turn + 1}")
                each.warm()
    counted = row.rounds or count
    for turn in range(counted):
        for each in contestants:
            notify(f"{row.name}: {each.name}, round {turn + 1} of {counted}")
            each.count()
    return [each.result() for each in contestants]
