"""The page: its files below /static, and index.html for every other address, so that deep links work."""

import mimetypes
from importlib.resources import files

from starlette.responses import Response

from barnabas.console.failures import ApiError
from barnabas.console.routing import path_segments

STATIC = "static"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}


def page(method: str, raw_path: str) -> Response:
    if method not in ("GET", "HEAD"):
        raise ApiError(405, "METHOD_NOT_ALLOWED", "Use GET here.")
    segments = path_segments(raw_path)
    return _file(segments[1:]) if segments[0] == STATIC else _file(("index.html",))


def _file(names: tuple[str, ...]) -> Response:
    found = files("barnabas.console") / STATIC
    for name in names:
        if not name or name.startswith(".") or "/" in name or "\\" in name:
            raise ApiError(404, "NOT_FOUND", "There is no such file.")
        found = found / name
    if not found.is_file():
        raise ApiError(404, "NOT_FOUND", "There is no such file.")
    suffix = f".{found.name.rpartition('.')[2]}"
    kind = _TYPES.get(suffix) or mimetypes.guess_type(found.name)[0] or "application/octet-stream"
    return Response(found.read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})
