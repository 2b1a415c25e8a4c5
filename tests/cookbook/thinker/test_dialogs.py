"""What is trained on is token for token what the server sends."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from cookbook.ming_mini.thinker.dialogs import answer_ids, prompt_ids
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.picture_tasks import shape_scene
from sglang_omni.models.ming.media_rules import clip_tokens, patch_grid, picture_tokens
from sglang_omni.models.ming.prompt.format import MingChatFormat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.tiny.tokenizers import list_thinker_tokens
from sglang_omni.pipeline.media_preprocessor import MediaInput
from sglang_omni.pipeline.preprocess import preprocess
from sglang_omni.pipeline.request import ChatRequest, MediaPart, Message, TextPart
from sglang_omni.protocol.sampling import SamplingParams

SAMPLES = 30_000
SCENE = shape_scene(Random(0))
TEXT = Item("count", "How many words are here: one two", "2.")
ITEMS = (
    TEXT,
    Item("picture_count", "How many shapes are there?", "3.", scene=SCENE),
    Item("picture_count", "How many shapes are there?", "3.", scene=SCENE, media_first=False),
    Item("transcribe", "Transcribe the audio.", "Hello.", speech="Hello."),
    Item("spoken_question", "", "Hello!", speech="Hello."),
)


@pytest.fixture(scope="module")
def chat_format(folder: Path) -> MingChatFormat:
    return MingChatFormat(folder)


def served(chat_format: MingChatFormat, item: Item, before: tuple[Message, ...] = ()) -> list[int]:
    """Return the prompt as the server's pipeline builds it."""
    content: list[TextPart | MediaPart] = [TextPart(item.question)] if item.question else []
    media = []
    if item.scene:
        part = MediaPart("image", ("x",), "messages")
        grid = patch_grid((1, *item.scene.size, 3))
        media = [MediaInput(part, b"", picture_tokens(grid), grid)]
    elif item.speech:
        part = MediaPart("audio", ("x",), "messages")
        media = [MediaInput(part, b"", clip_tokens(SAMPLES))]
    if media:
        content.insert(0 if item.media_first else len(content), media[0].part)
    message = Message("user", tuple(content))
    request = ChatRequest("1", (*before, message), SamplingParams())
    return list(preprocess(request, media, chat_format, 4096).ids)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.task}-{item.media_first}")
def test_prompts_are_the_servers(
    item: Item, tokenizer: ThinkerTokenizer, chat_format: MingChatFormat
) -> None:
    ours = prompt_ids(tokenizer, item, clip_tokens(SAMPLES))
    assert list(ours) == served(chat_format, item)


def test_longer_dialogs_are_the_servers(
    tokenizer: ThinkerTokenizer, chat_format: MingChatFormat
) -> None:
    before = (
        Message("system", (TextPart("Answer briefly."),)),
        Message("user", (TextPart(TEXT.question),)),
        Message("assistant", (TextPart(TEXT.answer),)),
    )
    ours = prompt_ids(tokenizer, ITEMS[1], 0, (TEXT,), "Answer briefly.")
    assert list(ours) == served(chat_format, ITEMS[1], before)


def test_answers_end_and_read_as_they_were(tokenizer: ThinkerTokenizer) -> None:
    ids = answer_ids(tokenizer, ITEMS[1])
    assert tokenizer.decode(ids) == "3."
    assert ids[-1] == tokenizer.token_id("<|role_end|>")


@pytest.mark.parametrize("text", ['Spell "table".', "naïve 12 + 30 = ?\n", "你好。", "  a  b "])
def test_any_text_survives(text: str, tokenizer: ThinkerTokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode_text(text)) == text


def test_the_vocabulary_is_small_and_has_every_special_token(tokenizer: ThinkerTokenizer) -> None:
    ids = [tokenizer.token_id(special.content) for special in list_thinker_tokens()]
    assert max(ids) < 1000
    assert np.all(np.diff(ids) == 1)
    assert len(tokenizer.encode_text(" How")) == 1
