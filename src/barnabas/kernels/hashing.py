"""The hash of keys, murmur2, which chooses the partition of a record with a key."""

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
