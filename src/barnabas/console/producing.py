"""Writes a message to a topic."""

import json
import shlex
from typing import Any

from barnabas.console.calls import Call
from barnabas.console.failures import bad_request
from barnabas.console.routing import Route
from barnabas.console.shapes import TEXT_MAX, Choice, Fields, ListOf, Nullable, Text, Whole

Item = dict[str, Any]

HEADERS_MAX = 100

_CONTENT = Fields(
    {
        "as": Choice("text", "json", "hex", "null", default="text"),
        "text": Nullable(Text(longest=TEXT_MAX)),
    },
    default={"as": "null", "text": None},
)


async def produce(call: Call) -> Item:
    topic, body = call.path["topic"], call.body
    key, value = encoded(body["key"], "The key"), encoded(body["value"], "The value")
    headers = [
        (each["name"], None if each["text"] is None else each["text"].encode()) for each in body["headers"]
    ]
    # Otherwise a missing topic would be waited for.
    described = (await call.workspace.admin.describe_topics([topic]))[topic]
    partition = body["partition"]
    if partition is not None and partition >= len(described.partitions):
        raise bad_request(f"The topic has no partition {partition}.")
    command = _command(call, key, value, body)
    if call.is_preview:
        sizes = {"key_size": len(key or b""), "value_size": len(value or b"")}
        return {"command": command, "preview": {"topic": topic, "partition": partition, **sizes}}
    sent = await call.workspace.producer.send_and_wait(
        topic, value, key, partition=partition, headers=headers
    )
    return {"partition": sent.partition, "offset": sent.offset, "time_ms": sent.timestamp, "command": command}


def encoded(content: Item, what: str) -> bytes | None:
    kind, text = content["as"], content["text"]
    if kind == "null" or text is None:
        return None
    if kind == "hex":
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise bad_request(f"{what} is not hexadecimal: use pairs of digits 0-9 and a-f.") from None
    if kind == "json":
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise bad_request(f"{what} is not JSON: {error}.") from None
    return str(text).encode()


def _command(call: Call, key: bytes | None, value: bytes | None, body: Item) -> str:
    """As near as the tool comes: it reads one line, so a text with several lines cannot be written with
    it."""
    parts = []
    options: list[str] = ["--topic", call.path["topic"]]
    if body["headers"]:
        options += ["--property", "parse.headers=true"]
        parts.append(",".join(f"{each['name']}:{each['text'] or ''}" for each in body["headers"]))
    if key is not None:
        options += ["--property", "parse.key=true"]
        parts.append(key.decode(errors="replace"))
    parts.append("" if value is None else value.decode(errors="replace"))
    tool = call.command("console-producer", *options)
    line = shlex.quote("\t".join(parts))
    return f"printf '%s\\n' {line} | {tool}"


ROUTES = (
    Route(
        "POST",
        "/api/topics/{topic}/messages",
        produce,
        "Write a message",
        body={
            "partition": Nullable(Whole("null: by the key, or any", most=2**31 - 1)),
            "key": _CONTENT,
            "value": _CONTENT,
            "headers": ListOf(
                Fields({"name": Text(), "text": Nullable(Text(longest=TEXT_MAX))}),
                default=[],
                longest=HEADERS_MAX,
            ),
        },
    ),
)
