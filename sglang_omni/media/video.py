"""The bytes of one video, or of its frames as pictures, to the frames that the model sees."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from av import VideoFrame
from av.container import InputContainer
from av.stream import Disposition

from sglang_omni.media.container import decoded, open_container, packets
from sglang_omni.media.image import read_rgb, read_size
from sglang_omni.media.limits import MediaLimits, VideoRules
from sglang_omni.media.sizes import (
    LISTED_FPS,
    frame_size,
    listed_budget,
    pair_seconds,
    sample_frames,
)
from sglang_omni.protocol.errors import InvalidRequest

# All frames of a list are kept. Of the least size, more than these exceed the model's context.
MAX_LISTED = 512
# Some decoders count the borders that they work with.
BORDER_PIXELS = 1 << 20


@dataclass(frozen=True)
class Video:
    """uint8 `frames` [frames, height, width, 3], an even number of them, and the time of each pair
    in seconds."""

    frames: np.ndarray
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Timeline:
    """How many frames a file holds, and how many a second."""

    frames: int
    fps: float


def decode(data: bytes, limits: MediaLimits, rules: VideoRules) -> Video:
    """Sample a video file and resize what was taken.

    What its header says is never relied on: packets are counted before anything is decoded, frames
    while they are. A file with a broken end, or with packets that show nothing, is sampled again
    over the frames it does give. Raises `InvalidRequest` for a video beyond the limits, one
    without pictures, one that holds fewer frames than it declares, and one that gives fewer than
    are to be taken.
    """
    found = scan(data, limits)
    indices, fps = sample_frames(found.frames, found.fps, rules)
    frames, seen = _take(data, indices, limits, rules)
    if len(frames) < len(indices) <= seen:
        indices, fps = sample_frames(seen, found.fps, rules)
        frames, seen = _take(data, indices, limits, rules)
    if len(frames) < len(indices):
        raise InvalidRequest(
            f"the video is broken: {seen} of its {found.frames} frames can be decoded"
        )
    return _paired(frames, fps)


def decode_listed(files: Sequence[bytes], limits: MediaLimits, rules: VideoRules) -> Video:
    """Take every picture of a list as a frame, two a second, all in the size of the second.

    Raises `InvalidRequest` for a list of one, or of more than 512, and as `image.read_rgb` does.
    """
    if len(files) > MAX_LISTED:
        raise InvalidRequest(f"a list of {len(files)} frames is too long: {MAX_LISTED} at most")
    counted = listed_budget(len(files))
    _check_listed_cost(files, limits)
    head = [_upright(file, limits) for file in files[:2]]
    size = _size_for(head[1], counted, rules)
    frames = [_resize(pixels, size) for pixels in head]
    frames += [_resize(_upright(file, limits), size) for file in files[2:]]
    return _paired(frames, LISTED_FPS)


def _check_listed_cost(files: Sequence[bytes], limits: MediaLimits) -> None:
    pixels = sum(math.prod(read_size(file, limits)) for file in files)
    if pixels > limits.video_pixels:
        raise InvalidRequest(
            f"the video's {len(files)} frames have {pixels} pixels in all; at most "
            f"{limits.video_pixels} are decoded: send fewer or smaller frames"
        )


def scan(data: bytes, limits: MediaLimits) -> Timeline:
    """Count the frames of a file without decoding them. Raises `InvalidRequest`; see `decode`."""
    with closing(open_container(data)) as container:
        stream = _video_stream(container)
        size = stream.codec_context.width, stream.codec_context.height
        _check_size(*size, limits)
        _check_count(stream.frames, limits)
        count, hidden, span = 0, 0, 0.0
        for packet in packets(container, stream):
            count += packet.size > 0
            hidden += packet.size > 0 and packet.is_discard
            span = max(span, _end_s(packet))
            _check_count(count, limits)
        fps = _rate(stream, count, span)
    if count < stream.frames:
        raise InvalidRequest(
            f"the video is cut off: it declares {stream.frames} frames and holds {count}"
        )
    if count <= hidden:
        raise InvalidRequest("the video has no frames")
    _check_cost(count, size, limits)
    if max(count / fps, span) > limits.video_seconds:
        raise InvalidRequest(f"the video is longer than {limits.video_seconds:g} s")
    return Timeline(count - hidden, fps)


def _video_stream(container: InputContainer) -> Any:
    """The first stream of moving pictures; the cover of a record is none."""
    for stream in container.streams.video:
        if not stream.disposition & Disposition.attached_pic:
            return stream
    raise InvalidRequest("the file has no moving pictures")


def _check_size(width: int, height: int, limits: MediaLimits) -> None:
    if width * height > limits.pixels:
        raise InvalidRequest(f"the video's frames have more than {limits.pixels} pixels")


def _check_count(count: int, limits: MediaLimits) -> None:
    if count > limits.frames:
        raise InvalidRequest(f"the video has more than {limits.frames} frames")


def _check_cost(count: int, size: tuple[int, int], limits: MediaLimits) -> None:
    """Refuse what would keep a decoder for its whole time, before it does."""
    width, height = size
    pixels = count * width * height
    if pixels > limits.video_pixels:
        raise InvalidRequest(
            f"the video has {count} frames of {width}x{height}, {pixels} pixels in all; at most "
            f"{limits.video_pixels} are decoded: send fewer or smaller frames"
        )


def _end_s(packet: Any) -> float:
    """When a packet's frame ends, in seconds from the file's start; 0 where that is not said."""
    if packet.pts is None or packet.time_base is None:
        return 0.0
    start = packet.stream.start_time or 0
    return float((packet.pts - start + (packet.duration or 0)) * packet.time_base)


def _rate(stream: Any, count: int, span: float) -> float:
    """Frames a second: the file's average, as the released model takes it, else as counted."""
    fps = float(stream.average_rate or 0)
    if not (math.isfinite(fps) and fps > 0):
        fps = count / span if span > 0 else 0.0
    if not fps > 0:
        raise InvalidRequest("the video does not say how fast it is to be shown")
    return fps


