"""Videos are sampled and resized as the reference does, whatever their headers say."""

import io
import struct
import time
from dataclasses import replace
from fractions import Fraction

import av
import numpy as np
import pytest

from sglang_omni.media import video
from sglang_omni.media.image import read_rgb
from sglang_omni.media.limits import MediaLimits
from sglang_omni.media.sizes import frame_size, sample_frames
from sglang_omni.media.video import Video
from sglang_omni.protocol.errors import InvalidRequest
from tests.media.files import LIMITS, RULES, clip, encoded, movie, picture, tone, wav
from tests.media.patches import ONE_LEVEL, patches
from tests.testing.golden import Case, cases, file_of, load_case


def decode(data: bytes, limits: MediaLimits = LIMITS) -> Video:
    """Decode by Ming's rules."""
    return video.decode(data, limits, RULES.video)


def greys(decoded: Video) -> list[int]:
    """The number of each frame, as `movie` writes it into its colour."""
    return [round(float(frame.mean()) / 2) for frame in decoded.frames]


def listed(golden: Case) -> Video:
    """Decode the frame files of a golden case."""
    files = [file_of(name).read_bytes() for name in golden.info["frame_files"]]
    return video.decode_frame_list(files, LIMITS, RULES.video)


def check_patches(golden: Case, name: str, rows: np.ndarray) -> None:
    """Check patches, but for values that lie half-way between two levels.

    OpenCV's float32 sums differ in their last bit between processors, and then rounding goes the
    other way.
    """
    expected = golden[name].double().numpy()
    off = np.abs(rows - expected)
    halfway = off > golden.tolerance(name) * np.abs(expected).max()
    assert halfway.mean() < 1e-4
    assert off.max() < ONE_LEVEL.max() * 1.001


@pytest.mark.parametrize("case", cases("vision", "video_list", required=False))
def test_listed_frames_equal_the_reference(case: str) -> None:
    golden = load_case(case)
    decoded = listed(golden)
    count, channels, height, width = golden.info["resized_frames_shape"]
    assert decoded.frames.shape == (count, height, width, channels)
    assert decoded.frames.dtype == np.uint8
    assert list(decoded.seconds) == golden.info["temporal_patch_timestamps"]
    assert [f"{t:.1f}" for t in decoded.seconds] == golden.info["printed_timestamps"]
    rows = patches(decoded.frames)
    check_patches(golden, "first_patches", rows[:24])
    check_patches(golden, "last_patches", rows[-24:])
    means = golden["patch_row_mean"].double().numpy()
    assert np.abs(rows.mean(1) - means).max() <= golden.tolerance("patch_row_mean")


@pytest.mark.parametrize("case", cases("vision", "video_frames", required=False))
def test_frames_of_the_right_size_are_not_touched(case: str) -> None:
    golden = load_case(case)
    files = [file_of(name).read_bytes() for name in golden.info["frame_files"]]
    frames = np.stack([np.asarray(read_rgb(file, LIMITS)) for file in files])
    resized = np.stack([video._resize(frame, frame.shape[:2]) for frame in frames])
    np.testing.assert_allclose(patches(resized), golden["pixel_values"].numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("form", "codec"),
    [
        ("mp4", "mpeg4"),
        ("mp4", "libx264"),
        ("matroska", "mpeg4"),
        ("webm", "libvpx"),
        ("avi", "mpeg4"),
        ("mpegts", "mpeg2video"),
    ],
)
def test_the_sampled_frames_are_the_ones_of_the_rule(form: str, codec: str) -> None:
    # webm and mpegts declare no number of frames.
    rate = 25 if form == "mpegts" else 10
    decoded = decode(movie(45, form=form, codec=codec, fps=rate))
    indices, fps = sample_frames(45, rate, RULES.video)
    expected = list(indices) + [indices[-1]] * (len(indices) % 2)
    assert greys(decoded) == pytest.approx(expected, abs=1)
    assert decoded.seconds[0] == pytest.approx(0.5 / fps)
    assert decoded.frames.shape[1:3] == frame_size(48, 64, len(indices), RULES.video)


