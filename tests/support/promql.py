"""Runs PromQL expressions on scrapes of a live endpoint: enough of the language for a dashboard.

The expressions are parsed by promql-parser, which is compatible with Prometheus' own parser. Evaluated are
selectors, rate, histogram_quantile, aggregations, arithmetic and `>`. Everything else raises, and so does a
selector that finds no sample."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import promql_parser as promql
from prometheus_client.parser import text_string_to_metric_families

Labels: TypeAlias = frozenset[tuple[str, str]]
Vector: TypeAlias = dict[Labels, float]


class NoSamplesError(AssertionError):
    """A selector finds nothing in a scrape: a metric or a label has another name, or is gone."""


class UnsupportedError(Exception):
    """An expression uses a part of the language that is not evaluated here."""


class Scrape:
    """The samples of one scrape, with the labels that Prometheus adds to each."""

    def __init__(self, text: str, seconds: float, **target: str) -> None:
        self.seconds = seconds
        self.samples: list[tuple[str, Labels, float]] = [
            (sample.name, frozenset({**target, **sample.labels}.items()), sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]

    def select(self, selector: promql.VectorSelector) -> Vector:
        selected = {
            labels: value
            for name, labels, value in self.samples
            if name == selector.name and _matches(selector, dict(labels))
        }
        if not selected:
            raise NoSamplesError(f"no sample matches {selector}")
        return selected


def _matches(selector: promql.VectorSelector, labels: Mapping[str, str]) -> bool:
    tests: dict[str, Callable[[str, str], bool]] = {
        "MatchOp.Equal": lambda value, pattern: value == pattern,
        "MatchOp.NotEqual": lambda value, pattern: value != pattern,
        "MatchOp.Re": lambda value, pattern: re.fullmatch(pattern, value) is not None,
        "MatchOp.NotRe": lambda value, pattern: re.fullmatch(pattern, value) is None,
    }
    return all(
        matcher.name in labels and tests[str(matcher.op)](labels[matcher.name], matcher.value)
        for matcher in selector.matchers.matchers
    )


class Evaluation:
    """One expression over two scrapes: rates are taken between them, all else from the second."""

    def __init__(self, before: Scrape, after: Scrape) -> None:
        self._before = before
        self._after = after

    def run(self, expression: str) -> Vector:
        result = self._evaluate(promql.parse(expression))
        return result if isinstance(result, dict) else {frozenset(): result}

    def _evaluate(self, node: promql.Expr) -> Vector | float:
        kinds: dict[type, Callable[[Any], Vector | float]] = {
            promql.NumberLiteral: lambda number: float(number.val),
            promql.ParenExpr: lambda paren: self._evaluate(paren.expr),
            promql.VectorSelector: self._after.select,
            promql.Call: self._call,
            promql.AggregateExpr: self._aggregate,
            promql.BinaryExpr: self._binary,
        }
        if type(node) not in kinds:
            raise UnsupportedError(f"{type(node).__name__} is not evaluated here: {node}")
        return kinds[type(node)](node)

    def _vector(self, node: promql.Expr) -> Vector:
        result = self._evaluate(node)
        if not isinstance(result, dict):
            raise TypeError(f"{node} is a number, not a vector")
        return result

    def _call(self, call: promql.Call) -> Vector:
        if call.func.name == "rate":
            selector = call.args[0].vector_selector
            before, after = self._before.select(selector), self._after.select(selector)
            seconds = self._after.seconds - self._before.seconds
            return {labels: (value - before.get(labels, 0.0)) / seconds for labels, value in after.items()}
        if call.func.name == "histogram_quantile":
            return _quantiles(call.args[0].val, self._vector(call.args[1]))
        raise UnsupportedError(f"{call.func.name} is not evaluated here")

    def _aggregate(self, node: promql.AggregateExpr) -> Vector:
        vector = self._vector(node.expr)
        operation = str(node.op)
        if operation == "topk":
            largest = sorted(vector.items(), key=lambda item: item[1], reverse=True)
            return dict(largest[: int(node.param.val)])
        kept = [] if node.modifier is None else node.modifier.labels
        if node.modifier is not None and node.modifier.type != promql.AggModifierType.By:
            raise UnsupportedError("only `by` is evaluated here")
        groups: dict[Labels, list[float]] = {}
        for labels, value in vector.items():
            names = dict(labels)
            missing = [name for name in kept if name not in names]
            if missing:
                raise NoSamplesError(f"{node} groups by {missing}, which the samples do not have")
            groups.setdefault(frozenset((name, names[name]) for name in kept), []).append(value)
        combine = {"sum": math.fsum, "max": max, "min": min}[operation]
        return {labels: combine(values) for labels, values in groups.items()}

    def _binary(self, node: promql.BinaryExpr) -> Vector | float:
        operation = str(node.op)
        left, right = self._evaluate(node.lhs), self._evaluate(node.rhs)
        if not isinstance(left, dict) and not isinstance(right, dict):
            return _calculate(operation, left, right)
        pairs = _pairs(left, right)
        if operation == ">":
            return {labels: one for labels, (one, other) in pairs.items() if one > other}
        return {labels: _calculate(operation, one, other) for labels, (one, other) in pairs.items()}


def _pairs(left: Vector | float, right: Vector | float) -> dict[Labels, tuple[float, float]]:
    if not isinstance(right, dict):
        assert isinstance(left, dict)
        return {labels: (value, right) for labels, value in left.items()}
    if not isinstance(left, dict):
        return {labels: (left, value) for labels, value in right.items()}
    return {labels: (value, right[labels]) for labels, value in left.items() if labels in right}


def _calculate(operation: str, left: float, right: float) -> float:
    if operation == "/":
        return left / right if right else math.nan
    return {"+": left + right, "-": left - right, "*": left * right}[operation]


def _quantiles(quantile: float, buckets: Vector) -> Vector:
    """As Prometheus does it: linear within a bucket, and NaN where nothing was observed."""
    histograms: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in buckets.items():
        bound = float(dict(labels)["le"])
        rest = frozenset((name, value) for name, value in labels if name != "le")
        histograms.setdefault(rest, []).append((bound, count))
    return {labels: _quantile(quantile, sorted(histogram)) for labels, histogram in histograms.items()}


def _quantile(quantile: float, histogram: list[tuple[float, float]]) -> float:
    total = histogram[-1][1]
    if not total:
        return math.nan
    rank = quantile * total
    below_bound, below_count = 0.0, 0.0
    for bound, count in histogram:
        if count >= rank:
            if math.isinf(bound):
                return below_bound
            share = (rank - below_count) / (count - below_count)
            return below_bound + (bound - below_bound) * share
        below_bound, below_count = bound, count
    return below_bound
