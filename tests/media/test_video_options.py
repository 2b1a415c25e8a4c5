"""The sound of a video is decoded as a clip is, and a request chooses the frames of its video."""

from dataclasses import replace

import numpy as np
import pytest

from sglang_omni.media import audio
from sglang_omni.media.decode import decode_medium, narrow_video_rules
from sglang_omni.media.limits import MediaLimits, VideoOptions
from sglang_omni.protocol.errors import InvalidRequest
from tests.media.files import LIMITS, RULES, encoded, film, movie, picture, tone

RATE = RULES.sample_rate
LOW, HIGH = (tone(1.5, hz=hz)[:, 0] for hz in (300.0, 2000.0))


def hear(data: bytes, limits: MediaLimits = LIMITS) -> np.ndarray:
    return audio.decode_video_sound(data, limits, RATE)


def pitch(samples: np.ndarray) -> float:
    """The loudest frequency in Hz."""
    return float(np.abs(np.fft.rfft(samples)).argmax() * RATE / len(samples))


@pytest.mark.parametrize(
    ("form", "codec"), [("matroska", "pcm_s16le"), ("mp4", "aac"), ("avi", "mp3")]
)
def test_the_track_is_decoded_at_the_rate_of_the_model(form: str, codec: str) -> None:
    samples = tone(1.5, rate=44_100, hz=300.0)[:, 0]
    heard = hear(film(1.5, samples, rate=44_100, form=form, codec=codec))
    assert heard.dtype == np.float32
    assert len(heard) == pytest.approx(1.5 * RATE, abs=0.15 * RATE)
    assert pitch(heard) == pytest.approx(300, abs=3)


@pytest.mark.parametrize(("default", "hz"), [(0, 300), (1, 2000)])
def test_of_several_tracks_the_default_one_is_heard(default: int, hz: float) -> None:
    assert pitch(hear(film(1.5, LOW, HIGH, default=default))) == pytest.approx(hz, abs=3)


def test_without_a_default_track_the_first_one_is_heard() -> None:
    assert pitch(hear(film(1.5, LOW, HIGH, default=-1))) == pytest.approx(300, abs=3)


@pytest.mark.parametrize(
    "data", [movie(15), film(1.0, LOW[:100])], ids=["no track", "a track too short to hear"]
)
def test_a_video_without_sound_has_no_samples(data: bytes) -> None:
    heard = hear(data)
    assert heard.shape == (0,)
    assert heard.dtype == np.float32


@pytest.mark.parametrize("seconds", [0.5, 1.0])
def test_a_long_sound_is_cut_at_the_limit_for_audio(seconds: float) -> None:
    heard = hear(film(1.5, LOW), replace(LIMITS, audio_seconds=seconds))
    assert len(heard) == seconds * RATE
    np.testing.assert_array_equal(heard, hear(film(1.5, LOW))[: len(heard)])


def test_a_sound_out_of_all_bounds_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="Hz are supported"):
        hear(film(1.0, LOW, rate=2_000))


@pytest.mark.parametrize("sound", ["optional", "required"])
def test_options_choose_between_a_clip_and_the_sound_of_a_video(sound: str) -> None:
    options = VideoOptions(sound=sound)  # type: ignore[arg-type]
    silent = movie(5)
    heard, _ = decode_medium("audio", [silent], LIMITS, RULES, options=options)
    assert heard.shape == (0,)
    with pytest.raises(InvalidRequest, match="the file has no sound"):
        decode_medium("audio", [silent], LIMITS, RULES)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (VideoOptions(), 6),
        (VideoOptions(fps=4.0), 12),
        (VideoOptions(fps=1.0), 4),
        (VideoOptions(fps=0.1), 2),
        (VideoOptions(fps=60.0), 30),
        (VideoOptions(max_frames=4), 4),
        (VideoOptions(max_frames=1), 2),
        (VideoOptions(max_frames=999), 6),
        (VideoOptions(fps=10.0, max_frames=8), 8),
    ],
    ids=str,
)
def test_a_request_chooses_how_many_frames_are_sampled(options: VideoOptions, count: int) -> None:
    """Three seconds at ten frames a second; an odd number of frames is made even."""
    frames, seconds = decode_medium("video", [movie(30)], LIMITS, RULES, options=options)
    assert (len(frames), len(seconds)) == (count, count // 2)


@pytest.mark.parametrize(("fps", "seconds"), [(None, (0.25, 1.25)), (4.0, (0.125, 0.625))])
def test_listed_frames_have_the_rate_that_they_were_taken_at(
    fps: float | None, seconds: tuple[float, ...]
) -> None:
    files = [encoded(picture(seed=seed)) for seed in range(4)]
    options = VideoOptions(fps=fps)
    assert decode_medium("video", files, LIMITS, RULES, options=options)[1] == seconds


def test_a_request_gets_no_more_frames_than_the_rules_allow() -> None:
    rules = replace(RULES.video, frames=16)
    assert narrow_video_rules(rules, VideoOptions(60.0, 999)).frames == 16


def test_a_rate_above_the_limit_of_the_server_is_refused() -> None:
    rules = replace(RULES.video, max_fps=2.0)
    assert narrow_video_rules(rules, VideoOptions(fps=2.0)).fps == 2.0
    with pytest.raises(InvalidRequest, match="3 frames a second are too many"):
        narrow_video_rules(rules, VideoOptions(fps=3.0))
