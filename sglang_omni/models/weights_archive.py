"""Pack the weights that come with the repository; xz alone would leave a tenth more of them.

The weights of a checkpoint folder `X` are in `X.weights.tar` beside it. They are unpacked into the
folder when the package is built or, in a source tree, at first use. `python -m
sglang_omni.models.weights_archive FOLDER` packs the weights of a folder. Standard library only: a
build runs this before anything is installed.

Of a bfloat16 number of trained or random weights, sign and mantissa are noise, and the exponent has
about 2.6 bits of information. So the archive has three members for a file `F` of weights:

* `F.fractions`: sign and mantissa of every bfloat16 number, a byte each, as they are; of rounded
  numbers, whose mantissas are fewer, `F.fractions.deflate` in Huffman code;
* `F.exponents`: their exponents in Huffman code (a raw deflate stream without matches);
* `F.rest.xz`: all other bytes of `F`, which begin with its header.
"""

import argparse
import fcntl
import hashlib
import io
import json
import lzma
import struct
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SUFFIX = ".weights.tar"
# Contains the checksum of the archive once all of it is unpacked.
MARKER_FILE = ".weights-unpacked"

_EXPONENTS, _FRACTIONS, _REST = ".exponents", ".fractions", ".rest.xz"
_CODED_FRACTIONS = _FRACTIONS + ".deflate"
# Fractions are in Huffman code if that leaves less than this share of them.
_WORTH_CODING = 0.95
# Most of the other bytes are float32 numbers.
_REST_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 0, "lp": 2, "pb": 2}]
# A high byte of a bfloat16 number is its sign and 7 bits of its exponent; a low byte is the last
# bit of the exponent and the mantissa.
_HIGH_TO_EXPONENT = bytes(value << 1 & 0xFF for value in range(256))
_LOW_TO_EXPONENT = bytes(value >> 7 for value in range(256))
_EXPONENT_TO_HIGH = bytes(value >> 1 for value in range(256))
_EXPONENT_TO_LOW = bytes(value << 7 & 0xFF for value in range(256))
_KEEP_SIGN = bytes(value & 0x80 for value in range(256))
_KEEP_MANTISSA = bytes(value & 0x7F for value in range(256))


class SplitFile(NamedTuple):
    """The bytes of a safetensors file: exponents and fractions of its bfloat16 numbers, the rest.

    Fractions are sign and mantissa.
    """

    exponents: bytes
    fractions: bytes
    rest: bytes


def get_archive_path(folder: Path) -> Path:
    """Return the path of the packed weights of a checkpoint folder."""
    return folder.with_name(folder.name + SUFFIX)


def pack_weights(folder: Path) -> Path:
    """Pack every `.safetensors` file of a folder and return the archive.

    Equal files give equal archives.

    Raises:
        FileNotFoundError: There is no such folder, or there are no weights in it.
    """
    weights = sorted(folder.rglob("*.safetensors"))
    if not weights:
        raise FileNotFoundError(f"{folder} has no *.safetensors")
    archive = get_archive_path(folder)
    with tarfile.open(archive, "w") as packed:
        for path in weights:
            parts = split_file(path.read_bytes())
            name = path.relative_to(folder).as_posix()
            _add(packed, name + _REST, lzma.compress(parts.rest, filters=_REST_FILTERS))
            _add(packed, name + _EXPONENTS, _encode_huffman(parts.exponents))
            coded = _encode_huffman(parts.fractions)
            if len(coded) < len(parts.fractions) * _WORTH_CODING:
                _add(packed, name + _CODED_FRACTIONS, coded)
            else:
                _add(packed, name + _FRACTIONS, parts.fractions)
    return archive


def _add(packed: tarfile.TarFile, name: str, content: bytes) -> None:
    # Without owner and time, so that equal files give equal archives.
    member = tarfile.TarInfo(name)
    member.size = len(content)
    packed.addfile(member, io.BytesIO(content))


def _encode_huffman(content: bytes) -> bytes:
    coder = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
    return coder.compress(content) + coder.flush()


def _decode_huffman(content: bytes) -> bytes:
    return zlib.decompress(content, -zlib.MAX_WBITS)


