"""The image engine: batches, cancellations, errors, and whole images of the released model."""

import asyncio
from collections import defaultdict
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sglang_omni.engines.image.contract import (
    DrawnImage,
    DrawProgress,
    DrawRequest,
    ImageSettings,
)
from sglang_omni.engines.image.worker import ImageWorker
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.runtime.shared_count import SharedCount
from sglang_omni.engines.runtime.worker import StepInput
from sglang_omni.models.image import ImageInput
from sglang_omni.models.ming.image.model import MingImageModel, load_image_model
from sglang_omni.protocol.errors import ConfigError, InvalidRequest
from tests.testing.golden import Case, file_of, load_case, require_case

CASES = ("t2i_plain", "t2i_glyph", "edit")


@pytest.fixture(scope="session")
def checkpoint() -> Path:
    return file_of("image/tiny_image_checkpoint")


@pytest.fixture(scope="session")
def model(checkpoint: Path) -> MingImageModel:
    return load_image_model(checkpoint, "cpu", "float32")


@pytest.fixture
def worker(checkpoint: Path, model: MingImageModel) -> ImageWorker:
    return ImageWorker(model, ImageSettings(checkpoint, max_images=3, max_batch_size=2))


def load(name: str) -> Case:
    require_case(f"image/e2e/{name}")
    return load_case(f"image/e2e/{name}")


def draw_request(states: np.ndarray, prompt: str, **fields: object) -> DrawRequest:
    shared = SharedArray()
    layout = shared.write(states)
    return DrawRequest(shared, layout, prompt, SharedArray(), **fields)  # type: ignore[arg-type]


def golden_request(case: Case) -> DrawRequest:
    info = case.info
    fields = {key: info[key] for key in ("steps", "seed")}
    fields |= {"guidance": info["cfg"], "resolution": info["highres"]}
    if case.name.endswith("edit"):
        pixels = np.array(Image.open(file_of(f"{case.name}/source.png")).convert("RGB"))
        reference = SharedArray()
        fields |= {"reference_layout": reference.write(pixels), "reference": reference}
    else:
        fields["size"] = tuple(info["requested_hw"])
    return draw_request(case["query_hidden"][0].numpy(), info["prompt"], **fields)


def small_request(**fields: object) -> DrawRequest:
    states = np.random.default_rng(0).standard_normal((16, 192), np.float32)
    chosen = {"size": (256, 1024), "resolution": 512, "steps": 4, "seed": 0, **fields}
    return draw_request(states, "a cat", **chosen)


def check_image(case: Case, request: DrawRequest, drawn: DrawnImage) -> None:
    expected = np.array(Image.open(file_of(f"{case.name}/output.png")).convert("RGB")).astype(int)
    image = request.pixels.read(drawn.layout)
    assert list(image.shape[:2]) == case.info["output_hw"]
    difference = np.abs(image - expected)
    assert difference.max() <= 2
    assert difference.mean() <= 0.05


def run(worker: ImageWorker, requests: dict[str, DrawRequest]) -> dict[str, list[object]]:
    results: dict[str, list[object]] = defaultdict(list)
    work = StepInput(arrivals=tuple(requests.items()))
    while work.arrivals or worker.busy:
        for name, result in worker.step(work):
            results[name].append(result)
        work = StepInput()
    return results


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", CASES)
async def test_an_engine_process_draws_the_released_models_images(
    name: str, engine: EngineProcess
) -> None:
    case = load(name)
    request = golden_request(case)
    *progress, drawn = [output async for output in engine.submit(request)]
    num_steps = case.info["steps"] - 1
    assert progress == [DrawProgress(step + 1, num_steps) for step in range(num_steps)]
    check_image(case, request, drawn)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_client_that_leaves_frees_the_engine(engine: EngineProcess) -> None:
    before = engine.health.counters["aborted"]
    async with aclosing(engine.submit(small_request(steps=1000))) as outputs:
        assert await anext(outputs) == DrawProgress(1, 999)
    async with asyncio.timeout(30):
        while engine.health.counters["aborted"] == before:
            await asyncio.sleep(0.05)
    assert engine.health.counters["running"] == 0


