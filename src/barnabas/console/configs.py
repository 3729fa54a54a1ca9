"""Settings of topics and brokers: what they are, where they come from, what they mean; and changes."""

import re
from typing import Any

from barnabas.client.admin import (
    AlterConfigOp,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
)
from barnabas.config.definition import Source, Type
from barnabas.config.keys_topic import TOPIC_KEYS
from barnabas.config.parsing import render
from barnabas.console.calls import Call
from barnabas.console.failures import bad_request
from barnabas.console.routing import Route
from barnabas.console.shapes import ListOf, MapOf, Shape, Text

Item = dict[str, Any]

VALUE_LENGTH_MAX = 100_000
_SECRET = re.compile(r"password|secret|jaas|\.key$")


async def topic_configs(call: Call) -> Item:
    return await _described(call, _topic(call))


async def broker_configs(call: Call) -> Item:
    return await _described(call, _broker(call))


async def change_topic(call: Call) -> Item:
    answer = await _changed(call, _topic(call), "--topic")
    if not call.is_preview:
        # So that the list of topics shows the new value.
        call.workspace.sampler.topic_configs.pop(call.path["topic"], None)
        await call.workspace.sampler.refresh_topics()
    return answer


async def change_broker(call: Call) -> Item:
    return await _changed(call, _broker(call), "--broker")


def _topic(call: Call) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, call.path["topic"])


def _broker(call: Call) -> ConfigResource:
    if not call.path["id"].isdecimal():
        raise bad_request("The id of a broker is a number.")
    return ConfigResource(ConfigResourceType.BROKER, call.path["id"])


async def _described(call: Call, resource: ConfigResource) -> Item:
    found = await call.workspace.admin.describe_configs([resource], include_documentation=True)
    search = call.query["search"].lower()
    entries = sorted(found[resource].values(), key=lambda entry: entry.name)
    return {"items": [_item(entry) for entry in entries if search in entry.name.lower()]}


def _item(entry: ConfigEntry) -> Item:
    return {
        "name": entry.name,
        "value": None if entry.is_sensitive else entry.value,
        "default": None if entry.is_sensitive else _default(entry),
        "source": _name(Source, entry.source),
        "documentation": entry.documentation,
        "type": _name(Type, entry.type),
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "synonyms": [
            {
                "name": each.name,
                "value": None if entry.is_sensitive else each.value,
                "source": _name(Source, each.source),
            }
            for each in entry.synonyms
        ],
    }


def _default(entry: ConfigEntry) -> str | None:
    """The value that it would have if it were reset. Brokers name it only where it comes from one setting of
    theirs; otherwise it is Kafka's."""
    if entry.source == Source.DEFAULT:
        return entry.value
    inherited = [each.value for each in entry.synonyms if each.source != entry.source]
    if inherited:
        return inherited[0]
    known = TOPIC_KEYS.get(entry.name) if entry.source == Source.TOPIC else None
    return None if known is None else render(known.default)


def _name(kind: type[Source] | type[Type], number: int) -> str:
    try:
        return kind(number).name.lower()
    except ValueError:
        # A newer broker may have more of them.
        return "unknown"


async def _changed(call: Call, resource: ConfigResource, flag: str) -> Item:
    given, reset = call.body["set"], call.body["reset"]
    if not given and not reset:
        raise bad_request("Nothing is to be changed: name settings in `set` or `reset`.")
    both = sorted(set(given) & set(reset))
    if both:
        raise bad_request(f"{both[0]!r} cannot be set and reset at the same time.")
    operations = [AlterConfigOp(name, value) for name, value in given.items()]
    operations += [AlterConfigOp(name, None, ConfigOperation.DELETE) for name in reset]
    await call.workspace.admin.incremental_alter_configs(
        {resource: operations}, validate_only=call.is_preview
    )
    # Without secrets: people copy commands into chats and tickets.
    given = {name: "..." if _SECRET.search(name) else value for name, value in given.items()}
    options = ["--alter", flag, resource.name]
    if given:
        options += ["--add-config", ",".join(f"{name}={_written(value)}" for name, value in given.items())]
    if reset:
        options += ["--delete-config", ",".join(reset)]
    command = call.command("configs", *options)
    changes = {"set": given, "reset": reset}
    return {"command": command, "preview": changes} if call.is_preview else {"command": command, **changes}


def _written(value: str) -> str:
    return f"[{value}]" if "," in value else value


_SEARCH: dict[str, Shape] = {"search": Text("only settings whose name has this text", default="")}
_CHANGES: dict[str, Shape] = {
    "set": MapOf(Text(longest=VALUE_LENGTH_MAX), default={}),
    "reset": ListOf(Text(), "these get their defaults again", default=[]),
}

ROUTES = (
    Route("GET", "/api/topics/{topic}/configs", topic_configs, "Settings of a topic", query=_SEARCH),
    Route("PATCH", "/api/topics/{topic}/configs", change_topic, "Change settings of a topic", body=_CHANGES),
    Route("GET", "/api/brokers/{id}/configs", broker_configs, "Settings of a broker", query=_SEARCH),
    Route("PATCH", "/api/brokers/{id}/configs", change_broker, "Change settings of a broker", body=_CHANGES),
)