def split_file(content: bytes) -> SplitFile:
    """Take the bfloat16 numbers of a safetensors file apart."""
    spans = list(_find_bfloat16(content))
    numbers = b"".join(content[start:end] for start, end in spans)
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(content)]
    rest = b"".join(content[end:start] for end, start in zip(ends, starts, strict=True))
    low, high = numbers[0::2], numbers[1::2]
    return SplitFile(
        exponents=_combine(high.translate(_HIGH_TO_EXPONENT), low.translate(_LOW_TO_EXPONENT)),
        fractions=_combine(high.translate(_KEEP_SIGN), low.translate(_KEEP_MANTISSA)),
        rest=rest,
    )


def join_file(parts: SplitFile) -> bytes:
    """Return the safetensors file of `split_file`."""
    exponents, fractions, rest = parts
    numbers = bytearray(2 * len(exponents))
    numbers[0::2] = _combine(
        exponents.translate(_EXPONENT_TO_LOW), fractions.translate(_KEEP_MANTISSA)
    )
    numbers[1::2] = _combine(
        exponents.translate(_EXPONENT_TO_HIGH), fractions.translate(_KEEP_SIGN)
    )
    content = bytearray()
    num_used = 0
    for start, end in _find_bfloat16(rest):
        # What lies before the span and is not there yet is from the rest.
        content += rest[len(content) - num_used : start - num_used]
        content += numbers[num_used : num_used + end - start]
        num_used += end - start
    return bytes(content + rest[len(content) - num_used :])


def _find_bfloat16(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield where bfloat16 tensors begin and end in a safetensors file, which begins `content`."""
    (length,) = struct.unpack_from("<Q", content)
    tensors = json.loads(content[8 : 8 + length])
    tensors.pop("__metadata__", None)
    for start, end in sorted(
        tensor["data_offsets"] for tensor in tensors.values() if tensor["dtype"] == "BF16"
    ):
        yield 8 + length + start, 8 + length + end


def _combine(one: bytes, other: bytes) -> bytes:
    """Return the bytes of `one` or `other`, bit by bit; long integers are the fast way to it."""
    both = int.from_bytes(one, "little") | int.from_bytes(other, "little")
    return both.to_bytes(len(one), "little")


def unpack_weights(folder: Path) -> None:
    """Unpack the weights of a folder unless that is done or there is no archive.

    Files appear only when complete. Concurrent processes wait for each other.

    Raises:
        OSError: The folder cannot be written.
    """
    archive = get_archive_path(folder)
    if not archive.exists():
        return
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    if _read_marker(folder) == checksum:
        return
    with archive.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _read_marker(folder) != checksum:
            _unpack(archive, folder)
            (folder / MARKER_FILE).write_text(checksum)


def estimate_unpacked_bytes(folder: Path) -> int:
    """Return about how many bytes the unpacked weights of a folder take, rather more than fewer."""
    return get_archive_path(folder).stat().st_size * 2


def _read_marker(folder: Path) -> str:
    """Return the checksum of the archive that was unpacked last, or ""."""
    marker = folder / MARKER_FILE
    return marker.read_text() if marker.exists() else ""


def _unpack(archive: Path, folder: Path) -> None:
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as temp_dir,
        tarfile.open(archive) as packed,
    ):
        rests = (name for name in packed.getnames() if name.endswith(_REST))
        for name in [name.removesuffix(_REST) for name in rests]:
            part = Path(temp_dir) / Path(name).name
            part.write_bytes(join_file(_read_parts(packed, name)))
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            part.replace(folder / name)


def _read_parts(packed: tarfile.TarFile, name: str) -> SplitFile:
    def read(suffix: str) -> bytes:
        # Without `extractall`: the Python of Debian 12 knows no filters of unsafe members.
        content = packed.extractfile(name + suffix)
        assert content is not None, f"{name}{suffix} is no file"
        with content:
            return content.read()

    is_coded = name + _CODED_FRACTIONS in packed.getnames()
    return SplitFile(
        exponents=_decode_huffman(read(_EXPONENTS)),
        fractions=_decode_huffman(read(_CODED_FRACTIONS)) if is_coded else read(_FRACTIONS),
        rest=lzma.decompress(read(_REST)),
    )


def main() -> None:
    """Pack the weights of a folder and print the archive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="checkpoint whose weights to pack")
    args = parser.parse_args()
    try:
        # Resolved: `.` has no name of its own to call the archive by.
        print(f"wrote {pack_weights(args.folder.resolve())}")
    except FileNotFoundError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
