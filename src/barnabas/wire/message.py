"""The base of all generated messages: objects with a slot for each field, and the schema rows in the class.

They are not dataclasses, because defining one costs 0.3 ms and a broker imports about 250 messages. Type
checkers treat them as dataclasses (`dataclass_transform`): fields are keyword arguments, and all have a
default. Slots, because a request may have 50,000 elements, and a dict for each would take 200 bytes more."""

from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar, cast, dataclass_transform

from barnabas.kernels.codec import MessageBase

# A version that no API reaches: the start of an empty range of versions.
NEVER = 32767
# The default of arrays. Messages do not have it: each gets its own list.
EMPTY: Any = ()


class Sized(Protocol):
    """Bytes that are elsewhere, such as a range of a file: the codec only needs their number."""

    @property
    def size(self) -> int: ...


Records: TypeAlias = bytes | bytearray | memoryview | Sized


class Field(NamedTuple):
    """One row of a schema: the type of a field, and the versions that have it. Fields are in wire order.

    The default is the class attribute of the same name; a tagged field equal to it is not written."""

    name: str
    type: "str | type[Message]"
    first: int
    last: int
    array: bool = False
    nullable_from: int = NEVER
    tag: int = -1


class _MessageType(type):
    """Moves the defaults of a class into DEFAULTS: a slot cannot have the name of a class attribute."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> "_MessageType":
        fields: tuple[Field, ...] = namespace.get("FIELDS", ())
        if fields:
            namespace["DEFAULTS"] = {field.name: namespace.pop(field.name) for field in fields}
        namespace["__slots__"] = tuple([field.name for field in fields])
        return super().__new__(cls, name, bases, namespace)


@dataclass_transform(kw_only_default=True)
class Message(MessageBase, metaclass=_MessageType):
    FIELDS: ClassVar[tuple[Field, ...]] = ()
    DEFAULTS: ClassVar[dict[str, Any]] = {}

    def __eq__(self, other: object) -> bool:
        if not (isinstance(other, type(self)) or isinstance(self, type(other))):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.DEFAULTS)

    def __repr__(self) -> str:
        """Without fields that have their default. Bytes are shown as their number: they may be a password."""
        shown = []
        for field in self.FIELDS:
            value, default = getattr(self, field.name), self.DEFAULTS[field.name]
            if value != ([] if default is EMPTY else default):
                shown.append(f"{field.name}={_shown(field, value)}")
        return f"{type(self).__name__}({', '.join(shown)})"


_M = TypeVar("_M", bound=Message)


def values_of(message: Message) -> dict[str, Any]:
    """The fields of a message, as arguments for a new one."""
    return {name: getattr(message, name) for name in message.DEFAULTS}


def _shown(field: Field, value: Any) -> str:
    if field.type in ("bytes", "records") and isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if field.type == "uuid" and isinstance(value, bytes):
        return value.hex()
    return repr(value)


def shared_default(kind: type[_M]) -> _M:
    """The default of a struct field. All messages share one instance, so it cannot be changed."""
    frozen = _MessageType(kind.__name__, (kind,), {})
    default = cast(_M, frozen())
    # Only now, because the constructor had to set the fields.
    type.__setattr__(frozen, "__setattr__", _refuse_change)
    return default


def _refuse_change(self: Message, name: str, value: object) -> None:
    raise AttributeError(
        f"this {type(self).__name__} is a shared default and cannot be changed; assign a new one"
    )
