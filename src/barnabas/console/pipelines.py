"""Pipelines on Spark: their progress, and dead letters sent back to where they came from.

The console does not load pipelines itself, because they are programs of the user: it runs `barnabas pipeline`
for the files that it was started with, and remembers the answer for a while."""

import asyncio
import json
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from barnabas.console.calls import Call
from barnabas.console.failures import ApiError, not_found, sentence
from barnabas.console.routing import Route
from barnabas.console.shapes import Nullable, Text

Item = dict[str, Any]

KEEP_SECONDS = 10.0
STATUS_SECONDS = 60.0
REPLAY_SECONDS = 600.0
OUTPUT_BYTES_MAX = 4 << 20


class Pipelines:
    """The last answers, by file. Several pages that ask at the same time share one process."""

    def __init__(self, files: tuple[Path, ...]) -> None:
        self.files = {_name(file, files): file for file in files}
        self._known: dict[str, tuple[float, Item]] = {}
        self._locks = {name: asyncio.Lock() for name in self.files}

    async def status(self, name: str) -> Item:
        async with self._locks[name]:
            at, item = self._known.get(name, (0.0, {}))
            if not item or time.monotonic() - at > KEEP_SECONDS:
                item = await self._ask(name)
                self._known[name] = time.monotonic(), item
        return item

    def forget(self, name: str) -> None:
        self._known.pop(name, None)

    async def _ask(self, name: str) -> Item:
        file = self.files[name]
        item: Item = {
            "name": name,
            "file": str(file),
            "state": "unknown",
            "queries": [],
            "dead_letters": None,
        }
        code, output, problem = await run_tool(["pipeline", "status", str(file), "--json"], STATUS_SECONDS)
        try:
            rows = json.loads(output) if output.strip() else []
        except ValueError:
            rows, problem = [], problem or "The status cannot be read."
        item["queries"] = [_query(row) for row in rows]
        item["dead_letters"] = _dead_letters(rows)
        if code == 0:
            # Spark is not asked: what is known comes from checkpoints and committed offsets.
            item["state"] = _state(rows)
        return item | {"problem": problem if code else None}


def _name(file: Path, files: tuple[Path, ...]) -> str:
    """The name of the file, or its path if two have the same name."""
    is_unique = sum(each.stem == file.stem for each in files) == 1
    return file.stem if is_unique else str(file)


def _query(row: Item) -> Item:
    last = row.get("last_batch")
    moment = None
    if last:
        moment = int(datetime.strptime(last, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp() * 1000)
    return {
        "name": row.get("query"),
        "group": row.get("group"),
        "topic": row.get("topic"),
        "state": _state([row]),
        "batch": row.get("batches"),
        "rows_per_second": row.get("rows_per_second"),
        "lag": row.get("lag"),
        "last_batch_ms": moment,
        "error": row.get("error"),
    }


def _state(rows: list[Item]) -> str:
    if any(row.get("error") for row in rows):
        return "failed"
    return "started" if any(row.get("batches") for row in rows) else "new"


def _dead_letters(rows: list[Item]) -> Item | None:
    """All rows name the same topic: a pipeline has one for its dead letters."""
    for row in rows:
        if row.get("dead_letters_topic"):
            return {"topic": row["dead_letters_topic"], "count": row.get("dead_letters")}
    return None


async def run_tool(arguments: list[str], seconds: float) -> tuple[int, str, str | None]:
    """Run `barnabas ...`: its exit code, its output, and the sentence with which it failed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "barnabas.cli.main",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=OUTPUT_BYTES_MAX,
    )
    try:
        async with asyncio.timeout(seconds):
            out, errors = await process.communicate()
    except TimeoutError:
        return -1, "", f"The command did not end within {seconds:g} seconds."
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = errors.decode(errors="replace").strip().splitlines()
    problem = sentence(lines[-1].removeprefix("Error: ")) if process.returncode and lines else None
    return process.returncode or 0, out.decode(errors="replace"), problem


async def pipelines(call: Call) -> Item:
    known = call.pipelines
    items = await asyncio.gather(*(known.status(name) for name in known.files))
    return {"items": list(items)}


async def replay(call: Call) -> Item:
    name = call.path["name"]
    file = call.pipelines.files.get(name)
    if file is None:
        raise not_found(f"There is no pipeline {name!r}: start the console with --pipeline FILE.")
    arguments = ["pipeline", "replay-dlq", str(file)]
    if call.body["step"] is not None:
        arguments += ["--step", call.body["step"]]
    command = shlex.join(["barnabas", *arguments])
    if call.is_preview:
        arguments.append("--dry-run")
    code, output, problem = await run_tool(arguments, REPLAY_SECONDS)
    if code != 0:
        raise ApiError(409, "REPLAY_FAILED", problem or "The dead letters could not be sent again.")
    call.pipelines.forget(name)
    result = {"name": name, "lines": output.strip().splitlines()}
    return {"command": command, "preview": result} if call.is_preview else {"command": command, **result}


ROUTES = (
    Route("GET", "/api/pipelines", pipelines, "The pipelines that the console was started with"),
    Route(
        "POST",
        "/api/pipelines/{name}/replay",
        replay,
        "Send dead letters back to the topics they came from",
        body={"step": Nullable(Text("only the dead letters of this source or step"))},
    ),
)
