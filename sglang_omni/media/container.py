"""Open and demux an audio or video file with FFmpeg's libraries, without access to other files."""

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import av
from av.container import InputContainer

from sglang_omni.protocol.errors import InvalidRequest

# Playlists and similar formats are excluded because they open other files and URLs.
FORMATS = "mov,matroska,webm,avi,mpegts,mpeg,flv,ogg,gif,wav,mp3,flac,aac,aiff,amr"


def open_container(source: bytes | BinaryIO) -> InputContainer:
    """Open a file, without access to other files. Close it after use.

    Raises `InvalidRequest` if its format is unknown or its header is broken.
    """
    options = {"format_whitelist": FORMATS, "protocol_whitelist": "none"}
    try:
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        return av.open(file, "r", options=options, metadata_errors="ignore")
    except (av.FFmpegError, EOFError) as error:
        raise InvalidRequest(
            "is not an audio or video file in a supported format, or its header is broken"
        ) from error


def decode_frames(container: InputContainer, stream: Any) -> Iterator[Any]:
    """Yield the frames of a stream in order, decoded by one thread. Broken packets are left out.

    Raises `MemoryError`.
    """
    stream.codec_context.thread_count = 1
    for packet in demux_packets(container, stream):
        try:
            yield from packet.decode()
        except MemoryError:
            raise  # It is also an `FFmpegError`.
        except av.FFmpegError:
            continue


def demux_packets(container: InputContainer, stream: Any) -> Iterator[Any]:
    """Yield the packets of a stream up to its end, or to where the file is truncated.

    The last packet is empty and flushes the decoder.
    """
    stream_packets = container.demux(stream)
    while True:
        try:
            packet = next(stream_packets, None)
        except av.FFmpegError:
            return
        if packet is None:
            return
        yield packet
