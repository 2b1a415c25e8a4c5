"""The bundled model draws and edits what it was asked for, on every way that draws."""

import base64
import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cookbook.ming_mini_2.image.evaluate import ImageClient
from cookbook.ming_mini_2.image.examples import SHOWN_PROMPTS, TASKS, Task
from cookbook.ming_mini_2.image.held_out import held_out_examples
from cookbook.ming_mini_2.image.judge import find_shapes
from sglang_omni.entrypoints.cli.main import main
from tests.server.running import HTTP, RunningServer
from tests.testing.machine import PATIENCE

# How many held-out examples are tried with seed 1, and how many must be right. The evaluation of
# the recipe asks for 70 % of a hundred.
TRIED: dict[Task, int] = {"draw": 8, "edit": 10}
FEWEST_RIGHT: dict[Task, int] = {"draw": 6, "edit": 7}
TIMEOUT_S = 120 * PATIENCE
# What the first of SHOWN_PROMPTS asks for.
SHOWN = {("red", "circle"): 1, ("blue", "square"): 2}


def shapes_in(pixels: np.ndarray) -> Counter[tuple[str, str]]:
    return Counter((one.colour, one.shape) for one in find_shapes(pixels))


def pixels_of(url: str) -> np.ndarray:
    """The pixels of a picture as base64, or as a data URI."""
    content = base64.b64decode(url.rpartition(",")[2])
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def chat(server: RunningServer, **fields: Any) -> dict[str, Any]:
    body = {"model": "ming-omni", "temperature": 0, "seed": 1, **fields}
    reply = HTTP.post(f"{server.api}/chat/completions", json=body, timeout=TIMEOUT_S)
    assert reply.status_code == 200, reply.text
    message: dict[str, Any] = reply.json()["choices"][0]["message"]
    return message


def test_it_says_that_it_draws(default_server: RunningServer) -> None:
    card, *_ = HTTP.get(f"{default_server.api}/models").json()["data"]
    assert card["capabilities"]["image_output"] is True
    # It starts with the first image, and does not keep the server from being ready.
    assert default_server.engine("image")["autoscaled"] is True
    assert default_server.ready_status() == 200


@pytest.mark.parametrize("task", TASKS)
def test_held_out_pictures_are_right(default_server: RunningServer, task: Task) -> None:
    client = ImageClient(default_server.url, seed=1, steps=None)
    judged = [client.draw(one).judged for one in held_out_examples(task, TRIED[task])]
    wrong = [(one.example.text, *one.verdict.problems) for one in judged if not one.verdict.right]
    assert TRIED[task] - len(wrong) >= FEWEST_RIGHT[task], wrong


def test_the_command_draws_and_edits(default_server: RunningServer, tmp_path: Path) -> None:
    prompt, instruction = SHOWN_PROMPTS
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    common = ("--seed", "1", "--base-url", default_server.url)
    assert main(["draw", prompt, "-o", str(first), *common]) == 0
    assert shapes_in(np.asarray(Image.open(first).convert("RGB"))) == SHOWN
    assert main(["draw", instruction, "-o", str(second), "--edit", str(first), *common]) == 0
    edited = shapes_in(np.asarray(Image.open(second).convert("RGB")))
    assert edited == {("green", "circle"): 1, ("blue", "square"): 2}


def test_a_picture_of_a_chat_is_asked_about_in_the_next_turn(default_server: RunningServer) -> None:
    question = {"role": "user", "content": "A green star."}
    drawn = chat(default_server, messages=[question], modalities=["image"])
    [image] = drawn["images"]
    assert shapes_in(pixels_of(image["image_url"]["url"])) == {("green", "star"): 1}
    about = {"role": "user", "content": "What is in the picture?"}
    answer = chat(default_server, messages=[question, drawn, about])["content"]
    assert "green star" in answer


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        pytest.param(
            "auto",
            marks=pytest.mark.xfail(
                strict=True, reason="the thinker gives the tool a wrong prompt: docs/limits.md"
            ),
        ),
    ],
)
def test_a_response_draws_by_the_tool(default_server: RunningServer, choice: str) -> None:
    body = {
        "model": "ming-omni",
        "input": "Draw a red circle.",
        "tools": [{"type": "image_generation"}],
        "tool_choice": choice,
        "temperature": 0,
    }
    reply = HTTP.post(f"{default_server.api}/responses", json=body, timeout=TIMEOUT_S)
    [image] = [one for one in reply.json()["output"] if one["type"] == "image_generation_call"]
    assert ("red", "circle") in shapes_in(pixels_of(image["result"]))
