"""The kernel of the commonest answer to a Fetch: equal to what the codec writes by plan."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.test_batches import interpreted

from barnabas.kernels import fetch_one as compiled
from barnabas.wire.codec import encode_response
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

plain = interpreted(compiled)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
NAMES = st.text("abcXYZ._-", min_size=1, max_size=249)
IDS = st.binary(min_size=16, max_size=16)


def test_the_kernel_under_test_is_the_compiled_one():
    assert str(compiled.__file__).endswith(".so")
    assert str(plain.__file__).endswith(".py")


@given(
    st.integers(4, 18),
    st.tuples(INT32, INT32),
    st.tuples(NAMES, IDS, INT32),
    st.tuples(INT64, INT64, INT64),
    st.binary(min_size=1, max_size=300),
)
def test_writes_what_the_codec_writes(
    version: int,
    ids: tuple[int, int],
    place: tuple[str, bytes, int],
    offsets: tuple[int, int, int],
    records: bytes,
):
    name, topic_id, index = place
    data = PartitionData(
        partition_index=index,
        high_watermark=offsets[0],
        last_stable_offset=offsets[1],
        log_start_offset=offsets[2],
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=records,
    )
    topic = FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[data])
    chunks = encode_response(1, version, ids[0], FetchResponse(session_id=ids[1], responses=[topic]))
    expected = b"".join(bytes(chunk) for chunk in chunks)  # type: ignore[arg-type]
    key = name.encode() if version < 13 else topic_id
    head = compiled.write_head(version, ids, (key, index), offsets, len(records))
    assert head + records + (compiled.TAIL if version >= 12 else b"") == expected
