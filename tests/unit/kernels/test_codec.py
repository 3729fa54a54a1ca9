"""The codec kernels, compiled and interpreted: both must give the same results."""

import struct
from copy import deepcopy
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

import barnabas.kernels.codec
import barnabas.kernels.codec_write
import barnabas.kernels.plans
from barnabas.kernels.codec import WireError

PLANS = {"compiled": barnabas.kernels.plans, "source": interpreted(barnabas.kernels.plans)}
READERS = {"compiled": barnabas.kernels.codec, "source": interpreted(barnabas.kernels.codec)}
WRITERS = {"compiled": barnabas.kernels.codec_write, "source": interpreted(barnabas.kernels.codec_write)}


class Thing:
    """A struct of two fields, and the parts of the struct below."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        return f"Thing({self.__dict__})"


SCALARS = ("int8", "int16", "int32", "int64", "uint16", "float64", "bool", "string", "bytes", "uuid")


Row = dict[str, Any]


def row(name: str, kind: str, part: Any = None, **extra: Any) -> Row:
    """The arguments of a FieldPlan."""
    return {"name": name, "type_name": kind, "struct": part} | {
        {"array": "is_array", "nullable": "is_nullable"}.get(key, key): value for key, value in extra.items()
    }


def rows(part: Any) -> list[Row]:
    """One field of every kind."""
    return [
        *(row(kind, kind) for kind in SCALARS),
        row("nullable_string", "string", nullable=True),
        row("records", "records", nullable=True),
        row("ints", "int32", array=True),
        row("parts", "struct", part, array=True, nullable=True),
        row("maybe", "struct", part, nullable=True),
        row("tagged_int", "int64", tag=3, default=-1),
        row("tagged_part", "struct", part, tag=5, default=Thing(key="", count=0)),
        row("tagged_maybe", "struct", part, tag=6, nullable=True),
    ]


PART_ROWS = [row("key", "string"), row("count", "int16")]


def plan(form: str, flexible: bool, plan_rows: list[Row], absent: tuple[tuple[str, Any], ...] = ()) -> Any:
    fields = [PLANS[form].FieldPlan(flexible=flexible, **row) for row in plan_rows]
    return PLANS[form].StructPlan(Thing, flexible, fields, absent)


# As of a message class: fields that the version does not have, and tagged ones.
ABSENT = (
    ("absent", ()),
    ("absent_number", -1),
    ("tagged_int", -1),
    ("tagged_part", Thing(key="", count=0)),
    ("tagged_maybe", None),
)
STRUCT_PLANS = {
    (form, flag): plan(form, flag, rows(plan(form, flag, PART_ROWS)), ABSENT)
    for form in PLANS
    for flag in (True, False)
}


def written(name: str, flexible: bool, message: Thing) -> bytes:
    writer = WRITERS[name].Writer(b"")
    writer.struct(STRUCT_PLANS[name, flexible], message)
    return b"".join(writer.finish())


def outcome(name: str, plan: Any, data: bytes) -> str:
    """The result of reading as text, to compare both forms: the message or the error."""
    try:
        message = READERS[name].Reader(data).struct(plan)
    except READERS[name].WireError as error:
        return str(error)
    if isinstance(getattr(message, "records", None), memoryview):
        message.records = bytes(message.records)
    return repr(message)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


PARTS = st.builds(Thing, key=st.text(), count=integers(16))
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "int8": integers(8),
    "int16": integers(16),
    "int32": integers(32),
    "int64": integers(64),
    "uint16": st.integers(0, 65535),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": st.text(),
    "bytes": st.binary(),
    "uuid": st.binary(min_size=16, max_size=16),
    "nullable_string": st.none() | st.text(),
    "records": st.none() | st.binary(max_size=5000),
    "ints": st.lists(integers(32)),
    "parts": st.none() | st.lists(PARTS),
    "maybe": st.none() | PARTS,
    "tagged_int": integers(64),
    "tagged_part": PARTS,
    "tagged_maybe": st.none() | PARTS,
}
MESSAGES = st.builds(Thing, **FIELDS)


def test_the_kernels_under_test_are_compiled() -> None:
    for module in (barnabas.kernels.codec, barnabas.kernels.codec_write):
        assert str(module.__file__).endswith(".so"), (
            "build the kernels first: the parity tests compare nothing"
        )


@given(message=MESSAGES, flexible=st.booleans())
def test_what_is_written_is_read_back_and_both_kernels_agree(message: Thing, flexible: bool) -> None:
    if not flexible:
        message.__dict__.update(tagged_int=-1, tagged_part=Thing(key="", count=0), tagged_maybe=None)
    data = written("compiled", flexible, message)
    assert data == written("source", flexible, message)
    for name, module in READERS.items():
        back = module.Reader(data).struct(STRUCT_PLANS[name, flexible])
        assert back == Thing(**message.__dict__, absent=[], absent_number=-1)
        # Each message has a list of its own.
        assert back.absent is not module.Reader(data).struct(STRUCT_PLANS[name, flexible]).absent


@given(data=st.binary(max_size=200), flexible=st.booleans())
def test_both_kernels_read_any_bytes_alike(data: bytes, flexible: bool) -> None:
    results = [outcome(name, STRUCT_PLANS[name, flexible], data) for name in READERS]
    assert results[0] == results[1]


@settings(max_examples=300)
@given(message=MESSAGES, flexible=st.booleans(), chance=st.randoms(use_true_random=False))
def test_both_kernels_read_damaged_messages_alike(message: Thing, flexible: bool, chance: Any) -> None:
    data = bytearray(written("compiled", flexible, message))
    for _ in range(3):
        data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    results = [outcome(name, STRUCT_PLANS[name, flexible], bytes(data)) for name in READERS]
    assert results[0] == results[1]


@given(
    value=st.integers() | st.none() | st.text(),
    kind=st.sampled_from(("int8", "int16", "int32", "int64", "uint16")),
)
def test_both_writers_refuse_the_same_numbers(value: Any, kind: str) -> None:
    results = []
    for form, module in WRITERS.items():
        writer = module.Writer(b"")
        try:
            writer.struct(plan(form, True, [row("n", kind)]), Thing(n=value))
            results.append(str(writer.finish()))
        except module.UnwritableError as error:
            results.append(str(error))
    assert results[0] == results[1]
    format_of = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "uint16": ">H"}[kind]
    try:
        assert results[0] == str([bytearray(struct.pack(format_of, value) + b"\0")])
    except struct.error:
        assert "cannot be" in results[0]


# --- one test for each refusal
# -------------------------------------------------------------------------------


@pytest.fixture(params=READERS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return READERS[request.param]


def read(kernel: ModuleType, data: bytes, *plan_rows: Row, flexible: bool = True, **options: Any) -> Any:
    form = "compiled" if kernel is barnabas.kernels.codec else "source"
    rows_of_form = [
        one if one["struct"] is None else one | {"struct": one["struct"][form]} for one in plan_rows
    ]
    return kernel.Reader(data, **options).struct(plan(form, flexible, rows_of_form))


PARTS_BY_FORM = {form: plan(form, True, PART_ROWS) for form in PLANS}
STRING = row("text", "string")
INTS = row("ints", "int8", array=True)
TAGGED = row("number", "int16", tag=2, default=0)
REFUSED = {
    "varint of six bytes": ("ff ff ff ff ff 01", STRING),
    "varint over 32 bits": ("ff ff ff ff 1f", STRING),
    "varint with an unnecessary zero": ("83 00 61 62 00", STRING),
    "varint cut short": ("ff", STRING),
    "string longer than the frame": ("05 61 62 00", STRING),
    "null in a field that is not nullable": ("00 00", STRING),
    "not UTF-8": ("03 ff fe 00", STRING),
    "surrogate in UTF-8": ("04 ed a0 80 00", STRING),
    "more elements than bytes": ("ff ff ff ff 0f 01 02 03 00", INTS),
    "uuids beyond the end": ("03" + "00" * 16 + "00", row("ids", "uuid", array=True)),
    "tags out of order": ("02 05 00 03 00", row("n", "int8", tag=9)),
    "a tag twice": ("02 02 02 00 07 02 02 00 07", TAGGED),
    "a tag longer than the frame": ("01 02 09 00 07", TAGGED),
    "an unknown tag longer than the frame": ("01 07 09 00 07", TAGGED),
    "a tag that is too short": ("01 02 01 07", TAGGED),
    "a tag with bytes left over": ("01 02 03 00 07 00", TAGGED),
    "more tags than bytes": ("05 02 00", TAGGED),
    "more than a thousand tags": (
        "e9 07" + "".join(f"{n % 128 | 128:02x}{n // 128:02x}00" for n in range(128, 1200)),
        TAGGED,
    ),
    "a struct that is marked neither null nor present": (
        "02 00",
        row("maybe", "struct", PARTS_BY_FORM, nullable=True),
    ),
    "a tagged struct that is null as if it had no tag": (
        "01 02 01 ff",
        row("maybe", "struct", PARTS_BY_FORM, nullable=True, tag=2),
    ),
    "no bytes": ("", STRING),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, kernel: ModuleType) -> None:
    text, plan_row = REFUSED[name]
    with pytest.raises(kernel.WireError):
        read(kernel, bytes.fromhex(text), plan_row)


@pytest.mark.parametrize("text", ("ff fe", "80 00", "7f ff 61"))
def test_refused_in_old_versions(text: str, kernel: ModuleType) -> None:
    for nullable in (True, False):
        with pytest.raises(kernel.WireError):
            read(kernel, bytes.fromhex(text), row("text", "string", nullable=nullable), flexible=False)


def test_minus_one_is_null_only_if_the_field_is_nullable(kernel: ModuleType) -> None:
    assert read(kernel, b"\xff\xff", row("text", "string", nullable=True), flexible=False).text is None
    with pytest.raises(kernel.WireError):
        read(kernel, b"\xff\xff", STRING, flexible=False)


def test_unknown_tags_are_skipped_and_known_ones_between_them_read(kernel: ModuleType) -> None:
    data = bytes.fromhex("03 00 03 aabbcc  02 02 0007  ff01 01 dd")
    assert read(kernel, data, TAGGED).number == 7


def test_bytes_after_the_message_are_ignored(kernel: ModuleType) -> None:
    assert read(kernel, bytes.fromhex("02 61 00 deadbeef"), STRING).text == "a"


def test_a_message_has_a_limit_of_elements_over_all_its_arrays(kernel: ModuleType) -> None:
    arrays = (row("a", "int8", array=True), row("b", "int8", array=True))
    most = (500_000).to_bytes(4, "big") + bytes(500_000)
    assert len(read(kernel, most + bytes(4), *arrays, flexible=False).a) == 500_000
    with pytest.raises(kernel.WireError, match="more than 500000 array elements"):
        read(kernel, most + (1).to_bytes(4, "big") + bytes(1), *arrays, flexible=False)


def test_the_caller_chooses_the_limit_of_elements(kernel: ModuleType) -> None:
    ints = bytes.fromhex("05 01 02 03 04 00")
    assert read(kernel, ints, INTS, elements_max=4).ints == [1, 2, 3, 4]
    with pytest.raises(kernel.TooManyElements, match="more than 3 array elements") as refused:
        read(kernel, ints, INTS, elements_max=3)
    assert refused.value.elements == 4
    assert isinstance(refused.value, kernel.WireError)


def test_a_reader_counts_the_elements_it_has_read(kernel: ModuleType) -> None:
    form = "compiled" if kernel is barnabas.kernels.codec else "source"
    reader = kernel.Reader(bytes.fromhex("05 01 02 03 04 00"))
    reader.struct(plan(form, True, [INTS]))
    assert reader.elements_read == 4


@pytest.mark.parametrize("flexible", [True, False])
def test_a_string_has_at_most_32767_bytes(kernel: ModuleType, flexible: bool) -> None:
    longest = b"x" * 32767
    head = bytes.fromhex("808002") if flexible else bytes.fromhex("7fff")
    assert read(kernel, head + longest + b"\0", STRING, flexible=flexible).text == longest.decode()


def test_a_longer_string_is_refused_in_flexible_versions_too(kernel: ModuleType) -> None:
    with pytest.raises(kernel.WireError, match="text has 32768 bytes, a string has at most 32767"):
        read(kernel, bytes.fromhex("818002") + b"x" * 32768 + b"\0", STRING)


def test_equal_strings_of_a_long_frame_are_one_object(kernel: ModuleType) -> None:
    names = row("names", "string", array=True)
    count = 40_000
    frame = count.to_bytes(4, "big") + b"\0\2ab" * count
    strings = read(kernel, frame, names, flexible=False).names
    assert strings == ["ab"] * count
    assert len({id(text) for text in strings}) == 1


@given(message=MESSAGES, flexible=st.booleans(), elements=st.integers(1, 3))
def test_portions_give_the_same_message_and_the_same_bytes(
    message: Thing, flexible: bool, elements: int
) -> None:
    for form in PLANS:
        expected = written(form, flexible, message)
        writer = WRITERS[form].Writer(b"")
        copied = deepcopy(message)
        pauses = len(list(writer.struct_in_portions(STRUCT_PLANS[form, flexible], copied, elements)))
        assert b"".join(writer.finish()) == expected
        assert pauses == len(message.parts or ()) // elements
        reader = READERS[form].Reader(expected)
        reading = reader.struct_in_portions(STRUCT_PLANS[form, flexible], elements)
        assert drained(reading) == READERS[form].Reader(expected).struct(STRUCT_PLANS[form, flexible])


def drained(reading: Any) -> Any:
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("form", PLANS)
def test_arrays_inside_arrays_are_divided_into_portions_too(form: str) -> None:
    inner = plan(form, True, PART_ROWS)
    middle = plan(form, True, [row("parts", "struct", inner, array=True)])
    outer = plan(form, True, [row("groups", "struct", middle, array=True)])
    message = Thing(groups=[Thing(parts=[Thing(key="k", count=n) for n in range(50)])])
    writer = WRITERS[form].Writer(b"")
    emptied = deepcopy(message)
    assert len(list(writer.struct_in_portions(outer, emptied, 10))) == 5
    assert emptied == Thing(groups=[None])
    data = b"".join(writer.finish())
    reading = READERS[form].Reader(data).struct_in_portions(outer, 10)
    for _ in range(5):
        assert next(reading) is None
    assert drained(reading) == message


LONG_TEXTS = [f"{number:04d}".ljust(32_000, "x") for number in range(400)]
LONG_ROWS = {
    "strings": (row("values", "string", array=True), LONG_TEXTS),
    "structs": (PART_ROWS, [Thing(key=text, count=1) for text in LONG_TEXTS]),
    "structs with arrays": (
        [*PART_ROWS, row("names", "string", array=True)],
        [Thing(key=text, count=1, names=["a"]) for text in LONG_TEXTS],
    ),
}


@pytest.mark.parametrize("form", PLANS)
@pytest.mark.parametrize("kind", LONG_ROWS)
def test_a_portion_with_long_strings_has_fewer_elements(form: str, kind: str) -> None:
    """13 MB, and a portion has about half a megabyte."""
    element, values = LONG_ROWS[kind]
    if isinstance(element, list):
        element = row("values", "struct", plan(form, True, element), array=True)
    whole = plan(form, True, [element])
    writer = WRITERS[form].Writer(b"")
    assert len(list(writer.struct_in_portions(whole, Thing(values=list(values)), 2000))) >= 20
    data = b"".join(writer.finish())
    reading = READERS[form].Reader(data).struct_in_portions(whole, 2000)
    for _ in range(20):
        assert next(reading) is None
    assert drained(reading) == Thing(values=values)


def test_strings_stay_in_the_list_that_is_written() -> None:
    for form in PLANS:
        names = ["a", "b"]
        writer = WRITERS[form].Writer(b"")
        whole = plan(form, True, [row("names", "string", array=True)])
        assert len(list(writer.struct_in_portions(whole, Thing(names=names), 1))) == 2
        assert names == ["a", "b"]


@pytest.mark.parametrize("flexible", [True, False])
@pytest.mark.parametrize("form", PLANS)
def test_long_bytes_are_read_in_portions(form: str, flexible: bool) -> None:
    value = bytes(range(256)) * 8192 + b"end"
    part = plan(form, flexible, [row("data", "bytes", nullable=True), row("count", "int16")])
    whole = plan(form, flexible, [row("data", "bytes"), row("parts", "struct", part, array=True)])
    message = Thing(data=value, parts=[Thing(data=value, count=1), Thing(data=None, count=2)])
    writer = WRITERS[form].Writer(b"")
    writer.struct(whole, message)
    data = b"".join(writer.finish())
    reading = READERS[form].Reader(data).struct_in_portions(whole, 2000)
    for _ in range(8):
        assert next(reading) is None
    assert drained(reading) == message
    reading = READERS[form].Reader(data[: len(value) // 2]).struct_in_portions(whole, 2000)
    with pytest.raises(READERS[form].WireError, match="are left"):
        next(reading)


def test_long_bytes_are_written_without_a_copy() -> None:
    value = bytes(100_000)
    for form in PLANS:
        for flexible in (True, False):
            writer = WRITERS[form].Writer(b"")
            writer.struct(plan(form, flexible, [row("data", "bytes")]), Thing(data=value))
            chunks = writer.finish()
            assert chunks[1] is value
            assert b"".join(chunks) == bytes(chunks[0]) + value + (b"\0" if flexible else b"")


def test_records_are_a_writable_view_of_the_frame(kernel: ModuleType) -> None:
    frame = bytearray.fromhex("04 616263 00")
    records = read(kernel, memoryview(frame), row("records", "records", nullable=True)).records  # type: ignore[arg-type]
    records[0] = 0x7A
    assert frame == bytearray.fromhex("04 7a6263 00")


def test_nothing_is_read_beyond_the_end_of_a_view(kernel: ModuleType) -> None:
    view = memoryview(bytearray.fromhex("ffff 05 61 62 63 64"))[2:5]
    with pytest.raises(kernel.WireError):
        read(kernel, view, STRING)  # type: ignore[arg-type]


def test_the_error_is_a_value_error() -> None:
    assert issubclass(WireError, ValueError)
