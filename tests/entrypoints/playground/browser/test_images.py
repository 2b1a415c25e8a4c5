"""Images in the conversations of the page, drawn of known colours; `ci/browser.sh` runs this."""

from collections.abc import AsyncGenerator
from typing import Any

import numpy as np
import pytest

from sglang_omni.pipeline.image_request import (
    CompletedImage,
    ImageEvent,
    ImageRequest,
    ImagesFinished,
    ImageStep,
    ImageUsage,
    PartialImage,
)
from sglang_omni.pipeline.request import ChatRequest, MediaPart
from sglang_omni.protocol.errors import EngineFailed
from tests.entrypoints.http.fake import FakeBackend, Served
from tests.testing.browser import Browser, ask, barriers, picture_of


@pytest.fixture
def server(drawing_server: Served) -> Served:
    return drawing_server


@pytest.fixture
def page(chromium: Browser, server: Served) -> Any:
    return chromium.open(server.url)


def square(level: int) -> np.ndarray:
    return np.full((32, 48, 3), level, np.uint8)


async def paint(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
    """Show a preview, then the image."""
    yield ImageStep(0, 1, 2)
    yield PartialImage(0, 0, square(90))
    yield CompletedImage(0, square(200), request.seeds[0], ImageUsage())
    yield ImagesFinished(ImageUsage())


async def fail(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
    yield ImageStep(0, 1, 2)
    yield PartialImage(0, 0, square(90))
    raise EngineFailed("the image engine ended")


def image_requests(backend: FakeBackend) -> list[ImageRequest]:
    return [request for request in backend.requests if isinstance(request, ImageRequest)]


def test_an_answer_has_an_image_that_the_next_one_knows(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    backend.image_script = paint
    page.get_by_role("checkbox", name="Draw").check()
    ask(page, "a mill")
    answers = page.locator("#chat-log .answer")
    expect(answers).to_have_attribute("aria-busy", "false")
    image = answers.get_by_role("img", name="Drawn image")
    expect(image).to_have_js_property("naturalWidth", 48)
    expect(answers).to_contain_text("a mill")
    assert image_requests(backend)[-1].previews == 3
    expect(page.locator("#last-figures")).to_contain_text("Image")
    assert barriers(page) == []
    picture_of(page, "chat_image")
    ask(page, "in winter")
    expect(answers).to_have_count(2)
    expect(answers.last).to_have_attribute("aria-busy", "false")
    second = image_requests(backend)[-1]
    # The image of the first answer is changed.
    assert len(second.media) == 1
    assert second.source == 0
    page.get_by_role("checkbox", name="Draw").uncheck()
    ask(page, "What colour is it?")
    expect(answers).to_have_count(3)
    expect(answers.last).to_have_attribute("aria-busy", "false")
    asked = backend.requests[-1]
    assert isinstance(asked, ChatRequest)
    parts = [part for message in asked.messages for part in message.content]
    assert len([part for part in parts if isinstance(part, MediaPart)]) == 2


def test_a_preview_stays_beside_the_error_of_an_image_that_failed(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    backend.image_script = fail
    page.get_by_role("checkbox", name="Draw").check()
    ask(page, "a mill")
    expect(page.locator("#chat-notice")).to_have_text("the image engine ended")
    expect(page.get_by_role("img", name="Preview")).to_have_js_property("naturalWidth", 48)


def test_a_model_that_draws_nothing_has_no_such_choice(
    chromium: Browser, drawing_server: Served, expect: Any, backend: FakeBackend
) -> None:
    plain = chromium.open(drawing_server.url)
    expect(plain.get_by_role("checkbox", name="Draw")).to_be_visible()
    page = chromium.open(drawing_server.url)
    page.route(
        "**/v1/models",
        lambda route: route.fulfill(json={"data": [{"id": "org/ming", "capabilities": {}}]}),
    )
    page.reload()
    expect(page.locator("#chat-send")).to_be_visible()
    expect(page.get_by_role("checkbox", name="Draw")).to_be_hidden()
