"""A schema registry with Confluent's REST interface: schemas by id and by subject. Schemas by id are
cached."""

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, NamedTuple

TIMEOUT_SECONDS = 10.0
ATTEMPTS = 3
PAUSE_SECONDS = 0.5
ANSWER_BYTES_MAX = 16 << 20
REFERENCES_MAX = 100
NOT_FOUND = 404


class RegistryError(RuntimeError):
    """The registry cannot be reached, or its answer is not that of a registry."""


class UnknownSchemaError(RegistryError):
    """The registry has no such schema."""


class RegisteredSchema(NamedTuple):
    """`schema` is the parsed JSON; `references` are the schemas that it uses, in the order in which they must
    be parsed."""

    schema: Any
    references: tuple[Any, ...] = ()


class Registry:
    def __init__(self, url: str, user_info: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if user_info is not None:
            self._headers["Authorization"] = "Basic " + base64.b64encode(user_info.encode()).decode()
        self._by_id: dict[int, RegisteredSchema] = {}

    def by_id(self, schema_id: int) -> RegisteredSchema:
        if schema_id not in self._by_id:
            self._by_id[schema_id] = self._schema(self._get(f"/schemas/ids/{schema_id}"))
        return self._by_id[schema_id]

    def latest(self, subject: str) -> RegisteredSchema:
        return self._schema(self._get(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/latest"))

    def _schema(self, answer: Any) -> RegisteredSchema:
        kind = answer.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise RegistryError(f"The schema at {self._url} has the type {kind}; only AVRO can be decoded.")
        references: dict[tuple[str, int], Any] = {}
        self._add_references(answer, references)
        return RegisteredSchema(_parsed(answer["schema"]), tuple(references.values()))

    def _add_references(self, answer: Any, references: dict[tuple[str, int], Any]) -> None:
        for reference in answer.get("references") or ():
            key = (reference["subject"], reference["version"])
            if key in references:
                continue
            if len(references) >= REFERENCES_MAX:
                raise RegistryError(f"A schema at {self._url} refers to more than {REFERENCES_MAX} others.")
            subject = urllib.parse.quote(key[0], safe="")
            referred = self._get(f"/subjects/{subject}/versions/{key[1]}")
            self._add_references(referred, references)
            references[key] = _parsed(referred["schema"])

    def _get(self, path: str) -> Any:
        """The answer as JSON; a registry that cannot be reached is tried again."""
        request = urllib.request.Request(self._url + path, headers=self._headers)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                    return json.loads(answer.read(ANSWER_BYTES_MAX))
            except urllib.error.HTTPError as error:
                text = f"The schema registry answered {self._url}{path} with HTTP status {error.code}."
                is_last = error.code < 500 or attempt == ATTEMPTS
                error.close()
                if is_last:
                    kind = UnknownSchemaError if error.code == NOT_FOUND else RegistryError
                    raise kind(text) from error
            except (OSError, ValueError) as error:
                if attempt == ATTEMPTS or isinstance(error, ValueError):
                    raise RegistryError(
                        f"The schema registry at {self._url} cannot be reached or understood: {error}."
                    ) from error
            time.sleep(PAUSE_SECONDS)
        raise AssertionError("the last attempt returns or raises")


def _parsed(text: str) -> Any:
    """The schema as JSON. It may be just the name of a type, which some registries write without quotes."""
    try:
        return json.loads(text)
    except ValueError:
        return text
