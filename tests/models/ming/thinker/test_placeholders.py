"""Places in a prompt of the stock server: the ids come out as the reference's."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from sglang_omni.models.chat import Item, PromptAudio, PromptImage, PromptVideo
from sglang_omni.models.ming.thinker.placeholders import PlaceholderExpander, PlaceholderMedium
from sglang_omni.protocol.errors import InvalidRequest
from tests.models.ming.prompt.test_chat import all_chats, chat_of
from tests.testing.golden import TINY, load_case, require_case

TOKENS = {"image": "<imagePatch>", "audio": "<audioPatch>"}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(TINY / "tokenizer.json"))


@pytest.fixture(scope="module")
def expander(tokenizer: Tokenizer) -> PlaceholderExpander:
    return PlaceholderExpander(lambda text: tokenizer.encode(text, add_special_tokens=False).ids)


def medium(item: Item, number: int) -> PlaceholderMedium:
    """A medium that takes as much room as `item`."""
    match item:
        case PromptImage(tokens):
            return PlaceholderMedium("image", torch.zeros(1, 32, 32 * tokens, 3), number)
        case PromptVideo(tokens, seconds):
            frames = torch.zeros(2 * len(seconds), 32, 32 * tokens, 3)
            return PlaceholderMedium("video", frames, number, seconds)
        case PromptAudio(tokens):
            return PlaceholderMedium("audio", torch.zeros(tokens * 640), number)
    raise AssertionError(item)


def media_of(entry: dict[str, Any]) -> list[PlaceholderMedium]:
    items = [item for turn in chat_of(entry) for item in turn.content]
    shown = [item for item in items if isinstance(item, PromptImage | PromptVideo | PromptAudio)]
    return [medium(item, number) for number, item in enumerate(shown)]


def collapsed(text: str) -> Iterator[str]:
    """The prompt as the stock server's template writes it: one placeholder for each medium."""
    head, *films = text.split("<video>")
    yield head
    for film in films:
        yield "<video><framePatch></video>" + film.split("</video>")[1]


def short(text: str) -> str:
    whole = "".join(collapsed(text))
    for token in TOKENS.values():
        start, *rest = whole.split(f"{token}*")
        whole = start + "".join(token + piece.lstrip("0123456789") for piece in rest)
    return whole


@pytest.mark.parametrize("entry", all_chats(), ids=lambda e: e["name"])
def test_the_stock_prompt_expands_to_the_reference_ids(
    entry: dict[str, Any], expander: PlaceholderExpander, tokenizer: Tokenizer
) -> None:
    name = f"positions/prompt_{entry['name']}"
    require_case(name)
    ids = tokenizer.encode(short(entry["expanded_short"]), add_special_tokens=False).ids
    media = media_of(entry)
    room, items = expander.expand(ids, media)
    assert room == load_case(name)["input_ids"].tolist()
    assert [item["hash"] for item in items] == [one.content_hash for one in media]
    for item in items:
        for first, last in item["offsets"]:
            assert len(set(room[first : last + 1])) == 1


@pytest.mark.parametrize(("places", "media"), [(2, 1), (1, 2), (0, 1)])
def test_media_and_places_must_agree(
    expander: PlaceholderExpander, tokenizer: Tokenizer, places: int, media: int
) -> None:
    ids = tokenizer.encode("<image><imagePatch></image>" * places).ids
    with pytest.raises(InvalidRequest, match="placeholders than"):
        expander.expand(ids, [medium(PromptImage(1), number) for number in range(media)])


def test_media_of_each_kind_fill_their_own_places_in_order(
    expander: PlaceholderExpander, tokenizer: Tokenizer
) -> None:
    text = "<audio><audioPatch></audio><image><imagePatch></image><image><imagePatch></image>"
    given = [medium(PromptImage(2), 1), medium(PromptImage(3), 2), medium(PromptAudio(4), 3)]
    room, items = expander.expand(tokenizer.encode(text).ids, given)
    assert [item["hash"] for item in items] == [3, 1, 2]
    assert [last - first + 1 for item in items for first, last in item["offsets"]] == [4, 2, 3]
    assert len(room) == 2 * 3 + 4 + 2 + 3
