"""Functions of users, named as module:function. A module is searched beside the pipeline's file first."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from barnabas.spark.pipeline.definition import FunctionSink, Pipeline

Reference = str | Callable[..., Any]


def load_function(reference: Reference | None, directory: Path, owner: str) -> Callable[..., Any]:
    """The function; `owner` is what needs it, for errors."""
    if callable(reference):
        return reference
    module_name, _, name = str(reference).partition(":")
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    function = getattr(importlib.import_module(module_name), name, None)
    if not callable(function):
        raise TypeError(f"{owner} needs a function {name} in the module {module_name}.")
    checked: Callable[..., Any] = function
    return checked


def with_functions(pipeline: Pipeline, directory: Path) -> Pipeline:
    """The pipeline with functions instead of their names, to be pickled for a process that may not find the
    modules beside the pipeline's file."""
    steps = [
        step
        if step.python is None
        else replace(step, python=_portable(step.python, directory, f"Step {step.name}"))
        for step in pipeline.steps
    ]
    sinks = [
        replace(sink, python=_portable(sink.python, directory, f"The sink {sink.name}"))
        if isinstance(sink, FunctionSink)
        else sink
        for sink in pipeline.sinks
    ]
    return replace(pipeline, steps=tuple(steps), sinks=tuple(sinks))


def _portable(reference: Reference, directory: Path, owner: str) -> Callable[..., Any]:
    from pyspark import cloudpickle

    function = load_function(reference, directory, owner)
    module = sys.modules[function.__module__]
    if Path(module.__file__ or "").resolve().is_relative_to(directory.resolve()):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return function
