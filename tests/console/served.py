"""A console in a thread of the test's process, and a small client for its API."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from barnabas.console.serving import ConsoleServer
from barnabas.console.settings import ConsoleSettings

DEADLINE_SECONDS = 60.0
Json = Any


class Api:
    """Requests to a console with the cookie and the token of one visitor."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=DEADLINE_SECONDS, trust_env=False)
        self.token = ""

    def begin(self) -> Json:
        answer = self.get("/api/session")
        self.token = answer["csrf"]
        return answer

    def call(self, method: str, path: str, body: Json = None, **query: Any) -> httpx.Response:
        headers = {"X-CSRF-Token": self.token} if method != "GET" else {}
        if method != "GET":
            headers["Content-Type"] = "application/json"
        content = None if method == "GET" else json.dumps(body or {})
        params = {name: value for name, value in query.items() if value is not None}
        return self.http.request(method, path, content=content, headers=headers, params=params)

    def get(self, path: str, **query: Any) -> Json:
        return self._good(self.call("GET", path, **query))

    def post(self, path: str, body: Json = None, **query: Any) -> Json:
        return self._good(self.call("POST", path, body, **query))

    def change(self, method: str, path: str, body: Json = None, **query: Any) -> Json:
        return self._good(self.call(method, path, body, **query))

    def refused(self, method: str, path: str, body: Json = None, **query: Any) -> tuple[int, str]:
        """The status and the code of a request that is refused with a sentence."""
        answer = self.call(method, path, body, **query)
        error = answer.json()["error"]
        assert error["message"].endswith(".") and "\n" not in error["message"], error
        return answer.status_code, error["code"]

    def events(self, path: str, **query: Any) -> Iterator[tuple[str, Json]]:
        """The events of a stream, until the caller stops."""
        name = ""
        with self.http.stream("GET", path, params=query) as answer:
            assert answer.status_code == 200
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))

    @staticmethod
    def _good(answer: httpx.Response) -> Json:
        assert answer.status_code == 200, answer.text
        return answer.json()

    def __enter__(self) -> "Api":
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()


@contextmanager
def console(bootstrap: str, client: Mapping[str, Any] | None = None, **settings: Any) -> Iterator[Api]:
    """A console that looks at the cluster often, and an API client of a visitor."""
    chosen = ConsoleSettings(
        client={"bootstrap.servers": bootstrap, **(client or {})},
        port=0,
        **{"sample_seconds": 0.3, **settings},
    )
    server = ConsoleServer(chosen)
    thread = threading.Thread(target=server.run, name="console")
    thread.start()
    try:
        with Api(server.url) as api:
            eventually(lambda: _answers(api))
            api.begin()
            yield api
    finally:
        server.stop()
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive()


def _answers(api: Api) -> bool:
    try:
        return api.http.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def eventually(holds: Callable[[], Any]) -> Any:
    """What `holds` returns once it is true."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (result := holds()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return result
