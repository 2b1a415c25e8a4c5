"""`sgl-omni draw` against a real server that draws images of one colour."""

import asyncio
import io
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.pipeline.image_request import (
    CompletedImage,
    ImageEvent,
    ImageRequest,
    ImageStep,
    ImageUsage,
)
from sglang_omni.protocol.errors import EngineFailed
from tests.entrypoints.http.fake import DrawingBackend, Served, serving
from tests.entrypoints.http.middleware.test_auth import KEY, keys
from tests.testing.family import CAPABILITIES
from tests.testing.image_requests import list_texts

Draw = Callable[..., tuple[int, str, str]]


@pytest.fixture
def server(drawing_server: Served) -> Served:
    return drawing_server


@pytest.fixture
def draw(server: Served, capsys: pytest.CaptureFixture[str]) -> Draw:
    """Runs the command; returns its status, output and errors."""

    def run(*arguments: object, url: str | None = None) -> tuple[int, str, str]:
        status = main(["draw", "--base-url", url or server.url, *map(str, arguments)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def asked(server: Served) -> ImageRequest:
    (request,) = server.backend.requests
    assert isinstance(request, ImageRequest)
    return request


def colour(path: Path) -> int:
    """The one level of an image of one colour."""
    values = np.asarray(Image.open(path).convert("RGB"))
    assert np.ptp(values) == 0
    return int(values[0, 0, 0])


def test_an_image_is_written_and_its_seed_told(server: Served, draw: Draw, tmp_path: Path) -> None:
    path = tmp_path / "mill.png"
    status, output, error = draw("a mill", "-o", path, "--seed", 7)
    assert (status, output) == (0, f"wrote {path}: 4x2, seed 7\n")
    assert "1/1" in error
    assert colour(path) == 7
    request = asked(server)
    assert (list_texts(request), request.seeds, request.media) == (["a mill"], (7,), ())
    assert (request.steps, request.size) == (30, None)


def test_options_are_sent(server: Served, draw: Draw, tmp_path: Path) -> None:
    options = ("--size", "1024x512", "--steps", 9, "--seed", 3, "--negative", "snow")
    assert draw("a mill", "-o", tmp_path / "mill.png", *options)[0] == 0
    request = asked(server)
    assert (request.size, request.steps, request.seeds) == ((512, 1024), 9, (3,))
    assert request.negative_prompt == "snow"


def test_several_images_have_numbered_files(server: Served, draw: Draw, tmp_path: Path) -> None:
    status, output, error = draw("a mill", "-o", tmp_path / "mill.webp", "--count", 3, "--seed", 40)
    assert status == 0
    paths = [tmp_path / f"mill-{number}.webp" for number in (1, 2, 3)]
    assert sorted(tmp_path.iterdir()) == paths
    assert [Image.open(path).format for path in paths] == ["WEBP"] * 3
    assert output.splitlines()[2] == f"wrote {paths[2]}: 4x2, seed 42"
    assert "3/3" in error


@pytest.mark.parametrize(
    ("name", "kind"), [("a.jpg", "JPEG"), ("a.JPEG", "JPEG"), ("a.png", "PNG")]
)
def test_the_name_says_the_type(draw: Draw, tmp_path: Path, name: str, kind: str) -> None:
    assert draw("a mill", "-o", tmp_path / name)[0] == 0
    assert Image.open(tmp_path / name).format == kind


def test_an_image_is_edited(server: Served, draw: Draw, tmp_path: Path) -> None:
    sources = []
    for number in range(2):
        buffer = io.BytesIO()
        Image.new("RGB", (4, 4), (number, 0, 0)).save(buffer, "PNG")
        sources.append(tmp_path / f"source{number}.png")
        sources[-1].write_bytes(buffer.getvalue())
    edits = [word for path in sources for word in ("--edit", path)]
    assert draw("make it blue", "-o", tmp_path / "blue.png", *edits, "--steps", 3)[0] == 0
    request = asked(server)
    assert [part.sources for part in request.media] == [(path.read_bytes(),) for path in sources]
    assert (list_texts(request), request.steps) == (["make it blue"], 3)


def test_each_step_is_shown_on_standard_error(server: Served, draw: Draw, tmp_path: Path) -> None:
    paint = server.backend.image_script

    async def paint_slowly(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        for step in (1, 2, 3):
            await asyncio.sleep(0.02)
            yield ImageStep(0, step, 4)
        async for event in paint(request):
            if not isinstance(event, ImageStep):
                yield event

    server.backend.image_script = paint_slowly
    _, output, error = draw("a mill", "-o", tmp_path / "mill.png")
    assert [f"{step}/4" in error for step in (1, 2, 3)] == [True] * 3
    assert output.startswith("wrote ")
    assert len(output.splitlines()) == 1


def test_a_server_that_draws_nothing_says_so(server: Served, draw: Draw, tmp_path: Path) -> None:
    server.backend.capabilities = replace(CAPABILITIES, image_output=False, name="Small")
    status, output, error = draw("a mill", "-o", tmp_path / "mill.png")
    assert (status, output) == (1, "")
    assert "sgl-omni: Small draws no images" in error
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_is_the_servers(draw: Draw, tmp_path: Path) -> None:
    status, _, error = draw("a mill", "-o", tmp_path / "mill.png", "--size", "big")
    assert status == 1
    assert "sgl-omni: size: must be 'auto' or WIDTHxHEIGHT" in error


def test_an_engine_that_fails_leaves_what_is_finished(
    server: Served, draw: Draw, tmp_path: Path
) -> None:
    async def fail(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        yield CompletedImage(0, np.zeros((2, 4, 3), np.uint8), 1, ImageUsage())
        raise EngineFailed("the image engine ended")

    server.backend.image_script = fail
    status, _, error = draw("a mill", "-o", tmp_path / "mill.png", "--count", 2)
    assert (status, error.splitlines()[-1]) == (1, "sgl-omni: the image engine ended")
    assert [path.name for path in tmp_path.iterdir()] == ["mill-1.png"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "mill.gif"), "cannot write mill.gif: use one of .png, .jpg, .jpeg, .webp"),
        (("-o", "none/mill.png"), "the folder none does not exist"),
        (("-o", "mill.png", "--edit", "gone.png"), "cannot read gone.png: No such file"),
        (("-o", "mill.png", "--api-key", "secret"), "--api-key takes file:PATH or env:NAME"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_asked(
    server: Served,
    draw: Draw,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, error = draw("a mill", *arguments)
    assert status == 1
    assert words in error
    assert len(error.splitlines()) == 1
    assert server.backend.requests == []


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_a_count_is_a_number_from_one(draw: Draw, count: str) -> None:
    with pytest.raises(SystemExit):
        draw("a mill", "-o", "mill.png", f"--count={count}")


def test_a_key_is_sent(draw: Draw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAW_KEY", KEY)
    with serving(Access(keys(KEY)), backend=DrawingBackend()) as locked:
        output = ("-o", tmp_path / "mill.png")
        status, _, error = draw("a mill", *output, url=locked.url)
        assert status == 1
        assert "key" in error
        assert draw("a mill", *output, "--api-key", "env:DRAW_KEY", url=locked.url)[0] == 0


def test_an_absent_server_is_a_clear_error(draw: Draw, tmp_path: Path) -> None:
    status, _, error = draw("a mill", "-o", tmp_path / "mill.png", url="http://127.0.0.1:9")
    assert status == 1
    assert error.startswith("sgl-omni: cannot reach a server at http://127.0.0.1:9 (")