def test_one_frame_becomes_a_pair() -> None:
    decoded = decode(movie(1))
    assert decoded.frames.shape[0] == 2
    np.testing.assert_array_equal(decoded.frames[0], decoded.frames[1])
    assert decoded.seconds == (0.0,)


def test_a_variable_rate_is_sampled_by_its_average() -> None:
    # Ten frames within a second, then ten within ten seconds.
    times = [*range(10), *range(10, 110, 10)]
    decoded = decode(movie(20, fps=10, pts=times, form="matroska", codec="libx264"))
    assert 2 <= len(decoded.frames) <= 24
    assert greys(decoded)[0] == 0
    assert greys(decoded)[-1] == pytest.approx(19, abs=1)


def test_a_long_video_gets_at_most_170_frames_of_a_bounded_area() -> None:
    decoded = decode(movie(1000, fps=5, size=(128, 96)))
    count, height, width, _ = decoded.frames.shape
    assert count == 170
    assert height * width <= RULES.video.total_pixels / 170 * 2


@pytest.mark.parametrize(("quarter", "corner"), [(0, 0), (1, 1), (2, 2), (3, 3)])
def test_a_turned_video_is_shown_upright(quarter: int, corner: int) -> None:
    # One quarter of the picture is white. Turning it clockwise moves it from corner to corner.
    decoded = decode(turned(corner_movie(), quarter))
    height, width = decoded.frames.shape[1:3]
    assert (height > width) == (quarter % 2 == 1)
    halves = decoded.frames[0, :, :, 0].reshape(2, height // 2, 2, width // 2).mean((1, 3))
    clockwise = [halves[0, 0], halves[0, 1], halves[1, 1], halves[1, 0]]
    assert int(np.argmax(clockwise)) == corner


def corner_movie() -> bytes:
    """A video in which the upper left quarter is white."""
    pixels = np.zeros((48, 96, 3), np.uint8)
    pixels[:24, :48] = 255
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 96, 48, "yuv420p"
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return buffer.getvalue()


def turned(data: bytes, quarters: int) -> bytes:
    """Write into an mp4 that it is to be shown turned clockwise by `quarters` of a circle."""
    a, b = [(1, 0), (0, 1), (-1, 0), (0, -1)][quarters]
    matrix = struct.pack(">4i", a << 16, b << 16, 0, -b << 16) + struct.pack(">i", a << 16)
    at = data.index(b"tkhd") + 4 + 40
    return data[:at] + matrix + data[at + len(matrix) :]


def test_more_frames_than_allowed_are_refused_before_decoding() -> None:
    data = movie(10_000, fps=60, size=(16, 16))
    began = time.process_time()
    with pytest.raises(InvalidRequest, match="more than 9000 frames"):
        decode(data)
    assert time.process_time() - began < 1


def test_more_frames_than_allowed_are_found_where_none_are_declared() -> None:
    with pytest.raises(InvalidRequest, match="more than 40 frames"):
        decode(movie(41, form="webm", codec="libvpx"), MediaLimits(frames=40))
    assert len(decode(movie(40, form="webm", codec="libvpx"), MediaLimits(frames=40)).frames) == 8


def test_a_longer_video_than_allowed_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="longer than 5 s"):
        decode(movie(51), MediaLimits(video_seconds=5.0))
    assert len(decode(movie(50), MediaLimits(video_seconds=5.0)).frames) == 10


def test_a_slide_show_is_as_long_as_its_times_say() -> None:
    data = movie(3, fps=1, pts=[0, 1, 2000], form="matroska", codec="libx264")
    with pytest.raises(InvalidRequest, match="longer than 600 s"):
        decode(data)


def test_larger_frames_than_allowed_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="more than 3071 pixels"):
        decode(movie(3), MediaLimits(pixels=64 * 48 - 1))