def _take(
    data: bytes, indices: tuple[int, ...], limits: MediaLimits, rules: VideoRules
) -> tuple[list[np.ndarray], int]:
    """The frames of these numbers, resized, as far as they can be had; how many were decoded."""
    wanted, taken, seen = set(indices), [], 0
    size: tuple[int, int] | None = None
    for number, frame in enumerate(_frames(data, limits)):
        seen = number + 1
        if number in wanted:
            pixels = _pixels(frame)
            size = size or _size_for(pixels, len(indices), rules)
            taken.append(_resize(pixels, size))
        if number == indices[-1]:
            break
    return taken, seen


def _frames(data: bytes, limits: MediaLimits) -> Iterator[VideoFrame]:
    with closing(open_container(data)) as container:
        stream = _video_stream(container)
        # The decoder refuses a larger frame before it takes memory for it.
        most = limits.pixels + BORDER_PIXELS
        stream.codec_context.options = {"max_pixels": str(most)}
        for number, frame in enumerate(decoded(container, stream)):
            _check_count(number + 1, limits)
            _check_size(frame.width, frame.height, limits)
            yield frame


def _pixels(frame: VideoFrame) -> np.ndarray:
    """uint8 [height, width, 3], turned as the file says it is to be shown."""
    return np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90) % 4)


def _upright(file: bytes, limits: MediaLimits) -> np.ndarray:
    return np.asarray(read_rgb(file, limits))


def _size_for(pixels: np.ndarray, frames: int, rules: VideoRules) -> tuple[int, int]:
    height, width = pixels.shape[:2]
    return frame_size(height, width, frames, rules)


def _resize(pixels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """OpenCV's bicubic, to (height, width).

    In float32, rounded at the end: what OpenCV does with uint8 depends on the processor.
    """
    height, width = size
    exact = cv2.resize(pixels.astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(np.rint(exact), 0, 255).astype(np.uint8)


def _paired(frames: list[np.ndarray], fps: float) -> Video:
    seconds = pair_seconds(len(frames), fps)
    return Video(np.stack(frames + frames[-1:] * (len(frames) % 2)), seconds)
