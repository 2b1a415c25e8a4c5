"""The tab that draws images, over images that are known in advance; `ci/browser.sh` runs this."""

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sglang_omni.pipeline.image_request import (
    CompletedImage,
    ImageEvent,
    ImageRequest,
    ImagesFinished,
    ImageStep,
    ImageUsage,
    PartialImage,
)
from sglang_omni.protocol.errors import EngineFailed, Overloaded
from tests.entrypoints.http.fake import FakeBackend, Served
from tests.media.files import encoded, picture
from tests.testing.browser import Browser, barriers, picture_of
from tests.testing.image_requests import list_texts

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
WIDTHS = "[document.documentElement.scrollWidth, innerWidth]"


@pytest.fixture
def server(drawing_server: Served) -> Served:
    return drawing_server


def open_tab(chromium: Browser, server: Served, **options: Any) -> Any:
    page = chromium.open(server.url, **options)
    page.get_by_role("tab", name="Draw").click()
    return page


@pytest.fixture
def page(chromium: Browser, server: Served) -> Any:
    return open_tab(chromium, server)


def images(page: Any) -> Any:
    return page.get_by_role("list", name="Images").get_by_role("img")


def notice(page: Any) -> Any:
    return page.locator("#draw-notice")


def draw(page: Any, prompt: str = "a mill") -> None:
    page.get_by_label("Prompt", exact=True).fill(prompt)
    page.get_by_role("button", name="Draw", exact=True).click()


def square(level: int, side: int = 32) -> np.ndarray:
    return np.full((side, side, 3), level, np.uint8)


