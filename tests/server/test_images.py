"""Images through a running server: the client library, cancellation, a killed engine, metrics."""

import base64
import io
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from openai.types.responses.response_output_item import ImageGenerationCall
from PIL import Image

from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.cli.server_connection import iter_objects
from sglang_omni.models.ming.tiny import write_tiny_checkpoint
from tests.server.running import (
    RunningServer,
    call,
    run_server,
    serve_options,
    wait_until,
)
from tests.testing.golden import TINY, Case, file_of, load_case, require_case
from tests.testing.machine import PATIENCE
from tests.testing.pixel_tolerance import PixelTolerance, get_pixel_tolerance

# Each starts servers of its own.
pytestmark = pytest.mark.extended

SMALL = {"size": "1024x256", "resolution": 512, "steps": 4}
# The most that a request can ask for: on the fastest card they last for seconds.
MANY_STEPS = 1000


def serve(checkpoint: Path, *options: str, min_replicas: int = 1) -> Any:
    command = ("-m", "sglang_omni", "serve", "--version", "v1", "--model-path", str(checkpoint))
    minimum = ("--image.min_replicas", str(min_replicas))
    return run_server(*command, *options, *minimum, *serve_options(), ready="/ready")


@pytest.fixture(scope="module")
def drawing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_tiny_checkpoint(folder)
    options = ("--served-model-name", "tiny", "--image.max_steps", str(MANY_STEPS))
    with serve(folder, *options) as running:
        yield running


@pytest.fixture(scope="module")
def client(drawing: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=drawing.api, api_key="none", max_retries=0, timeout=120) as client:
        yield client


