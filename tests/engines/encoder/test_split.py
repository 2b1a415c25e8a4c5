"""A video that exceeds a forward pass is encoded in several, by the real image encoder."""

import numpy as np
import pytest
import torch

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.worker import EncoderWorker, open_worker
from sglang_omni.engines.runtime.worker import StepInput
from sglang_omni.protocol.errors import EngineFailed
from tests.engines.encoder.requests import features, picture
from tests.testing.golden import TINY, assert_close

TOLERANCE = 1e-5
# A pair of frames of 64 x 96 pixels has 24 patches.
STEP_PATCHES = 24


def worker_of(max_patches: int) -> EncoderWorker:
    return open_worker(EncoderSettings(TINY, audio=False, max_patches=max_patches))


@pytest.fixture(scope="module")
def whole() -> EncoderWorker:
    return worker_of(32_768)


@pytest.fixture
def split() -> EncoderWorker:
    return worker_of(2 * STEP_PATCHES)


def frames(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (count, 64, 96, 3), np.uint8)


def encode(worker: EncoderWorker, array: np.ndarray) -> torch.Tensor:
    request = picture(array)
    results = worker.step(StepInput((("r", request),)))
    while worker.busy:
        results += worker.step(StepInput())
    ((_, output),) = results
    return features(request, output)


@pytest.mark.parametrize("pairs", [2, 3, 5])
def test_the_parts_of_a_video_give_what_the_whole_gives(
    whole: EncoderWorker, split: EncoderWorker, pairs: int
) -> None:
    video = frames(2 * pairs)
    assert_close(encode(split, video), encode(whole, video), TOLERANCE)
    counters = split.counters()
    assert counters["batches"] == -(-pairs // 2)
    assert (counters["images"], counters["patches"]) == (1, pairs * STEP_PATCHES)


def test_an_image_beyond_the_budget_is_encoded_alone(whole: EncoderWorker) -> None:
    image = frames(1)
    worker = worker_of(STEP_PATCHES // 2)
    assert_close(encode(worker, image), encode(whole, image), TOLERANCE)
    assert worker.counters()["batches"] == 1


def test_a_picture_that_arrives_during_a_long_video_waits_for_one_pass(
    split: EncoderWorker,
) -> None:
    video, small = picture(frames(40)), picture(frames(1))
    assert split.step(StepInput((("video", video),))) == []
    results = split.step(StepInput((("small", small),)))
    assert [name for name, _ in results] == ["small"]
    assert split.busy
    assert split.counters()["waiting"] == 1


def test_a_cancelled_video_stops_between_its_passes(split: EncoderWorker) -> None:
    split.step(StepInput((("video", picture(frames(40))),)))
    assert split.busy
    assert split.step(StepInput(cancellations=("video",))) == []
    assert not split.busy
    assert split.counters()["batches"] == 1


def test_a_video_whose_pixels_are_gone_between_two_passes_fails_alone(
    split: EncoderWorker,
) -> None:
    video, small = picture(frames(40)), picture(frames(1))
    split.step(StepInput((("video", video),)))
    video.pixels.path = "/proc/self/fd/nothing"
    split.step(StepInput((("small", small),)))
    ((name, error),) = split.step(StepInput())
    assert name == "video"
    assert isinstance(error, EngineFailed)
    assert not split.busy