async def paint_and_wait(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
    """Do one of four steps with a preview, and never end."""
    yield ImageStep(0, 1, 4)
    yield PartialImage(0, 0, square(90))
    await asyncio.Event().wait()


async def paint_large(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
    """Draw images wider than a phone."""
    for index, seed in enumerate(request.seeds):
        yield ImageStep(index, 1, 1)
        yield CompletedImage(index, square(40 * index + 60, 640), seed, ImageUsage())
    yield ImagesFinished(ImageUsage())


def test_images_are_drawn_measured_and_downloaded(
    page: Any, expect: Any, backend: FakeBackend, tmp_path: Path
) -> None:
    page.get_by_label("Size", exact=True).fill("1536x1024")
    page.get_by_label("Steps", exact=True).fill("9")
    page.get_by_label("Seed", exact=True).fill("40")
    page.get_by_label("Count", exact=True).fill("2")
    page.get_by_label("Not in the image", exact=True).fill("snow")
    draw(page, "a mill by the river")
    expect(page.locator("#draw-state")).to_have_text("Done")
    expect(images(page)).to_have_count(2)
    for image in images(page).all():
        expect(image).to_have_attribute("alt", "a mill by the river")
        expect(image).to_have_js_property("naturalWidth", 4)
    rows = page.locator("#draw-images li")
    # The newest first.
    expect(rows).to_have_text(
        ["4x2, seed 41Edit this imageDownload", "4x2, seed 40Edit this imageDownload"]
    )
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the image with seed 40").click()
    assert download.value.suggested_filename == "image-40.png"
    download.value.save_as(tmp_path / "image.png")
    assert np.asarray(Image.open(tmp_path / "image.png")).tolist() == [[[40, 40, 40]] * 4] * 2
    request = backend.requests[-1]
    assert isinstance(request, ImageRequest)
    assert (list_texts(request), request.negative_prompt) == (["a mill by the river"], "snow")
    assert (request.size, request.steps, request.seeds) == ((1024, 1536), 9, (40, 41))
    assert request.previews == 3
    expect(page.locator("#last-figures")).to_have_text(re.compile(r"^Image\d\.\d{3} s$"))
    expect(page.locator("#last-stages")).to_be_visible()
    expect(page.locator("#draw-progress")).to_have_count(0)


def test_what_is_left_empty_is_the_servers_choice(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    draw(page)
    expect(images(page)).to_have_count(1)
    request = backend.requests[-1]
    assert (request.size, request.steps, request.negative_prompt) == (None, 30, None)
    assert len(request.seeds) == 1
    draw(page, "a red house")
    expect(images(page)).to_have_count(2)
    expect(images(page).first).to_have_attribute("alt", "a red house")


def test_steps_and_previews_are_shown_until_it_is_stopped(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    backend.image_script = paint_and_wait
    draw(page)
    expect(images(page)).to_have_attribute("alt", "Preview: a mill")
    expect(images(page)).to_have_js_property("naturalWidth", 32)
    expect(page.locator("#draw-images li")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#draw-state")).to_have_text("Drawing")
    expect(page.get_by_text("Step 1 of 4")).to_be_visible()
    bar = page.get_by_role("progressbar", name="Steps done")
    expect(bar).to_have_js_property("value", 1)
    expect(bar).to_have_js_property("max", 4)
    expect(page.get_by_role("button", name="Draw", exact=True)).to_be_disabled()
    assert barriers(page) == []
    picture_of(page, "draw_preview")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator("#draw-state")).to_have_text("Stopped")
    expect(images(page)).to_have_count(0)
    expect(bar).to_be_hidden()
    expect(notice(page)).to_be_hidden()
    backend.wait_running(0, 5)


def test_a_picture_is_edited_until_it_is_removed(
    page: Any, expect: Any, backend: FakeBackend, tmp_path: Path
) -> None:
    path = tmp_path / "mill.png"
    path.write_bytes(encoded(picture()))
    page.get_by_label("Picture to edit", exact=True).set_input_files(path)
    page.get_by_label("Seed", exact=True).fill("7")
    draw(page, "make it blue")
    expect(images(page)).to_have_count(1)
    request = backend.requests[-1]
    assert [part.sources for part in request.media] == [(path.read_bytes(),)]
    assert (list_texts(request), request.seeds) == (["make it blue"], (7,))
    page.get_by_role("button", name="Remove the picture").click()
    expect(page.get_by_role("button", name="Remove the picture")).to_be_hidden()
    expect(page.get_by_label("Picture to edit", exact=True)).to_be_focused()
    draw(page)
    expect(images(page)).to_have_count(2)
    assert backend.requests[-1].media == ()


def test_an_image_that_was_drawn_is_edited(
    page: Any, expect: Any, backend: FakeBackend, tmp_path: Path
) -> None:
    draw(page)
    expect(images(page)).to_have_count(1)
    page.get_by_role("button", name="Edit this image").click()
    expect(page.get_by_label("Prompt", exact=True)).to_be_focused()
    draw(page, "make it blue")
    expect(images(page)).to_have_count(2)
    (part,) = backend.requests[-1].media
    (tmp_path / "image.png").write_bytes(part.sources[0])
    assert Image.open(tmp_path / "image.png").size == (4, 2)
    page.get_by_role("button", name="Remove the picture").click()
    draw(page)
    expect(images(page)).to_have_count(3)
    assert backend.requests[-1].media == ()


def test_errors_are_shown_beside_the_prompt(
    chromium: Browser, page: Any, expect: Any, backend: FakeBackend
) -> None:
    page.get_by_label("Size", exact=True).fill("big")
    draw(page)
    expect(notice(page)).to_have_text(re.compile("^Size must be 'auto' or WIDTHxHEIGHT"))
    expect(notice(page)).to_be_in_viewport()
    expect(page.locator("#draw-state")).to_have_text("Failed")
    assert barriers(page) == []
    page.get_by_label("Size", exact=True).fill("")

    async def refuse(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        raise Overloaded("Image engine at capacity; retry in 2 s", retry_after_s=2)
        yield

    backend.image_script = refuse
    draw(page)
    expect(notice(page)).to_have_text("Image engine at capacity; retry in 2 s")

    async def fail(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        yield ImageStep(0, 1, 4)
        yield PartialImage(0, 0, square(90))
        raise EngineFailed("the image engine ended")

    backend.image_script = fail
    draw(page)
    expect(notice(page)).to_have_text("the image engine ended")
    expect(images(page)).to_have_count(0)
    expect(page.locator("#draw-progress")).to_have_count(0)
    backend.reset()
    draw(page)
    expect(images(page)).to_have_count(1)
    expect(notice(page)).to_be_hidden()
    # The browser itself reports every status of 400 and 503.
    assert [text for text in chromium.complaints if "Failed to load resource" not in text] == []
    chromium.complaints.clear()


def test_the_keyboard_is_enough(chromium: Browser, server: Served, expect: Any) -> None:
    page = chromium.open(server.url)
    expect(page.get_by_role("tab", name="Draw")).to_be_visible()
    page.get_by_role("tab", name="Conversation").focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Draw")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Voices")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tabpanel", name="Draw")).to_be_visible()
    page.get_by_label("Prompt", exact=True).focus()
    page.keyboard.type("a mill")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("by the river")
    page.keyboard.press("Enter")
    expect(images(page)).to_have_attribute("alt", "a mill\nby the river")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", ["desktop", "phone"])
def test_nobody_is_kept_out_and_it_fits(
    chromium: Browser, server: Served, expect: Any, backend: FakeBackend, scheme: str, device: str
) -> None:
    backend.image_script = paint_large
    options = PHONE if device == "phone" else {}
    page = open_tab(chromium, server, color_scheme=scheme, **options)
    page.get_by_label("Count", exact=True).fill("3")
    draw(page, "a mill by the river" * 20)
    expect(images(page)).to_have_count(3)
    expect(page.locator("#draw-state")).to_have_text("Done")
    assert barriers(page) == []
    scroll, width = page.evaluate(WIDTHS)
    assert scroll <= width
    picture_of(page, f"{device}_{scheme}_draw")


def test_a_server_that_draws_nothing_has_no_such_tab(
    chromium: Browser, running_server: Served, expect: Any
) -> None:
    running_server.backend.reset()
    page = chromium.open(running_server.url)
    expect(page.locator("#voice option")).to_have_text(["prompt", "river"])
    expect(page.get_by_role("tab")).to_have_text(["Conversation", "Read aloud", "Voices"])


def test_the_tab_goes_with_a_model_that_draws(
    chromium: Browser, server: Served, expect: Any
) -> None:
    """A server that comes back may have another model."""
    page = open_tab(chromium, server)
    card = page.request.get(f"{server.url}/v1/models").json()
    card["data"][0]["capabilities"]["image_output"] = False
    page.route("**/v1/models", lambda route: route.fulfill(json=card))
    # It is away for a moment.
    page.route("**/health", lambda route: route.abort())
    expect(page.get_by_text("Reconnecting")).to_be_visible()
    page.unroute("**/health")
    expect(page.get_by_role("tab", name="Draw")).to_be_hidden()
    # The browser itself reports what does not load.
    chromium.complaints.clear()
    expect(page.get_by_role("tab", selected=True)).to_have_text("Conversation")
    expect(page.get_by_role("tabpanel", name="Conversation")).to_be_visible()