def draw(server: RunningServer, **fields: Any) -> dict[str, Any]:
    body = {"prompt": "a mill by the river", **SMALL, **fields}
    reply = httpx.post(f"{server.api}/images/generations", json=body, timeout=120)
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def to_pixels(content: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB")).astype(int)


def pixels_of(answer: dict[str, Any]) -> list[np.ndarray]:
    return [to_pixels(item["b64_json"]) for item in answer["data"]]


def same_image(server: RunningServer) -> PixelTolerance:
    """How far two drawings of one image by the server may be apart."""
    return get_pixel_tolerance(server.engine("image")["info"]["dtype"])


def is_another_image(difference: np.ndarray, rounding: np.ndarray) -> bool:
    """Whether a difference is more than that of two drawings of one image."""
    return bool(np.abs(difference).mean() > max(0.5, 1.25 * np.abs(rounding).mean()))


@contextmanager
def drawing_in_progress(server: RunningServer, steps: int) -> Iterator[Iterator[dict[str, Any]]]:
    """Begin an image, and yield its further events when it has done a step.

    At the end of the body the client leaves.
    """
    body = {"prompt": "a mill", **SMALL, "steps": steps, "stream": True, "progress": True}
    url = f"{server.api}/images/generations"
    with httpx.stream("POST", url, json=body, timeout=120) as response:
        events = iter_objects(response)
        assert next(events)["type"] == "image_generation.progress"
        yield events


def is_image_engine_idle(server: RunningServer) -> bool:
    counters = server.engine("image")["counters"]
    return all(counters[name] == 0 for name in ("running", "waiting", "admitted"))


def test_a_seed_draws_the_same_image_alone_and_among_others(drawing: RunningServer) -> None:
    together = draw(drawing, n=3, seed=5)
    images = pixels_of(together)
    assert [item["seed"] for item in together["data"]] == [5, 6, 7]
    assert images[0].shape == (256, 1024, 3)
    assert together["size"] == "1024x256"
    assert together["usage"]["output_tokens"] == 3 * 1024
    (alone,) = pixels_of(draw(drawing, seed=6))
    assert same_image(drawing).accepts(alone - images[1])
    assert np.abs(images[0] - images[1]).mean() > 5
    (other,) = pixels_of(draw(drawing, seed=6, prompt="a red house"))
    assert is_another_image(alone - other, alone - images[1])


def test_images_give_way_to_the_first_audio_of_speech(drawing: RunningServer) -> None:
    speech = {"input": "Good morning.", "response_format": "wav"}
    before = drawing.engine("image")["counters"]["rested_seconds"]
    with drawing_in_progress(drawing, MANY_STEPS) as events:
        # What waited meanwhile shows with the engine's next report of its counters.
        def has_rested() -> bool:
            reply = httpx.post(f"{drawing.api}/audio/speech", json=speech, timeout=120)
            assert reply.status_code == 200, reply.text
            return bool(drawing.engine("image")["counters"]["rested_seconds"] > before)

        wait_until(has_rested, 60 * PATIENCE, "a rest")
        assert next(events)["type"] == "image_generation.progress"
    wait_until(lambda: is_image_engine_idle(drawing), 30 * PATIENCE, "the engine is idle")
    rested = drawing.engine("image")["counters"]["rested_seconds"]
    draw(drawing)
    assert drawing.engine("image")["counters"]["rested_seconds"] == rested


def test_a_response_draws_and_its_image_is_changed_in_the_next_one(
    drawing: RunningServer, client: openai.OpenAI
) -> None:
    tool: Any = {"type": "image_generation", "output_format": "webp", **SMALL, "seed": 6}
    forced: Any = {"tools": [tool], "tool_choice": {"type": "image_generation"}}
    first = client.responses.create(model="tiny", input="a mill by the river", **forced)
    (drawn,) = first.output
    assert isinstance(drawn, ImageGenerationCall)
    assert drawn.result is not None
    image = Image.open(io.BytesIO(base64.b64decode(drawn.result)))
    assert (image.format, image.size) == ("WEBP", (1024, 256))
    events = client.responses.create(
        model="tiny",
        input="make it winter",
        previous_response_id=first.id,
        stream=True,
        **{**forced, "tools": [{**tool, "partial_images": 2}]},
    )
    found = {event.type: event for event in events}
    assert "response.image_generation_call.partial_image" in found
    completed = found["response.completed"]
    assert completed.type == "response.completed"
    (changed,) = completed.response.output
    assert isinstance(changed, ImageGenerationCall)
    assert changed.id != drawn.id
    assert changed.result not in (None, drawn.result)
    usage = completed.response.usage
    assert usage is not None
    assert usage.output_tokens == 1024
    # The prompt has the image that is changed.
    assert first.usage is not None
    assert usage.input_tokens > 2 * first.usage.input_tokens


def test_guidance_leads_away_from_a_negative_prompt(drawing: RunningServer) -> None:
    (plain,) = pixels_of(draw(drawing, seed=6, cfg=0))
    own = draw(drawing, seed=6, cfg=4, negative_prompt="a mill by the river")
    # The same prompt twice: there is nothing to lead away from.
    rounding = pixels_of(own)[0] - plain
    assert same_image(drawing).accepts(rounding)
    one = draw(drawing, seed=6, cfg=4)
    other = draw(drawing, seed=6, cfg=4, negative_prompt="a red house")
    assert is_another_image(pixels_of(one)[0] - pixels_of(other)[0], rounding)
    assert other["usage"]["input_tokens"] > one["usage"]["input_tokens"]


def test_the_draw_command_writes_what_the_server_draws(
    drawing: RunningServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mill.png"
    options = ("--size", "1024x256", "--steps", "4", "--seed", "6", "--base-url", drawing.url)
    assert main(["draw", "a mill by the river", "-o", str(path), *options]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"wrote {path}: 1024x256, seed 6\n"
    assert "3/3" in printed.err
    (again,) = pixels_of(draw(drawing, seed=6))
    assert same_image(drawing).accepts(np.asarray(Image.open(path)).astype(int) - again)
    edited = tmp_path / "edited.png"
    edit = ("draw", "make it blue", "-o", str(edited), "--edit", str(path), *options)
    assert main(list(edit)) == 0
    assert Image.open(edited).size == (1024, 256)


def test_openais_client_draws_streams_and_edits(
    drawing: RunningServer, client: openai.OpenAI
) -> None:
    extra = {"resolution": 512, "steps": 4, "seed": 1}
    # The client's types know OpenAI's sizes only.
    wide = {**extra, "size": "1024x256"}
    answer = client.images.generate(
        model="gpt-image-1", prompt='a sign that says "Ming"', extra_body=wide
    )
    assert answer.data is not None
    assert answer.data[0].b64_json is not None
    whole = to_pixels(answer.data[0].b64_json)
    events = list(
        client.images.generate(
            model="gpt-image-1",
            prompt='a sign that says "Ming"',
            stream=True,
            partial_images=2,
            extra_body=wide,
        )
    )
    assert [event.type for event in events] == [
        "image_generation.partial_image",
        "image_generation.partial_image",
        "image_generation.completed",
    ]
    first, second, last = (to_pixels(event.b64_json) for event in events)
    assert same_image(drawing).accepts(last - whole)
    assert np.abs(second - last).mean() < np.abs(first - last).mean()
    buffer = io.BytesIO()
    Image.fromarray(whole.astype(np.uint8)).save(buffer, "PNG")
    edited = client.images.edit(
        model="gpt-image-1",
        image=("sign.png", buffer.getvalue()),
        prompt="make it blue",
        extra_body=extra,
    )
    assert edited.data is not None
    assert edited.data[0].b64_json is not None
    assert to_pixels(edited.data[0].b64_json).shape == whole.shape
    assert edited.usage is not None
    assert edited.usage.input_tokens_details.image_tokens > 0


def test_an_image_of_a_chat_is_changed_and_asked_about(client: openai.OpenAI) -> None:
    question: Any = {"role": "user", "content": "a mill by the river"}
    image = {"size": "1024x256", "resolution": 512, "steps": 4, "seed": 3}
    chat: dict[str, Any] = {"model": "tiny", "max_tokens": 4, "extra_body": {"image": image}}
    both: Any = ["text", "image"]
    image_only: Any = ["image"]
    answer = client.chat.completions.create(messages=[question], modalities=both, **chat)
    message: Any = answer.choices[0].message
    drawn = to_pixels(message.images[0]["image_url"]["url"].partition(",")[2])
    assert drawn.shape == (256, 1024, 3)
    assert answer.usage is not None
    assert answer.usage.completion_tokens >= 1024
    alone: Any = client.chat.completions.create(messages=[question], modalities=image_only, **chat)
    again = to_pixels(alone.choices[0].message.images[0]["image_url"]["url"].partition(",")[2])
    assert np.abs(drawn - again).max() <= 1
    talk = [question, message, {"role": "user", "content": "in winter"}]
    edit: Any = client.chat.completions.create(messages=talk, modalities=image_only, **chat)
    assert edit.usage.prompt_tokens_details.image_tokens > 0
    told = client.chat.completions.create(model="tiny", max_tokens=4, messages=talk)
    assert told.usage is not None
    assert told.usage.prompt_tokens_details is not None
    assert told.usage.prompt_tokens_details.model_extra is not None
    assert told.usage.prompt_tokens_details.model_extra["image_tokens"] > 0


def test_health_metrics_models_and_timeline_know_the_engine(drawing: RunningServer) -> None:
    draw(drawing)
    assert drawing.engine("image")["state"] == "ready"
    metrics = httpx.get(f"{drawing.url}/metrics").text
    assert 'sgl_omni_engine_up{engine="image",node="",replica="0"} 1.0' in metrics
    assert 'sgl_omni_engine_finished_total{engine="image",node="",replica="0"}' in metrics
    assert 'sgl_omni_stage_duration_seconds_count{stage="image"}' in metrics
    card = httpx.get(f"{drawing.api}/models").json()["data"][0]
    assert card["capabilities"]["image_output"] is True
    body = {"prompt": "a mill", **SMALL}
    reply = httpx.post(f"{drawing.api}/images/generations", json=body, timeout=120)
    timeline = httpx.get(f"{drawing.api}/requests/{reply.headers['x-request-id']}").json()
    names = [stage["name"] for stage in timeline["stages"]]
    assert names == ["preprocess", "thinker_queue", "thinker", "image_queue", "image", "encode"]
    assert wait_until(lambda: is_image_engine_idle(drawing), 5, "image engine idle") < 5


def test_a_client_that_leaves_frees_the_engine(drawing: RunningServer) -> None:
    def count(name: str) -> int:
        return int(drawing.engine("image")["counters"][name])

    aborted = count("aborted")
    with drawing_in_progress(drawing, MANY_STEPS):
        # The engine's own counters follow within a moment; the server's know of a request at once.
        wait_until(lambda: count("running") == 1, 30 * PATIENCE, "an image at work")
    wait_until(lambda: count("aborted") == aborted + 1, 5 * PATIENCE, "an aborted image")
    wait_until(lambda: is_image_engine_idle(drawing), 5 * PATIENCE, "image engine idle")


def test_text_goes_on_while_images_are_drawn(drawing: RunningServer, client: openai.OpenAI) -> None:
    body = {"prompt": "a mill", **SMALL, "steps": 30}
    made, thread = call(f"{drawing.api}/images/generations", body)
    answer = client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": "Hello"}], max_tokens=4
    )
    assert answer.choices[0].finish_reason in ("length", "stop")
    thread.join()
    assert made.status == 200, made.text


def test_a_killed_engine_fails_its_requests_and_comes_back(
    drawing: RunningServer, client: openai.OpenAI
) -> None:
    restarts = drawing.engine("image")["restarts"]
    body = {"prompt": "a mill", **SMALL, "steps": MANY_STEPS}
    made, thread = call(f"{drawing.api}/images/generations", body)
    wait_until(lambda: not is_image_engine_idle(drawing), 30, "an image in progress")
    killed_at = time.monotonic()
    os.kill(drawing.engine("image")["pid"], signal.SIGKILL)
    thread.join()
    assert made.failed_visibly, made.text
    assert made.ended_at - killed_at < 5 * PATIENCE
    answer = client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": "Hello"}], max_tokens=4
    )
    assert answer.choices[0].finish_reason in ("length", "stop")
    is_back = lambda: drawing.engine("image")["state"] == "ready"  # noqa: E731
    wait_until(is_back, 120 * PATIENCE, "image engine back")
    assert drawing.engine("image")["restarts"] == restarts + 1
    assert len(pixels_of(draw(drawing))) == 1


def test_a_full_queue_answers_429(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "tiny")
    limits = ("--image.max_images", "1", "--admission.queue_length", "1")
    steps = ("--image.max_steps", str(MANY_STEPS))
    with serve(tmp_path / "tiny", *limits, *steps) as server:
        body = {"prompt": "a mill", **SMALL}
        url = f"{server.api}/images/generations"
        with drawing_in_progress(server, MANY_STEPS):
            waiting, thread = call(url, body)
            queued = lambda: server.engine("image")["counters"]["queued"] == 1  # noqa: E731
            wait_until(queued, 30 * PATIENCE, "a request in the queue")
            assert [httpx.post(url, json=body).status_code for _ in range(2)] == [429, 429]
        thread.join()
        assert waiting.status == 200, waiting.text


def test_without_a_minimum_the_engine_starts_with_the_first_image(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "tiny")
    with serve(tmp_path / "tiny", min_replicas=0) as server:
        image = server.engine("image")
        assert (image["state"], image["pid"], server.ready_status()) == ("standby", None, 200)
        body = {"prompt": "a mill", **SMALL}
        url = f"{server.api}/images/generations"
        calls = [call(url, body, {"X-Request-Id": name}) for name in ("first", "second")]
        for reply, thread in calls:
            thread.join()
            assert reply.status == 200, reply.text
        image = server.engine("image")
        assert (image["state"], image["restarts"]) == ("ready", 0)
        timeline = httpx.get(f"{server.api}/requests/first").json()
        assert "image_start" in [stage["name"] for stage in timeline["stages"]]


def test_images_are_finished_before_a_shutdown(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "tiny")
    with serve(tmp_path / "tiny") as server:
        with drawing_in_progress(server, 100) as events:
            os.kill(server.pid, signal.SIGTERM)
            *_, last = events
        assert last["type"] == "image_generation.completed"


@pytest.fixture(scope="module")
def golden_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The released model's tiny checkpoint with its image folders; prompts come in chunks."""
    images, folder = file_of("image/tiny_image_checkpoint"), tmp_path_factory.mktemp("golden")
    for source in (*TINY.iterdir(), *(path for path in images.iterdir() if path.is_dir())):
        (folder / source.name).symlink_to(source)
    with serve(folder, "--thinker.server_args", "{chunked_prefill_size: 16}") as running:
        yield running


def load(name: str) -> Case:
    require_case(f"image/e2e/{name}")
    return load_case(f"image/e2e/{name}")


@pytest.mark.parametrize("name", ["t2i_plain", "t2i_glyph"])
def test_the_released_models_images_come_out_of_the_server(
    name: str, golden_server: RunningServer
) -> None:
    case = load(name)
    height, width = case.info["requested_hw"]
    fields = {"seed": case.info["seed"], "steps": case.info["steps"], "cfg": case.info["cfg"]}
    expected = np.asarray(Image.open(file_of(f"{case.name}/output.png")).convert("RGB")).astype(int)
    results: list[np.ndarray] = []

    def draw_golden() -> None:
        answer = draw(
            golden_server,
            prompt=case.info["text"],
            size=f"{width}x{height}",
            resolution=case.info["highres"],
            **fields,
        )
        results.extend(pixels_of(answer))

    # The second of them finds its prompt in the radix cache; both share steps.
    threads = [threading.Thread(target=draw_golden) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    # One level of the released image's own rounding, and one of ours.
    dtype = golden_server.engine("image")["info"]["dtype"]
    tolerance = get_pixel_tolerance(dtype, rounding=2)
    for image in results:
        gap = abs(image - expected)
        assert tolerance.accepts(gap)
        if dtype == "float32":
            assert gap.max() <= 1
            assert (gap > 0).mean() <= 0.001
