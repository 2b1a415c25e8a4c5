"""Keep the GPU code of one architecture alone in a shared library, so that it packs small.

    python -m cookbook.ming_mini_2.voices.teachers.gpu_code LIBRARY --architecture 90

CUDA's compiler stores the code of all architectures in containers, of which a GPU uses its own.
What is left out becomes zeros behind a shorter container, so that all else stays where it was.
"""

import argparse
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CONTAINER = struct.Struct("<IHHQ")
"""The head of a container: a magic number, the version, the bytes of the head and of the rest."""
MAGIC, VERSION = 0xBA55ED50, 1
ENTRY = struct.Struct("<HHIQ")
"""The head of an entry: its kind, the version, the bytes of the head and of the code."""
ARCHITECTURE_AT = 28
MACHINE_CODE, LEAST_HEAD = 2, 64


@dataclass(frozen=True)
class Entry:
    """Code of one architecture, where it lies in a library with its head."""

    start: int
    end: int
    kind: int
    architecture: int


@dataclass(frozen=True)
class Container:
    """A container: where it lies in a library, and its entries."""

    start: int
    end: int
    entries: tuple[Entry, ...]


def find_containers(library: bytes | bytearray) -> Iterator[Container]:
    """Yield the containers of a library."""
    magic = struct.pack("<IHH", MAGIC, VERSION, CONTAINER.size)
    at = library.find(magic)
    while 0 <= at <= len(library) - CONTAINER.size:
        *_, size = CONTAINER.unpack_from(library, at)
        end = at + CONTAINER.size + size
        entries = tuple(_entries(library, at + CONTAINER.size, end)) if end <= len(library) else ()
        if entries:
            yield Container(at, end, entries)
        at = library.find(magic, end if entries else at + 1)


def _entries(library: bytes | bytearray, at: int, end: int) -> Iterator[Entry]:
    while at + LEAST_HEAD <= end:
        kind, _, head, size = ENTRY.unpack_from(library, at)
        if head < LEAST_HEAD or at + head + size > end:
            return
        (architecture,) = struct.unpack_from("<I", library, at + ARCHITECTURE_AT)
        yield Entry(at, at + head + size, kind, architecture)
        at += head + size


def keep_architecture(library: bytearray, architecture: int) -> int:
    """Leave out all code but that of one architecture. Returns the bytes of what is kept.

    A container without machine code of that architecture is left as it is.
    """
    kept = 0
    for container in list(find_containers(library)):
        own = b"".join(
            bytes(library[one.start : one.end])
            for one in container.entries
            if (one.kind, one.architecture) == (MACHINE_CODE, architecture)
        )
        if own:
            head = CONTAINER.pack(MAGIC, VERSION, CONTAINER.size, len(own))
            size = container.end - container.start
            library[container.start : container.end] = (head + own).ljust(size, b"\0")
            kept += len(own)
    return kept


def main() -> int:
    """Change a library. Return 1 if it has no code of the architecture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    parser.add_argument("--architecture", type=int, required=True, help="90 of an H100")
    args = parser.parse_args()
    library = bytearray(args.library.read_bytes())
    kept = keep_architecture(library, args.architecture)
    if not kept:
        print(f"{args.library} has no code for {args.architecture}")
        return 1
    args.library.write_bytes(library)
    print(f"{args.library.name}: {kept / 10**6:.1f} MB of GPU code for {args.architecture}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
