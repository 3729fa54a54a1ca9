"""Hashes by which a partition is chosen: murmur2 of keys, and Java's String.hashCode of group ids."""

import cython

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def hash_of_key(data: Input, position: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.ulonglong:
    """See murmur2."""
    mixer: cython.ulonglong = 0x5BD1E995
    mask: cython.ulonglong = 0xFFFFFFFF
    end: cython.Py_ssize_t = position + length
    part: cython.ulonglong
    byte: cython.ulonglong
    index: cython.Py_ssize_t
    seed: cython.ulonglong = 0x9747B28C
    hashed: cython.ulonglong = (seed ^ cython.cast(cython.ulonglong, length)) & mask
    while end - position >= 4:
        part = 0
        for index in range(4):
            byte = data[position + index]
            part |= byte << (8 * index)
        part = (part * mixer) & mask
        part ^= part >> 24
        part = (part * mixer) & mask
        hashed = ((hashed * mixer) & mask) ^ part
        position += 4
    if position < end:
        for index in range(end - position):
            byte = data[position + index]
            hashed ^= byte << (8 * index)
        hashed = (hashed * mixer) & mask
    hashed ^= hashed >> 13
    hashed = (hashed * mixer) & mask
    hashed ^= hashed >> 15
    return hashed & 0x7FFFFFFF


def murmur2(key: bytes) -> int:
    """The 32-bit murmur2 hash by which Kafka's clients choose a partition for a key, without its sign bit."""
    if cython.compiled:
        return hash_of_key(cython.cast(Input, cython.cast(cython.p_const_char, key)), 0, len(key))
    return hash_of_key(key, 0, len(key))


@cython.cfunc
@cython.exceptval(check=False)
def _java_hash(data: Input, size: cython.Py_ssize_t) -> cython.ulonglong:
    """See java_hash."""
    mask: cython.ulonglong = 0xFFFFFFFF
    hashed: cython.ulonglong = 0
    high: cython.ulonglong
    low: cython.ulonglong
    position: cython.Py_ssize_t = 0
    while position + 1 < size:
        high = data[position]
        low = data[position + 1]
        hashed = (31 * hashed + (high << 8 | low)) & mask
        position += 2
    return hashed


def java_hash(text: str) -> int:
    """The signed 32-bit hash of a Java string, over its UTF-16 units."""
    units: bytes = text.encode("utf-16-be", "surrogatepass")
    if cython.compiled:
        hashed: int = _java_hash(cython.cast(Input, cython.cast(cython.p_const_char, units)), len(units))
    else:
        hashed = _java_hash(units, len(units))
    return hashed - (1 << 32) if hashed & 0x80000000 else hashed