def test_images_of_one_kind_share_steps(worker: ImageWorker) -> None:
    requests = {str(seed): small_request(seed=seed) for seed in range(2)}
    results = run(worker, requests)
    assert worker.counters()["steps"] == 3
    assert worker.counters()["image_steps"] == 6
    alone = small_request(seed=1)
    (*_, drawn) = run(worker, {"alone": alone})["alone"]
    assert isinstance(drawn, DrawnImage)
    shared = results["1"][-1]
    assert isinstance(shared, DrawnImage)
    difference = requests["1"].pixels.read(shared.layout).astype(int) - alone.pixels.read(
        drawn.layout
    )
    assert np.abs(difference).max() <= 1


def test_previews_come_evenly_spaced_and_approach_the_image(worker: ImageWorker) -> None:
    request = replace(small_request(steps=9), previews=(SharedArray(), SharedArray()))
    *progress, drawn = run(worker, {"1": request})["1"]
    assert isinstance(drawn, DrawnImage)
    image = request.pixels.read(drawn.layout).astype(int)
    errors = {}
    for output in progress:
        assert isinstance(output, DrawProgress)
        if output.preview is not None:
            index, layout = output.preview
            preview = request.previews[index].read(layout)
            assert preview.shape == image.shape
            errors[output.step] = np.abs(preview - image).mean()
    assert list(errors) == [2, 5]
    assert errors[5] < errors[2]


@pytest.mark.parametrize(("steps", "due"), [(1, []), (2, [1]), (4, [1, 2, 3]), (28, [7, 14, 21])])
def test_few_steps_have_few_previews(steps: int, due: list[int]) -> None:
    request = replace(small_request(), previews=tuple(SharedArray() for _ in range(3)))
    found = [step for step in range(1, steps + 1) if request.find_preview(step, steps) is not None]
    assert found == due


def test_a_preview_that_nobody_waits_for_does_not_harm_the_engine(worker: ImageWorker) -> None:
    request = replace(small_request(steps=5), previews=(SharedArray(),))
    object.__setattr__(request.previews[0], "path", "/proc/self/fd/99999")
    *progress, drawn = run(worker, {"1": request})["1"]
    assert isinstance(drawn, DrawnImage)
    assert progress == [DrawProgress(step + 1, 4) for step in range(4)]


def test_images_of_other_kinds_take_turns(worker: ImageWorker) -> None:
    requests = {"wide": small_request(), "tall": small_request(size=(1024, 256))}
    worker.step(StepInput(arrivals=tuple(requests.items())))
    (second,) = worker.step(StepInput())
    assert second == ("tall", DrawProgress(1, 3))


def test_a_cancelled_image_takes_no_further_step(worker: ImageWorker) -> None:
    worker.step(StepInput(arrivals=(("1", small_request()), ("2", small_request(seed=2)))))
    results = worker.step(StepInput(cancellations=("1",)))
    assert [name for name, _ in results] == ["2"]
    worker.step(StepInput(cancellations=("2",)))
    assert not worker.busy
    assert worker.counters()["aborted"] == 2
    assert worker.counters()["running"] == 0


def test_a_request_beyond_the_maximum_waits(worker: ImageWorker) -> None:
    requests = {str(seed): small_request(seed=seed) for seed in range(5)}
    worker.step(StepInput(arrivals=tuple(requests.items())))
    assert worker.counters()["running"] == 3
    assert worker.counters()["waiting"] == 2
    run(worker, {})
    assert worker.counters()["finished"] == 5


def test_images_give_way_while_answers_wait(checkpoint: Path, model: MingImageModel) -> None:
    waiting = SharedCount()
    settings = ImageSettings(checkpoint, waiting=waiting, rest=3.0)
    worker = ImageWorker(model, settings)
    run(worker, {"1": small_request()})
    assert worker.counters()["rested_seconds"] < 0.01
    waiting.add(1)
    run(worker, {"2": small_request()})
    counters = worker.counters()
    # The first of the three steps follows nothing.
    assert counters["rested_seconds"] > counters["busy_seconds"] / 2 * 3 * 0.5


