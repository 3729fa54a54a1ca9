"""`barnabas pipeline`: runs, checks and maintains pipelines on Spark."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.failures import ToolError
from barnabas.cli.output import columns, print_json, progress
from barnabas.cli.spark_session import add_spark, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.spark.pipeline.definition import Pipeline
    from barnabas.spark.pipeline.loading import Loaded
    from barnabas.spark.pipeline.maintaining import TableReport
    from barnabas.spark.pipeline.problems import PipelineError
    from barnabas.spark.pipeline.progress import QueryProgress

TABLE_HEADERS = ["TABLE", "FORMAT", "FILES", "AFTER", "BYTES", "AFTER", "SNAPSHOTS-REMOVED", "FILES-SWEPT"]
Verb = Callable[[argparse.Namespace], int]
DESCRIPTION = """\
Run a pipeline: a file that says which topics are read, how the rows are changed, and to which topics and
tables they are written. It runs on Spark, here or on a cluster, and continues from its checkpoint.
docs/pipelines.md explains the file."""
EXAMPLES = """\
  barnabas pipeline validate orders.yaml             print the mistakes in the file, with lines and advice
  barnabas pipeline run orders.yaml                  run until Ctrl-C, with progress on a terminal
  barnabas pipeline run orders.yaml --once           process what is there now, then exit
  barnabas pipeline run orders.yaml --master spark://host:7077
  barnabas pipeline run orders.yaml --metrics-port 9405 --ui
  barnabas pipeline status orders.yaml               print the progress and the lag
  barnabas pipeline replay-dlq orders.yaml           process dead letters again
  barnabas pipeline maintain orders.yaml             merge small files of its tables, drop old versions
  barnabas pipeline export orders.yaml project       write it as a project for `spark-pipelines run`
"""
MAINTAIN = """\
Maintain the tables that the pipeline writes: merge small files, drop versions that are older than
--keep-days, delete files that no version uses, such as those of killed tasks. It does not need Spark, and may
run while the pipeline runs. docs/pipelines.md says what is done for each format."""
MAINTAIN_EXAMPLES = """\
examples:
  barnabas pipeline maintain orders.yaml
  barnabas pipeline maintain orders.yaml --keep-days 0.5 --json
  0 3 * * *  barnabas pipeline maintain /srv/orders.yaml     a line for cron: every night at three
