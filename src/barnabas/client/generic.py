"""The types of keys and values that a consumer returns: `Consumer[K, V]` reads `ConsumerRecord[K, V]`.

A type checker takes K and V from the deserializers. Without one they are bytes."""

import typing
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # Python 3.13 has defaults of type variables in `typing`. The module is not needed at run time.
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    K = typing.TypeVar("K")
    V = typing.TypeVar("V")

_Read = typing.TypeVar("_Read", covariant=True)


class Deserializer(Protocol[_Read]):
    """A deserializer that also wants to know the topic, and that is called for null keys and values too."""

    def deserialize(self, topic: str, data: bytes | None, /) -> _Read:
        """The object that these bytes stand for."""