def test_a_stalled_image_is_passed_over(worker: ImageWorker) -> None:
    worker.step(StepInput(arrivals=(("1", small_request()),)))
    assert worker.step(StepInput(stalled=frozenset({"1"}))) == []
    assert not worker.busy
    assert worker.step(StepInput()) == [("1", DrawProgress(2, 3))]


@pytest.mark.parametrize(
    ("fields", "param"),
    [({"steps": 0}, "steps"), ({"size": (100, 1000)}, "size"), ({"aspect": -1.0}, "aspect_ratio")],
)
def test_an_image_that_cannot_be_drawn_is_refused(
    worker: ImageWorker, fields: dict[str, object], param: str
) -> None:
    ((_, error),) = worker.step(StepInput(arrivals=(("1", small_request(**fields)),)))
    assert isinstance(error, InvalidRequest)
    assert error.param == param
    assert worker.counters()["request_errors"] == 1


def test_bfloat16_states_are_read_as_bits(worker: ImageWorker) -> None:
    request = small_request()
    states = torch.from_numpy(request.states.read(request.states_layout).copy()).bfloat16()
    size = (256, 1024)
    bits = draw_request(
        states.view(torch.uint16).numpy(),
        "a cat",
        size=size,
        resolution=512,
        steps=2,
        seed=0,
    )
    rounded = draw_request(
        states.float().numpy(), "a cat", size=size, resolution=512, steps=2, seed=0
    )
    results = run(worker, {"bits": bits, "rounded": rounded})
    images = [
        request.pixels.read(results[name][-1].layout)  # type: ignore[attr-defined]
        for name, request in (("bits", bits), ("rounded", rounded))
    ]
    assert np.abs(images[0].astype(int) - images[1]).max() <= 1


def test_guidance_leads_away_from_the_negative_prompt(worker: ImageWorker) -> None:
    """Away from its own prompt it leads nowhere: the image is that without guidance."""
    plain = small_request(guidance=0.0)
    guided = small_request(guidance=3.0)
    own = replace(guided, negative_states=guided.states, negative_layout=guided.states_layout)
    own = replace(own, pixels=SharedArray())
    other_states = SharedArray()
    layout = other_states.write(np.random.default_rng(1).standard_normal((16, 192), np.float32))
    other = replace(
        guided, pixels=SharedArray(), negative_states=other_states, negative_layout=layout
    )
    requests = {"plain": plain, "guided": guided, "own": own, "other": other}
    results = run(worker, requests)
    images = {}
    for name, request in requests.items():
        drawn = results[name][-1]
        assert isinstance(drawn, DrawnImage)
        images[name] = request.pixels.read(drawn.layout).astype(int)
    assert np.abs(images["own"] - images["plain"]).max() <= 1
    for name in ("plain", "other"):
        assert np.abs(images["guided"] - images[name]).mean() > 0.1


def test_text_to_show_leaves_the_rest_of_the_negative_rows_empty(model: MingImageModel) -> None:
    states = np.random.default_rng(0).standard_normal((16, 192), np.float32)
    chosen = ImageInput(
        states, 'a sign that says "Ming"', (256, 1024), None, 512, 2, 2.0, 0, negative_states=states
    )
    rows = model._compute_rows(chosen)
    negative = model._compute_negative_rows(chosen, rows)
    assert negative.shape == rows.shape
    assert len(rows) > 16
    assert torch.equal(negative[:16], rows[:16])
    assert not negative[16:].any()
    without = replace(chosen, negative_states=None)
    assert not model._compute_negative_rows(without, rows).any()


def test_negative_states_of_another_shape_are_refused(worker: ImageWorker) -> None:
    request = small_request()
    memory = SharedArray()
    layout = memory.write(np.zeros((15, 192), np.float32))
    request = replace(request, negative_states=memory, negative_layout=layout)
    ((_, error),) = worker.step(StepInput(arrivals=(("1", request),)))
    assert isinstance(error, InvalidRequest)
    assert "query states must have the shape [16, 192]" in error.message


def test_another_dtype_is_refused(checkpoint: Path) -> None:
    with pytest.raises(ConfigError, match="float16"):
        load_image_model(checkpoint, "cpu", "float16")