def test_frames_that_outgrow_their_header_are_refused() -> None:
    # The container says 64x48, the stream itself 640x480: the decoder believes the stream.
    small, large = movie(5), movie(5, size=(640, 480))
    forged = large.replace(struct.pack(">HH", 640, 480), struct.pack(">HH", 64, 48))
    assert forged != large
    assert len(decode(small, MediaLimits(pixels=64 * 48)).frames) == 2
    with pytest.raises(InvalidRequest, match=r"pixels|can be decoded"):
        decode(forged, MediaLimits(pixels=64 * 48))


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_a_cut_off_video_is_refused(share: float) -> None:
    data = movie(60, options={"movflags": "faststart"})
    with pytest.raises(InvalidRequest, match="truncated: it declares 60 frames and has"):
        decode(data[: int(len(data) * share)])


def test_a_video_without_its_index_is_refused() -> None:
    data = movie(60)
    with pytest.raises(InvalidRequest, match="its header is broken"):
        decode(data[: len(data) // 2])


def test_a_stream_that_breaks_off_is_taken_as_far_as_it_goes() -> None:
    data = movie(60, form="mpegts", codec="mpeg2video", fps=25)
    decoded = decode(data[: len(data) // 2])
    assert greys(decoded)[0] == 0
    assert 20 <= max(greys(decoded)) <= 40


def test_a_video_of_noise_instead_of_frames_is_refused() -> None:
    data = bytearray(movie(60, options={"movflags": "faststart"}))
    start = data.index(b"mdat") + 4
    data[start:] = bytes(len(data) - start)
    with pytest.raises(InvalidRequest, match="broken: 0 of its 60 frames can be decoded"):
        decode(bytes(data))


def test_a_file_of_sound_has_no_pictures() -> None:
    with pytest.raises(InvalidRequest, match="no video stream"):
        decode(wav(tone(0.5)))
    with pytest.raises(InvalidRequest, match="no video stream"):
        decode(clip("mp4", "aac", tone(0.5), 16_000))


@pytest.mark.parametrize(
    "data",
    [
        b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
        b"ffconcat version 1.0\nfile /etc/passwd\n",
        b"text" * 100,
        b"",
    ],
)
def test_a_play_list_opens_nothing(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not an audio or video file"):
        decode(data)


def test_all_frames_of_a_list_take_the_size_of_the_second() -> None:
    files = [encoded(picture(size=size)) for size in [(64, 64), (128, 64), (64, 128)]]
    decoded = video.decode_frame_list(files, LIMITS, RULES.video)
    assert decoded.frames.shape == (4, 256, 512, 3)
    assert decoded.seconds == (0.25, 1.0)
    np.testing.assert_array_equal(decoded.frames[2], decoded.frames[3])


@pytest.mark.parametrize(("count", "message"), [(1, "at least two"), (513, "at most 512")])
def test_a_list_has_two_to_512_frames(count: int, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        video.decode_frame_list([encoded(picture())] * count, LIMITS, RULES.video)


def test_a_rate_below_two_a_second_keeps_every_frame() -> None:
    decoded = decode(movie(4, fps=Fraction(1, 2)))
    assert greys(decoded) == pytest.approx([0, 1, 2, 3], abs=1)
    assert decoded.seconds == (1.0, 5.0)


def test_what_costs_too_much_is_refused_before_it_is_decoded() -> None:
    limits = replace(LIMITS, video_pixels=30 * 64 * 48)
    assert len(decode(movie(30), limits).frames) == 6
    with pytest.raises(InvalidRequest, match="31 frames of 64x48, 95232 pixels in all"):
        decode(movie(31), limits)
    frames = [encoded(picture(size=(640, 480)))] * 2
    with pytest.raises(InvalidRequest, match="2 frames have 614400 pixels in all"):
        video.decode_frame_list(frames, limits, RULES.video)