"""
KEEP_DAYS = 7
METRICS_HOST = "127.0.0.1"
DAYS_LIMIT = 36_500.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(title="verbs", metavar="<verb>", required=True)
    run = _verb(verbs, "run", "run the pipeline", _run)
    run.add_argument("--once", action="store_true", help="process what is there now, then exit")
    run.add_argument(
        "--metrics-port", type=int, metavar="PORT", help="serve metrics for Prometheus (0: any free port)"
    )
    run.add_argument(
        "--metrics-host", default=METRICS_HOST, metavar="HOST", help=f"the address for them ({METRICS_HOST})"
    )
    add_spark(run)
    validate = _verb(verbs, "validate", "check the file, without running it", _validate)
    validate.add_argument(
        "--deep", action="store_true", help="also check the SQL with Spark, and whether the topics exist"
    )
    add_spark(validate)
    status = _verb(verbs, "status", "print the progress and the lag of each query", _status)
    status.add_argument("--json", action="store_true", help="print JSON")
    replay = _verb(verbs, "replay-dlq", "send dead letters back to the topics they came from", _replay)
    replay.add_argument("--dry-run", action="store_true", help="only print what would be sent")
    replay.add_argument("--step", help="only the dead letters of this source or step")
    maintain = _verb(verbs, "maintain", "maintain the tables that the pipeline writes", _maintain)
    maintain.description = MAINTAIN
    maintain.epilog = MAINTAIN_EXAMPLES
    maintain.formatter_class = argparse.RawDescriptionHelpFormatter
    maintain.add_argument(
        "--keep-days",
        type=_days,
        default=KEEP_DAYS,
        metavar="N",
        help=f"keep younger versions and files, such as those that a query is writing ({KEEP_DAYS})",
    )
    maintain.add_argument("--json", action="store_true", help="print JSON")
    export = _verb(verbs, "export", "write a project for Spark Declarative Pipelines", _export)
    export.add_argument("target", type=Path, metavar="DIRECTORY", help="where the project is written")


def _verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, help_: str, run: Verb
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=help_, description=f"{help_[0].upper()}{help_[1:]}.")
    parser.add_argument("file", type=Path, metavar="FILE", help="the pipeline: .yaml, or a Python module")
    parser.set_defaults(verb=run)
    return parser


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < DAYS_LIMIT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days such as 0, 0.5 or 7")
    return days


def run(options: argparse.Namespace) -> int:
    exit_code: int = options.verb(options)
    return exit_code


def _load(path: Path) -> "Pipeline":
    return _load_with_lines(path).pipeline


def _load_with_lines(path: Path) -> "Loaded":
    try:
        from barnabas.spark.pipeline.loading import load_with_lines
        from barnabas.spark.pipeline.problems import PipelineError
    except ImportError as error:
        raise ToolError("Pipelines run on Spark: pip install 'barnabas[spark]'.") from error
    if not path.exists():
        raise ToolError(f"{path}: the file does not exist.")
    try:
        return load_with_lines(path)
    except PipelineError as error:
        raise _mistakes(error) from error


def _mistakes(error: "PipelineError") -> ToolError:
    """Prints all mistakes; the result counts them."""
    print(error, file=sys.stderr)
    count = len(error.problems)
    return ToolError(f"{error.file} has {count} mistake{'s' if count > 1 else ''}; nothing was started.")


def _load_with_functions(path: Path) -> "Loaded":
    """The pipeline whose functions can be imported and called."""
    loaded = _load_with_lines(path)
    from barnabas.spark.pipeline.deep_checks import check_functions
    from barnabas.spark.pipeline.problems import PipelineError

    problems = check_functions(loaded.pipeline, loaded.lines, path.parent)
    if problems:
        raise _mistakes(PipelineError(str(path), problems))
    return loaded


def _run(options: argparse.Namespace) -> int:
    loaded = _load_with_functions(options.file)
    pipeline = loaded.pipeline
    from barnabas.cli.pipeline_screen import screen

    start = time.monotonic()
    done: list[QueryProgress] = []
    with (
        _metrics(options, pipeline) as metrics,
        screen(pipeline.name) as shown,
        spark_session(options, f"pipeline {pipeline.name}", options.file.parent) as spark,
    ):
        from barnabas.spark.pipeline.running import QueryFailed
        from barnabas.spark.pipeline.running import run as run_pipeline

        def watch(progress: "list[QueryProgress]") -> None:
            done[:] = metrics[:] = progress
            shown.show(progress)

        shown.say("Spark is running; starting the queries")
        try:
            run_pipeline(spark, pipeline, options.file.parent, once=options.once, watch=watch)
        except KeyboardInterrupt:
            shown.say("stopped")
        except QueryFailed as error:
            if error.is_planning:
                _check_deeply(spark, loaded, options.file)
            raise ToolError(f"{error} Finished batches are kept; run it again to continue.") from error
    print(_summary(done, time.monotonic() - start))
    return 0


@contextmanager
def _metrics(options: argparse.Namespace, pipeline: "Pipeline") -> "Iterator[list[QueryProgress]]":
    """The list whose progress is served as metrics, if they are to be served."""
    if options.metrics_port is None:
        yield []
        return
    from barnabas.cli.pipeline_metrics import served_metrics

    address = (options.metrics_host, options.metrics_port)
    with served_metrics(pipeline, options.file.parent, *address) as served:
        print(f"{pipeline.name}: metrics at {served.address}", file=sys.stderr, flush=True)
        yield served.progress


def _summary(done: "list[QueryProgress]", seconds: float) -> str:
    rows = [(each.name, each.rows, each.batches, each.lag_total, each.state) for each in done]
    table = columns(["QUERY", "ROWS", "BATCHES", "LAG", "STATE"], rows)
    return f"{table}\n{sum(row[1] for row in rows):,} rows read in {seconds:.1f} s."


def _validate(options: argparse.Namespace) -> int:
    loaded = _load_with_functions(options.file)
    pipeline = loaded.pipeline
    if options.deep:
        from barnabas.spark.pipeline.topic_checks import topic_warnings

        for warning in topic_warnings(pipeline):
            print(f"Warning: {warning}", file=sys.stderr)
        with spark_session(options, f"pipeline {pipeline.name}", options.file.parent) as spark:
            _check_deeply(spark, loaded, options.file)
    sources, steps, sinks = len(pipeline.sources), len(pipeline.steps), len(pipeline.sinks)
    print(f"{options.file} is valid: {sources} sources, {steps} steps, {sinks} sinks.")
    if not options.deep and (pipeline.steps or pipeline.tables or pipeline.quality):
        print("SQL and tables were not checked; --deep checks them with Spark.")
    return 0


def _check_deeply(spark: "SparkSession", loaded: "Loaded", file: Path) -> None:
    """Prints the mistakes that only Spark can find, with their lines; raises if there are any."""
    from barnabas.spark.pipeline.deep_checks import check_with_spark
    from barnabas.spark.pipeline.problems import PipelineError

    problems = check_with_spark(spark, loaded.pipeline, file, loaded.lines)
    if problems:
        raise _mistakes(PipelineError(str(file), problems))


def _status(options: argparse.Namespace) -> int:
    from barnabas.spark.pipeline.status import HEADERS, status_of, table_rows

    pipeline = _load(options.file)
    status = status_of(pipeline, options.file.parent)
    if options.json:
        letters = {"dead_letters_topic": pipeline.dead_letters, "dead_letters": status.dead_letters}
        print_json([{**each._asdict(), **letters} for each in status.queries])
    else:
        print(columns(HEADERS, table_rows(status.queries)))
        for query, error in {each.query: each.error for each in status.queries if each.error}.items():
            print(f"{query} has failed: {error}")
        if status.dead_letters is not None:
            print(f"{status.dead_letters:,} dead letters were written to {pipeline.dead_letters}.")
    if status.problem is not None:
        raise ToolError(status.problem)
    return 0


def _replay(options: argparse.Namespace) -> int:
    from barnabas.spark.pipeline.replaying import replay

    pipeline = _load(options.file)
    if pipeline.dead_letters is None:
        raise ToolError(f"{options.file} has no dead_letters, so there is nothing to send again.")
    result = replay(pipeline, step=options.step, dry_run=options.dry_run)
    verb = "would be sent" if options.dry_run else "sent"
    for topic, count in sorted(result.sent.items()):
        print(f"{count} {verb} to {topic}")
    if result.without_origin:
        print(f"{result.without_origin} not sent: they have no headers that name their topic.")
    print(f"{sum(result.sent.values())} dead letters {verb}.")
    return 0


def _maintain(options: argparse.Namespace) -> int:
    pipeline = _load(options.file)
    from barnabas.spark.pipeline.maintaining import maintain_tables, tables_of

    targets = tables_of(pipeline, options.file.parent)
    if not targets:
        raise ToolError(f"{options.file} has no sink that is a table, so there is nothing to maintain.")
    reports: list[TableReport] = []
    with progress("tables", len(targets)) as advance:
        for report in maintain_tables(targets, options.keep_days):
            reports.append(report)
            advance(1)
    if options.json:
        print_json([_table_json(report) for report in reports])
    else:
        print(columns(TABLE_HEADERS, [_table_row(report) for report in reports]))
    problems = [report.problem for report in reports if report.problem is not None]
    for problem in problems:
        print(f"Error: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _export(options: argparse.Namespace) -> int:
    pipeline = _load(options.file)
    from barnabas.spark.pipeline.exporting import ExportError, export

    try:
        files = export(pipeline, options.file, options.target)
    except ExportError as error:
        print(error, file=sys.stderr)
        raise ToolError(f"{options.file} cannot be exported; nothing was written.") from error
    for file in files:
        print(file)
    print(f"Run it: spark-pipelines run --spec {files[0]}")
    return 0


def _table_json(report: "TableReport") -> dict[str, object]:
    figures = {} if report.done is None else report.done._asdict()
    return {
        "table": report.target.path,
        "format": report.target.format,
        **figures,
        "problem": report.problem,
    }


def _table_row(report: "TableReport") -> list[object]:
    name = Path(report.target.path).name
    figures = [None] * 6 if report.done is None else list(report.done)
    return [name, report.target.format, *figures]
