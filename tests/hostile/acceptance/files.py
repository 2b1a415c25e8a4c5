"""Files that are small to send and costly, or impossible, to decode."""

import base64
import io
import zlib
from functools import cache

import av

from tests.media.files import encoded, picture, png

GOP = 250


def data_uri(content: bytes, media_type: str = "application/octet-stream") -> str:
    """Return a file as a data: URI."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


@cache
def grey_4k(num_frames: int = 8100) -> bytes:
    """Return an MP4 of grey 3840x2160 frames at 30 Hz.

    One group of 250 frames is encoded; the file repeats its packets, so that a file of
    `num_frames` is made in seconds.
    """
    packets, template = _grey_group()
    output = io.BytesIO()
    with av.open(output, "w", format="mp4") as container:
        stream = container.add_stream_from_template(template)
        first, second = packets[0].dts, packets[1].dts
        assert first is not None
        assert second is not None
        step = second - first
        for number in range(num_frames):
            packet = av.Packet(bytes(packets[number % GOP]))
            packet.stream, packet.time_base = stream, packets[0].time_base
            packet.pts = packet.dts = number * step
            packet.is_keyframe = number % GOP == 0
            container.mux(packet)
    return output.getvalue()


def _grey_group() -> "tuple[list[av.Packet[av.VideoStream]], av.VideoStream]":
    """Encode one group of pictures without reordering; return its packets and their stream."""
    encoded_group = io.BytesIO()
    with av.open(encoded_group, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 3840, 2160, "yuv420p"
        stream.options = {"preset": "ultrafast", "x264-params": f"keyint={GOP}:scenecut=0"}
        frame = av.VideoFrame(3840, 2160, "yuv420p")
        for plane in frame.planes:
            plane.update(bytes([128]) * plane.buffer_size)
        for number in range(GOP):
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    encoded_group.seek(0)
    source = av.open(encoded_group, "r")
    template = source.streams.video[0]
    return [packet for packet in source.demux(template) if packet.size], template


@cache
def small_picture() -> bytes:
    """Return an ordinary PNG of 64x64."""
    return encoded(picture(size=(64, 64)))


@cache
def bombs() -> tuple[bytes, ...]:
    """Return pictures that claim, or unpack to, far more than they weigh."""
    unpacked = zlib.compress(bytes(60_000_000), 9)
    return (
        png(50_000, 50_000, b""),
        png(30_000, 30_000, unpacked),
        _with_chunk(small_picture(), b"iCCP", b"profile\0\0" + unpacked),
        _with_chunk(small_picture(), b"zTXt", b"comment\0\0" + unpacked),
    )


def _with_chunk(content: bytes, kind: bytes, data: bytes) -> bytes:
    """Insert a chunk behind the header of a PNG."""
    chunk = len(data).to_bytes(4, "big") + kind + data
    chunk += zlib.crc32(kind + data).to_bytes(4, "big")
    header_end = 8 + 25
    return content[:header_end] + chunk + content[header_end:]
