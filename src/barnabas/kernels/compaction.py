# cython: boundscheck=False, wraparound=False, infer_types=True
"""The map of a compaction, from key to newest offset, and its loops over the records (magic 2) of one batch.

Keys are known by 128 bits of SipHash-2-4 under a secret key, so nobody can prepare two keys that collide. The
map is one flat buffer of 24-byte entries (hash, offset + 1; 0 is a free one) searched linearly. Every read is
checked against the buffer's end: malformed bytes give MALFORMED, never a wild read."""

import cython

ALL_FIT = -1
MALFORMED = -2


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _rotated(value: cython.ulonglong, bits: cython.int) -> cython.ulonglong:
    mask: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    return ((value << bits) | (value >> (64 - bits))) & mask


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _rounds(
    state: tuple[cython.ulonglong, cython.ulonglong, cython.ulonglong, cython.ulonglong], count: cython.int
) -> tuple[cython.ulonglong, cython.ulonglong, cython.ulonglong, cython.ulonglong]:
    mask: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    _: cython.int
    v0: cython.ulonglong = state[0]
    v1: cython.ulonglong = state[1]
    v2: cython.ulonglong = state[2]
    v3: cython.ulonglong = state[3]
    for _ in range(count):
        v0 = (v0 + v1) & mask
        v1 = _rotated(v1, 13) ^ v0
        v0 = _rotated(v0, 32)
        v2 = (v2 + v3) & mask
        v3 = _rotated(v3, 16) ^ v2
        v0 = (v0 + v3) & mask
        v3 = _rotated(v3, 21) ^ v0
        v2 = (v2 + v1) & mask
        v1 = _rotated(v1, 17) ^ v2
        v2 = _rotated(v2, 32)
    return v0, v1, v2, v3


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _word(
    data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.ulonglong:
    """The little-endian number in up to 8 bytes; the caller has checked that they are there."""
    index: cython.Py_ssize_t
    byte: cython.ulonglong
    value: cython.ulonglong = 0
    for index in range(size):
        byte = data[position + index]
        value |= byte << (8 * index)
    return value


@cython.cfunc
@cython.exceptval(check=False)
def _hash(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    secret: tuple[cython.ulonglong, cython.ulonglong],
) -> tuple[cython.ulonglong, cython.ulonglong]:
    """SipHash-2-4 with 128 bits of output."""
    v0: cython.ulonglong = 0x736F6D6570736575
    v1: cython.ulonglong = 0x646F72616E646F83  # the usual constant with 0xee folded in: the 128-bit variant
    v2: cython.ulonglong = 0x6C7967656E657261
    v3: cython.ulonglong = 0x7465646279746573
    low: cython.ulonglong
    word: cython.ulonglong
    end: cython.Py_ssize_t = position + size - size % 8
    v0 ^= secret[0]
    v1 ^= secret[1]
    v2 ^= secret[0]
    v3 ^= secret[1]
    while position < end:
        word = _word(data, position, 8)
        v0, v1, v2, v3 = _rounds((v0, v1, v2, v3 ^ word), 2)
        v0 ^= word
        position += 8
    word = cython.cast(cython.ulonglong, size & 0xFF) << 56 | _word(data, position, size % 8)
    v0, v1, v2, v3 = _rounds((v0, v1, v2, v3 ^ word), 2)
    v0, v1, v2, v3 = _rounds((v0 ^ word, v1, v2 ^ 0xEE, v3), 4)
    low = v0 ^ v1 ^ v2 ^ v3
    v0, v1, v2, v3 = _rounds((v0, v1 ^ 0xDD, v2, v3), 4)
    return low, v0 ^ v1 ^ v2 ^ v3


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    bits: cython.int,
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A zigzag varint of at most `bits` bits: (value, position after it), the position -1 where malformed."""
    byte: cython.ulonglong
    raw: cython.ulonglong = 0
    shift: cython.int = 0
    while position < end and shift < bits:
        byte = data[position]
        position += 1
        if shift + 7 > bits and (byte >> (bits - shift)) != 0:
            break
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw & 1:
                return -cython.cast(cython.longlong, raw >> 1) - 1, position
            return cython.cast(cython.longlong, raw >> 1), position
        shift += 7
    return 0, -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _record(
    data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[
    cython.Py_ssize_t,
    cython.Py_ssize_t,
    cython.longlong,
    cython.longlong,
    cython.Py_ssize_t,
    cython.longlong,
    cython.longlong,
]:
    """(end, where its offset delta begins, timestamp delta, offset delta, where its key begins, length of the
    key, length of the value) of the record at `position`; the end is -1 where it is malformed."""
    length: cython.longlong
    length, position = _varint(data, position, end, 32)
    if position < 0 or length < 6 or length > end - position:
        return -1, 0, 0, 0, 0, 0, 0
    end = position + cython.cast(cython.Py_ssize_t, length)
    timestamp, rest = _varint(data, position + 1, end, 64)
    if rest < 0:
        return -1, 0, 0, 0, 0, 0, 0
    offset, position = _varint(data, rest, end, 32)
    if position < 0 or offset < 0:
        return -1, 0, 0, 0, 0, 0, 0
    key_length, key = _varint(data, position, end, 32)
    if key < 0 or key_length < -1 or key_length > end - key:
        return -1, 0, 0, 0, 0, 0, 0
    position = key + cython.cast(cython.Py_ssize_t, key_length) if key_length > 0 else key
    length, position = _varint(data, position, end, 32)
    if position < 0 or length < -1 or length > end - position:
        return -1, 0, 0, 0, 0, 0, 0
    return end, rest, timestamp, offset, key, key_length, length


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_varint(
    out: cython.uchar[::1], position: cython.Py_ssize_t, value: cython.longlong
) -> cython.Py_ssize_t:
    raw: cython.ulonglong
    if value < 0:
        raw = cython.cast(cython.ulonglong, -1 - value) * 2 + 1
    else:
        raw = cython.cast(cython.ulonglong, value) * 2
    while raw >= 0x80:
        out[position] = cython.cast(cython.uchar, (raw & 0x7F) | 0x80)
        raw >>= 7
        position += 1
    out[position] = cython.cast(cython.uchar, raw)
    return position + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint_size(value: cython.longlong) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = 1
    if value < 0:
        value = -1 - value
    while value >= 0x40:
        value >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _copy(
    data: cython.const[cython.uchar][::1],
    bounds: tuple[cython.Py_ssize_t, cython.Py_ssize_t],
    out: cython.uchar[::1],
    position: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy the bytes between the bounds; the position after them. The caller has checked the room."""
    index: cython.Py_ssize_t
    for index in range(bounds[1] - bounds[0]):
        out[position + index] = data[bounds[0] + index]
    return position + bounds[1] - bounds[0]


@cython.cclass
class OffsetMap:
    """The newest offset of each key. `memory` is zeroed, of 8-byte words, 3 for each entry."""

    _table: cython.ulonglong[::1]
    _secret: tuple[cython.ulonglong, cython.ulonglong]
    _used: cython.Py_ssize_t
    _limit: cython.Py_ssize_t

    def __init__(self, memory: cython.ulonglong[::1], secret: tuple, limit: cython.Py_ssize_t) -> None:
        if memory.shape[0] % 3 or not 0 < limit < memory.shape[0] // 3:
            raise ValueError("the memory must hold more entries than are used")
        self._table = memory
        self._secret = (secret[0], secret[1])
        self._used = 0
        self._limit = limit

    def used(self) -> int:
        return self._used

    def get(self, key: cython.const[cython.uchar][::1]) -> int:
        """The newest offset of the key, -1 where it is not known."""
        return self._newest(key, 0, key.shape[0])

    def learn(
        self,
        data: cython.const[cython.uchar][::1],
        count: cython.Py_ssize_t,
        base_offset: cython.longlong,
        start_offset: cython.longlong,
    ) -> int:
        """Enter the keys of the records that fill `data`, from `start_offset` on.

        ALL_FIT, MALFORMED, or the offset of the first record that found the map full."""
        _: cython.Py_ssize_t
        position: cython.Py_ssize_t = 0
        for _ in range(count):
            position, _rest, _timestamp, offset, key, key_length, _value_length = _record(
                data, position, data.shape[0]
            )
            if position < 0:
                return MALFORMED
            offset += base_offset
            if key_length >= 0 and offset >= start_offset:
                size = cython.cast(cython.Py_ssize_t, key_length)
                if not self._put(data, key, size, offset):
                    return offset
        return ALL_FIT if position == data.shape[0] else MALFORMED

    def filter(
        self,
        data: cython.const[cython.uchar][::1],
        count: cython.Py_ssize_t,
        base_offset: cython.longlong,
        rules: tuple,
        out: cython.uchar[::1],
    ) -> tuple:
        """Copy the records that stay to `out`, which has room for 10 bytes more for each if they may grow.

        `rules`: the newest offset that the map knows, whether records without value stay, and what is added
        to each timestamp delta. Gives (how many stay, bytes written, how many of them have no value, the
        highest timestamp delta); the first is MALFORMED where the bytes are, or a delta leaves 64 bits."""
        _: cython.Py_ssize_t
        end: cython.Py_ssize_t = data.shape[0]
        position: cython.Py_ssize_t = 0
        start: cython.Py_ssize_t
        written: cython.Py_ssize_t = 0
        kept: cython.Py_ssize_t = 0
        tombstones: cython.Py_ssize_t = 0
        highest: cython.longlong = 0
        long_max: cython.longlong = 0x7FFFFFFFFFFFFFFF
        latest_offset: cython.longlong = rules[0]
        keep_tombstones: cython.bint = rules[1]
        shift: cython.longlong = rules[2]
        if count < 0 or count > end or out.shape[0] < end + (10 * count if shift else 0):
            return MALFORMED, 0, 0, 0
        for _ in range(count):
            start = position
            position, rest, timestamp, offset, key, key_length, value_length = _record(data, position, end)
            if position < 0 or _overflows(timestamp, shift, long_max):
                return MALFORMED, 0, 0, 0
            offset += base_offset
            if offset <= latest_offset and (
                (value_length < 0 and not keep_tombstones) or self._is_old(data, key, key_length, offset)
            ):
                continue
            timestamp += shift
            if shift == 0:
                written = _copy(data, (start, position), out, written)
            else:
                written = _put_varint(out, written, 1 + _varint_size(timestamp) + position - rest)
                out[written] = 0
                written = _put_varint(out, written + 1, timestamp)
                written = _copy(data, (rest, position), out, written)
            if kept == 0 or timestamp > highest:
                highest = timestamp
            kept += 1
            tombstones += value_length < 0
        if position != end:
            return MALFORMED, 0, 0, 0
        return kept, written, tombstones, highest

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _is_old(
        self,
        data: cython.const[cython.uchar][::1],
        key: cython.Py_ssize_t,
        key_length: cython.longlong,
        offset: cython.longlong,
    ) -> cython.bint:
        """Is there a newer record of the key? One without a key has no place in a compacted log."""
        return key_length < 0 or offset < self._newest(data, key, cython.cast(cython.Py_ssize_t, key_length))

    @cython.cfunc
    @cython.exceptval(check=False)
    def _put(
        self,
        data: cython.const[cython.uchar][::1],
        key: cython.Py_ssize_t,
        size: cython.Py_ssize_t,
        offset: cython.longlong,
    ) -> cython.bint:
        name: tuple[cython.ulonglong, cython.ulonglong] = _hash(data, key, size, self._secret)
        place: cython.Py_ssize_t = self._slot(name)
        if self._table[place + 2] == 0:
            if self._used >= self._limit:
                return False
            self._used += 1
            self._table[place] = name[0]
            self._table[place + 1] = name[1]
        self._table[place + 2] = cython.cast(cython.ulonglong, offset) + 1
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def _newest(
        self, data: cython.const[cython.uchar][::1], key: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.longlong:
        name: tuple[cython.ulonglong, cython.ulonglong] = _hash(data, key, size, self._secret)
        return cython.cast(cython.longlong, self._table[self._slot(name) + 2]) - 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _slot(self, name: tuple[cython.ulonglong, cython.ulonglong]) -> cython.Py_ssize_t:
        """Where the entry of the hash begins, or the free one that it may take; the table is never full."""
        end: cython.Py_ssize_t = self._table.shape[0]
        slots: cython.ulonglong = end // 3
        # The upper half of the hash, scaled to the number of slots: cheaper than a division.
        place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, ((name[0] >> 32) * slots) >> 32) * 3
        while self._table[place + 2] != 0 and (
            self._table[place] != name[0] or self._table[place + 1] != name[1]
        ):
            place += 3
            if place == end:
                place = 0
        return place


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _overflows(value: cython.longlong, shift: cython.longlong, long_max: cython.longlong) -> cython.bint:
    if shift > 0:
        return value > long_max - shift
    return value < -1 - long_max - shift
