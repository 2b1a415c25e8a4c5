"""Opening a file of sound or moving pictures with FFmpeg's libraries, and nothing but that file."""

import io
from collections.abc import Iterator
from typing import Any

import av
from av.container import InputContainer

from sglang_omni.protocol.errors import InvalidRequest

# Play lists and the like are formats too: they would open further files and addresses.
FORMATS = "mov,matroska,webm,avi,mpegts,mpeg,flv,ogg,gif,wav,mp3,flac,aac,aiff,amr"


def open_container(data: bytes) -> InputContainer:
    """Open a file in memory, without a way to any other. Close it after use.

    Raises `InvalidRequest` when it is in none of the known formats, or its header is broken.
    """
    options = {"format_whitelist": FORMATS, "protocol_whitelist": "none"}
    try:
        return av.open(io.BytesIO(data), "r", options=options, metadata_errors="ignore")
    except (av.FFmpegError, EOFError) as error:
        raise InvalidRequest(
            "is not a sound or video file in a known format, or its header is broken"
        ) from error


def decoded(container: InputContainer, stream: Any) -> Iterator[Any]:
    """The frames of a stream, in order, by one thread. What is broken in between is left out.

    Raises `MemoryError`.
    """
    stream.codec_context.thread_count = 1
    for packet in packets(container, stream):
        try:
            yield from packet.decode()
        except MemoryError:
            raise  # One of FFmpeg's errors too.
        except av.FFmpegError:
            continue


def packets(container: InputContainer, stream: Any) -> Iterator[Any]:
    """The packets of a stream up to the end, or to where the file breaks off; the last is empty,
    which makes the decoder give what it holds back."""
    found = container.demux(stream)
    while True:
        try:
            packet = next(found, None)
        except av.FFmpegError:
            return
        if packet is None:
            return
        yield packet
