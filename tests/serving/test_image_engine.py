"""The image engine of a server gives way to answers on its own device, and to no others."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from sglang_omni.models.ming.family import FAMILY
from sglang_omni.models.ming.tiny import write_tiny_checkpoint
from sglang_omni.pipeline.request import Event, TextDelta
from sglang_omni.serving.image_engine import ImageEngine
from tests.serving.test_places import config


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_tiny_checkpoint(folder)
    return folder


async def one_event() -> AsyncGenerator[Event, None]:
    yield TextDelta("a")


@pytest.mark.parametrize(("place", "gives_way"), [("local", True), ("b", False)])
async def test_an_engine_on_another_machine_rests_for_no_answer(
    tiny: Path, place: str, gives_way: bool
) -> None:
    asked = config({"device": "cpu", "image.place": place})
    engine = ImageEngine(asked, tiny, FAMILY.chat_format(tiny))
    events = one_event()
    tracked = engine.track(events, is_spoken=False)
    assert (tracked is not events) == gives_way
    assert [event async for event in tracked] == [TextDelta("a")]
