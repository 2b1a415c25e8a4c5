"""A library keeps the code of one architecture, in containers that can be read as before."""

import struct

from cookbook.ming_mini_2.voices.teachers.gpu_code import (
    CONTAINER,
    MAGIC,
    VERSION,
    find_containers,
    keep_architecture,
)


def entry(architecture: int, code: bytes, kind: int = 2, head: int = 64) -> bytes:
    """Code behind its head, as CUDA's compiler writes it."""
    begin = struct.pack("<HHIQ", kind, 0x101, head, len(code)).ljust(28, b"\1")
    return (begin + struct.pack("<I", architecture)).ljust(head, b"\2") + code


def container(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return CONTAINER.pack(MAGIC, VERSION, CONTAINER.size, len(body)) + body


def test_only_the_code_of_one_architecture_is_kept() -> None:
    own, other = entry(90, b"ninety.." * 4), entry(80, b"eighty.." * 9)
    newest = entry(120, b"newest.." * 7, head=112)
    first, second = container(other, own, newest), container(own)
    library = bytearray(b"before" + first + b"between" + second + b"after")
    size = len(library)
    assert keep_architecture(library, 90) == 2 * len(own)
    assert len(library) == size
    assert library.startswith(b"before" + container(own))
    assert library.endswith(b"between" + second + b"after")
    assert b"eighty" not in library
    assert b"newest" not in library
    assert [[one.architecture for one in each.entries] for each in find_containers(library)] == [
        [90],
        [90],
    ]


def test_a_container_without_that_architecture_is_left_alone() -> None:
    portable = entry(90, b"assembly", kind=1)
    before = b"x" * 8 + container(entry(80, b"eighty.."), portable)
    library = bytearray(before)
    assert keep_architecture(library, 90) == 0
    assert library == before


def test_a_magic_number_without_a_container_is_no_container() -> None:
    stray = struct.pack("<IHH", MAGIC, VERSION, CONTAINER.size)
    own = container(entry(90, b"ninety.."))
    library = bytearray(stray + b"\xff" * 40 + own + stray)
    assert [one.start for one in find_containers(library)] == [len(stray) + 40]
    assert keep_architecture(library, 90) > 0
    assert library.endswith(own + stray)
