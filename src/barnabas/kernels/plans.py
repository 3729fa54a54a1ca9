"""Plans: which fields a struct has on the wire in one version, and in which order.

codec.py reads messages by a plan, codec_write.py writes them by the same plan. The types of fields are listed
here and nowhere else."""

import cython

# Kinds of types; those of one kind are read and written by the same code.
INT = 0
UNSIGNED = 1
STRING = 2
STRUCT = 3
ARRAY = 4
BOOL = 5
UUID = 6
BYTES = 7
RECORDS = 8
FLOAT = 9

# Type name: kind, and the size in bytes. Strings, bytes, records and arrays have the size of their length
# field in versions that are not flexible; flexible versions have a varint instead.
TYPES = {
    "int8": (INT, 1),
    "int16": (INT, 2),
    "int32": (INT, 4),
    "int64": (INT, 8),
    "uint16": (UNSIGNED, 2),
    "string": (STRING, 2),
    "struct": (STRUCT, 1),
    "array": (ARRAY, 4),
    "bool": (BOOL, 1),
    "uuid": (UUID, 16),
    "bytes": (BYTES, 4),
    "records": (RECORDS, 4),
    "float64": (FLOAT, 8),
}
# Kafka has this limit in all versions, although a flexible one has room for longer lengths.
STRING_BYTES_MAX = 0x7FFF
TYPES_WITH_LENGTH = frozenset(["string", "array", "bytes", "records"])


@cython.cclass
class StructPlan:
    """One struct in one version: its class, its fields in wire order, its tagged fields by tag.

    `absent` are the names and defaults of fields that this version does not have or may leave out. A default
    that is a tuple means an empty list."""

    def __init__(self, message_class: object, flexible: bool, fields: list, absent: tuple = ()) -> None:
        self.message_class = message_class
        self.new = message_class.__new__
        self.flexible = flexible
        self.absent = absent
        self.fields = tuple([field for field in fields if field.tag < 0])
        self.tagged = tuple(sorted([field for field in fields if field.tag >= 0], key=_tag_of))
        self.tags = {field.tag: field for field in self.tagged}
        self.has_long_fields = any([_may_be_long(field) for field in self.fields])
        # An empty struct of an old version takes no bytes; counting 1 keeps the length of an array bounded.
        self.size_min = max(1, sum([field.size_min for field in self.fields]) + flexible)


@cython.cclass
class FieldPlan:
    """One field in one version; `element` describes the elements of an array.

    `type_name` is a key of TYPES, "array" excepted: that of an array is the type of its elements."""

    def __init__(
        self,
        name: str,
        type_name: str,
        flexible: bool,
        struct: StructPlan | None = None,
        is_array: bool = False,
        is_nullable: bool = False,
        tag: cython.longlong = -1,
        default: object = None,
    ) -> None:
        self.name = name
        self.compact = flexible
        self.struct = struct
        self.nullable = is_nullable
        self.tag = tag
        self.default = default
        self.element = None
        if is_array:
            self.element = FieldPlan(name, type_name, flexible, struct)
            type_name = "array"
        self.kind, self.width = TYPES[type_name]
        if self.kind == STRUCT:
            self.size_min = 1 if is_nullable else struct.size_min
        elif flexible and type_name in TYPES_WITH_LENGTH:
            self.size_min = 1
        else:
            self.size_min = self.width


def _tag_of(field: FieldPlan) -> int:
    return field.tag


@cython.cfunc
def _may_be_long(field: FieldPlan) -> cython.bint:
    """Whether reading one value of the field may take long: a string does not, nor does an array of numbers,
    but bytes do, and arrays of structs and strings."""
    element: FieldPlan = field.element
    return field.kind == BYTES or (element is not None and element.kind in (STRUCT, STRING))
