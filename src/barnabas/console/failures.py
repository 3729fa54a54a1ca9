"""What the API answers when a request fails: an HTTP status, a code and one sentence."""

from typing import Any

from barnabas.client.admin import AdminError
from barnabas.client.errors import (
    AuthenticationError,
    ClosedError,
    DisconnectedError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
)

UNAVAILABLE = "BROKER_UNAVAILABLE"

_NOT_FOUND = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ErrorCode.RESOURCE_NOT_FOUND,
)
_CONFLICT = (
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.NON_EMPTY_GROUP,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.UNKNOWN_MEMBER_ID,
)
_NO_ANSWER = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


class ApiError(Exception):
    """A refusal of the console itself. `code` is for programs, `message` for people."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def bad_request(message: str) -> ApiError:
    return ApiError(400, "INVALID_REQUEST", message)


def not_found(message: str) -> ApiError:
    return ApiError(404, "NOT_FOUND", message)


def is_unavailable(error: KafkaError) -> bool:
    """Whether no broker that could answer was reached."""
    return isinstance(error, DisconnectedError | KafkaTimeoutError) or error.code in _NO_ANSWER


def api_error(error: Exception) -> ApiError:
    """The refusal for an error of the clients."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ClosedError):
        return ApiError(401, "LOGIN_REQUIRED", "The session is over: log in again.")
    if isinstance(error, AdminError) and len(error.errors) == 1:
        # The page knows which item it asked for.
        (error,) = error.errors.values()
    if not isinstance(error, KafkaError):
        return ApiError(500, "INTERNAL_ERROR", "The console failed; its log says why.")
    text = sentence(error.message)
    if isinstance(error, AuthenticationError):
        return ApiError(401, "LOGIN_REQUIRED", text)
    if is_unavailable(error):
        return ApiError(503, UNAVAILABLE, text)
    return ApiError(_status(error), error.code.name, text)


def _status(error: KafkaError) -> int:
    if error.code in _NOT_FOUND:
        return 404
    if error.code in _CONFLICT:
        return 409
    if error.code.name.endswith("AUTHORIZATION_FAILED"):
        return 403
    if isinstance(error, UnsupportedVersionError):
        return 501
    return 400


def sentence(text: str) -> str:
    """The text as one sentence with a capital letter and a full stop."""
    text = text.strip()
    if not text:
        return "It failed."
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def error_body(error: ApiError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": error.message}}
