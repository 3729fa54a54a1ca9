# cython: boundscheck=False, wraparound=False, infer_types=True
"""The map of a compaction, from key to newest offset, and its loops over the records (magic 2) of one batch.

A key is represented by 128 bits of SipHash-2-4 under a secret, so nobody can prepare two keys that collide.
The map is one flat buffer of 24-byte entries (hash, offset + 1; 0 is a free entry) searched linearly. Records
are read by the shared kernel, which checks every length: malformed bytes give MALFORMED, never a read beyond
the buffer."""

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.shared import (
        Record,
        read_record,
        sum_overflows,
        varint_size,
        write_varint,
    )
    from cython.cimports.libc.string import memcpy
else:
    from barnabas.kernels.shared import Record, read_record, sum_overflows, varint_size, write_varint

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Output = cython.typedef(cython.pointer[cython.uchar])

ALL_FIT = -1
MALFORMED = -2

# 128 bits.
KeyHash = cython.struct(low=cython.ulonglong, high=cython.ulonglong)
SipState = cython.struct(v0=cython.ulonglong, v1=cython.ulonglong, v2=cython.ulonglong, v3=cython.ulonglong)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _rotated(value: cython.ulonglong, bits: cython.int) -> cython.ulonglong:
    mask: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    return ((value << bits) | (value >> (64 - bits))) & mask


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _sip_rounds(state: SipState, count: cython.int) -> SipState:
    mask: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    _: cython.int
    v0: cython.ulonglong = state.v0
    v1: cython.ulonglong = state.v1
    v2: cython.ulonglong = state.v2
    v3: cython.ulonglong = state.v3
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
    return SipState(v0=v0, v1=v1, v2=v2, v3=v3)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _word(data: Input, position: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.ulonglong:
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
def _sip_hash(data: Input, position: cython.Py_ssize_t, size: cython.Py_ssize_t, secret: KeyHash) -> KeyHash:
    """SipHash-2-4 with 128 bits of output."""
    low: cython.ulonglong
    word: cython.ulonglong
    end: cython.Py_ssize_t = position + size - size % 8
    state: SipState = SipState(v0=0x736F6D6570736575, v1=0, v2=0x6C7967656E657261, v3=0x7465646279746573)
    # The usual constant with 0xee folded in: the variant of 128 bits.
    state.v1 = 0x646F72616E646F83
    state.v0 ^= secret.low
    state.v1 ^= secret.high
    state.v2 ^= secret.low
    state.v3 ^= secret.high
    while position < end:
        word = _word(data, position, 8)
        state.v3 ^= word
        state = _sip_rounds(state, 2)
        state.v0 ^= word
        position += 8
    word = cython.cast(cython.ulonglong, size & 0xFF) << 56 | _word(data, position, size % 8)
    state.v3 ^= word
    state = _sip_rounds(state, 2)
    state.v0 ^= word
    state.v2 ^= 0xEE
    state = _sip_rounds(state, 4)
    low = state.v0 ^ state.v1 ^ state.v2 ^ state.v3
    state.v1 ^= 0xDD
    state = _sip_rounds(state, 4)
    return KeyHash(low=low, high=state.v0 ^ state.v1 ^ state.v2 ^ state.v3)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _copy(
    data: Input, start: cython.Py_ssize_t, end: cython.Py_ssize_t, out: Output, position: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Copy the bytes from `start` to `end`; returns the position after them. The caller has made room."""
    if cython.compiled:
        memcpy(out + position, data + start, end - start)
    else:
        out[position : position + end - start] = data[start:end]
    return position + end - start


@cython.cclass
class OffsetMap:
    """The newest offset of each key, for at most `limit` keys.

    `memory` is cleared and has three 8-byte words for each entry. `secret` has two 64-bit numbers."""

    _table: cython.ulonglong[::1]
    _secret: KeyHash
    _used: cython.Py_ssize_t
    _limit: cython.Py_ssize_t
    _record: Record

    def __init__(self, memory: cython.ulonglong[::1], secret: tuple, limit: cython.Py_ssize_t) -> None:
        if memory.shape[0] % 3 or not 0 < limit < memory.shape[0] // 3:
            raise ValueError("the memory must have room for more entries than the limit")
        self._table = memory
        low, high = secret
        self._secret = KeyHash(low=low, high=high)
        self._record = Record()
        self._used = 0
        self._limit = limit

    def used(self) -> int:
        return self._used

    def get(self, key: cython.const[cython.uchar][::1]) -> int:
        """The newest offset of the key, -1 if it is not known."""
        data: Input = cython.address(key[0]) if cython.compiled else key
        return self._newest(data, 0, len(key))

    def learn(
        self,
        data: cython.const[cython.uchar][::1],
        count: cython.Py_ssize_t,
        base_offset: cython.longlong,
        start_offset: cython.longlong,
    ) -> int:
        """Enter the keys of the records that fill `data`, from `start_offset` on.

        Returns ALL_FIT, MALFORMED, or the offset of the first record whose key has no room in the map."""
        _: cython.Py_ssize_t
        position: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = len(data)
        offset: cython.longlong
        memory: Input = cython.address(data[0]) if cython.compiled else data
        record: Record = self._record
        for _ in range(count):
            if read_record(memory, position, end, record) != 0 or record.offset_delta < 0:
                return MALFORMED
            offset = base_offset + record.offset_delta
            is_learned: cython.bint = record.key_length >= 0 and offset >= start_offset
            if is_learned and not self._put(memory, record.key_start, record.key_length, offset):
                return offset
            position = record.end
        return ALL_FIT if position == end else MALFORMED

    def filter(
        self,
        data: cython.const[cython.uchar][::1],
        count: cython.Py_ssize_t,
        base_offset: cython.longlong,
        latest_offset: cython.longlong,
        keep_tombstones: cython.bint,
        shift: cython.longlong,
        out: cython.uchar[::1],
    ) -> tuple:
        """Copy the records that stay to `out`; each may grow by 10 bytes if `shift` is not 0.

        `latest_offset` is the newest offset that the map knows; records after it stay. Records without a
        value stay if `keep_tombstones`. `shift` is added to each timestamp delta. Returns (number of records
        that stay, bytes written, how many of them have no value, highest timestamp delta); the first is
        MALFORMED if the bytes are, or if a timestamp delta leaves 64 bits."""
        _: cython.Py_ssize_t
        end: cython.Py_ssize_t = len(data)
        position: cython.Py_ssize_t = 0
        start: cython.Py_ssize_t
        written: cython.Py_ssize_t = 0
        kept: cython.Py_ssize_t = 0
        tombstones: cython.Py_ssize_t = 0
        highest: cython.longlong = 0
        timestamp: cython.longlong
        if count < 0 or count > end or len(out) < end + (10 * count if shift else 0):
            return MALFORMED, 0, 0, 0
        memory: Input = cython.address(data[0]) if cython.compiled else data
        target: Output = cython.address(out[0]) if cython.compiled else out
        record: Record = self._record
        for _ in range(count):
            start = position
            if read_record(memory, position, end, record) != 0 or record.offset_delta < 0:
                return MALFORMED, 0, 0, 0
            if sum_overflows(record.timestamp_delta, shift):
                return MALFORMED, 0, 0, 0
            position = record.end
            if base_offset + record.offset_delta <= latest_offset and (
                (record.value_length < 0 and not keep_tombstones)
                or self._is_old(memory, record, base_offset + record.offset_delta)
            ):
                continue
            timestamp = record.timestamp_delta + shift
            if shift == 0:
                written = _copy(memory, start, position, target, written)
            else:
                written = write_varint(
                    target, written, 1 + varint_size(timestamp) + position - record.offset_start
                )
                target[written] = 0
                written = write_varint(target, written + 1, timestamp)
                written = _copy(memory, record.offset_start, position, target, written)
            if kept == 0 or timestamp > highest:
                highest = timestamp
            kept += 1
            tombstones += record.value_length < 0
        if position != end:
            return MALFORMED, 0, 0, 0
        return kept, written, tombstones, highest

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _is_old(self, data: Input, record: Record, offset: cython.longlong) -> cython.bint:
        """Whether the key has a newer record. A record without a key does not belong in a compacted log."""
        return record.key_length < 0 or offset < self._newest(data, record.key_start, record.key_length)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _put(
        self, data: Input, key: cython.Py_ssize_t, size: cython.Py_ssize_t, offset: cython.longlong
    ) -> cython.bint:
        """Enter the offset of a key; False if the key is new and the map is full."""
        key_hash: KeyHash = _sip_hash(data, key, size, self._secret)
        place: cython.Py_ssize_t = self._place_of(key_hash)
        if self._table[place + 2] == 0:
            if self._used >= self._limit:
                return False
            self._used += 1
            self._table[place] = key_hash.low
            self._table[place + 1] = key_hash.high
        self._table[place + 2] = cython.cast(cython.ulonglong, offset) + 1
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def _newest(self, data: Input, key: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.longlong:
        key_hash: KeyHash = _sip_hash(data, key, size, self._secret)
        return cython.cast(cython.longlong, self._table[self._place_of(key_hash) + 2]) - 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _place_of(self, key_hash: KeyHash) -> cython.Py_ssize_t:
        """Where the entry of the hash begins, or a free one for it; the table is never full."""
        end: cython.Py_ssize_t = self._table.shape[0]
        slots: cython.ulonglong = end // 3
        # The upper half of the hash, scaled to the number of slots: cheaper than a division.
        place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, ((key_hash.low >> 32) * slots) >> 32) * 3
        while self._table[place + 2] != 0 and (
            self._table[place] != key_hash.low or self._table[place + 1] != key_hash.high
        ):
            place += 3
            if place == end:
                place = 0
        return place
