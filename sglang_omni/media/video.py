"""Decode a video file, or a list of images as its frames, to the frames that the model sees."""

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

from sglang_omni.media.container import decode_frames, demux_packets, open_container
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

# All frames of a list are kept. More frames of minimum size would exceed the model's context.
MAX_LISTED_FRAMES = 512
# Some decoders include their internal borders in the pixel count.
BORDER_PIXELS = 1 << 20


@dataclass(frozen=True)
class Video:
    """A sampled video: uint8 `frames` [frames, height, width, 3] and their times.

    The number of frames is even. `seconds` has the time of each pair of frames.
    """

    frames: np.ndarray
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Timeline:
    """The number of frames of a file, and its frames per second."""

    frames: int
    fps: float


def decode(data: bytes, limits: MediaLimits, rules: VideoRules) -> Video:
    """Sample a video file and resize the sampled frames.

    The header is not trusted: packets are counted before anything is decoded, and frames while they
    are decoded. A file that yields fewer frames than packets, because its end is broken or packets
    have no visible frame, is sampled again over the frames that it does yield.

    Raises:
        InvalidRequest: The video exceeds the limits, has no pictures, has fewer frames than it
            declares, or fewer frames can be decoded than must be sampled.
    """
    timeline = scan(data, limits)
    indices, fps = sample_frames(timeline.frames, timeline.fps, rules)
    frames, num_decoded = _decode_selected(data, indices, limits, rules)
    if len(frames) < len(indices) <= num_decoded:
        indices, fps = sample_frames(num_decoded, timeline.fps, rules)
        frames, num_decoded = _decode_selected(data, indices, limits, rules)
    if len(frames) < len(indices):
        raise InvalidRequest(
            f"the video is broken: {num_decoded} of its {timeline.frames} frames can be decoded"
        )
    return _pair_frames(frames, fps)


def decode_frame_list(
    files: Sequence[bytes], limits: MediaLimits, rules: VideoRules, fps: float = LISTED_FPS
) -> Video:
    """Decode a list of images as frames, `fps` a second, in the size of the second image.

    Raises `InvalidRequest` for a list of one or of more than 512 images, and the errors of
    `image.read_rgb`.
    """
    if len(files) > MAX_LISTED_FRAMES:
        raise InvalidRequest(
            f"a list of {len(files)} frames is too long; at most {MAX_LISTED_FRAMES} are allowed"
        )
    num_budgeted = listed_budget(len(files))
    _check_listed_cost(files, limits)
    first_two = [_read_frame(file, limits) for file in files[:2]]
    size = _compute_size(first_two[1], num_budgeted, rules)
    frames = [_resize(pixels, size) for pixels in first_two]
    frames += [_resize(_read_frame(file, limits), size) for file in files[2:]]
    return _pair_frames(frames, fps)


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
        count, num_hidden, duration_s = 0, 0, 0.0
        for packet in demux_packets(container, stream):
            count += packet.size > 0
            num_hidden += packet.size > 0 and packet.is_discard
            duration_s = max(duration_s, _end_s(packet))
            _check_count(count, limits)
        fps = _frame_rate(stream, count, duration_s)
    if count < stream.frames:
        raise InvalidRequest(
            f"the video is truncated: it declares {stream.frames} frames and has {count}"
        )
    if count <= num_hidden:
        raise InvalidRequest("the video has no frames")
    _check_cost(count, size, limits)
    if max(count / fps, duration_s) > limits.video_seconds:
        raise InvalidRequest(f"the video is longer than {limits.video_seconds:g} s")
    return Timeline(count - num_hidden, fps)


def _video_stream(container: InputContainer) -> Any:
    """Return the first video stream. A cover image of an audio file does not count."""
    for stream in container.streams.video:
        if not stream.disposition & Disposition.attached_pic:
            return stream
    raise InvalidRequest("the file has no video stream")


def _check_size(width: int, height: int, limits: MediaLimits) -> None:
    if width * height > limits.pixels:
        raise InvalidRequest(f"the video's frames have more than {limits.pixels} pixels")


def _check_count(count: int, limits: MediaLimits) -> None:
    if count > limits.frames:
        raise InvalidRequest(f"the video has more than {limits.frames} frames")


def _check_cost(count: int, size: tuple[int, int], limits: MediaLimits) -> None:
    """Reject a video that would use all of the decoder's time, before decoding it."""
    width, height = size
    pixels = count * width * height
    if pixels > limits.video_pixels:
        raise InvalidRequest(
            f"the video has {count} frames of {width}x{height}, {pixels} pixels in all; at most "
            f"{limits.video_pixels} are decoded: send fewer or smaller frames"
        )


def _end_s(packet: Any) -> float:
    """Return when a packet's frame ends, in seconds from the file's start; 0 if unknown."""
    if packet.pts is None or packet.time_base is None:
        return 0.0
    start = packet.stream.start_time or 0
    return float((packet.pts - start + (packet.duration or 0)) * packet.time_base)


def _frame_rate(stream: Any, count: int, duration_s: float) -> float:
    """Return the frames per second: the file's average as in the released model, else measured."""
    fps = float(stream.average_rate or 0)
    if not (math.isfinite(fps) and fps > 0):
        fps = count / duration_s if duration_s > 0 else 0.0
    if not fps > 0:
        raise InvalidRequest("the video has no frame rate")
    return fps


def _decode_selected(
    data: bytes, indices: tuple[int, ...], limits: MediaLimits, rules: VideoRules
) -> tuple[list[np.ndarray], int]:
    """Return the resized frames of `indices`, as far as they exist, and how many were decoded."""
    selected, frames, num_decoded = set(indices), [], 0
    size: tuple[int, int] | None = None
    for index, frame in enumerate(_frames(data, limits)):
        num_decoded = index + 1
        if index in selected:
            pixels = _to_pixels(frame)
            size = size or _compute_size(pixels, len(indices), rules)
            frames.append(_resize(pixels, size))
        if index == indices[-1]:
            break
    return frames, num_decoded


def _frames(data: bytes, limits: MediaLimits) -> Iterator[VideoFrame]:
    with closing(open_container(data)) as container:
        stream = _video_stream(container)
        # The decoder rejects a larger frame before it allocates memory for it.
        max_pixels = limits.pixels + BORDER_PIXELS
        stream.codec_context.options = {"max_pixels": str(max_pixels)}
        for index, frame in enumerate(decode_frames(container, stream)):
            _check_count(index + 1, limits)
            _check_size(frame.width, frame.height, limits)
            yield frame


def _to_pixels(frame: VideoFrame) -> np.ndarray:
    """Return uint8 [height, width, 3], rotated as the file specifies."""
    return np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90) % 4)


def _read_frame(file: bytes, limits: MediaLimits) -> np.ndarray:
    return np.asarray(read_rgb(file, limits))


def _compute_size(pixels: np.ndarray, frames: int, rules: VideoRules) -> tuple[int, int]:
    height, width = pixels.shape[:2]
    return frame_size(height, width, frames, rules)


def _resize(pixels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Resize to (height, width) with OpenCV's bicubic interpolation.

    It runs in float32 and rounds at the end: OpenCV's uint8 results depend on the processor.
    """
    height, width = size
    resized = cv2.resize(pixels.astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(np.rint(resized), 0, 255).astype(np.uint8)


def _pair_frames(frames: list[np.ndarray], fps: float) -> Video:
    seconds = pair_seconds(len(frames), fps)
    return Video(np.stack(frames + frames[-1:] * (len(frames) % 2)), seconds)
