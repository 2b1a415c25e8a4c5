"""What is trained on is token for token what the server's routes send."""

from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest

from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.tasks import Kind
from cookbook.ming_mini_2.thinker.clip_tasks import transcription
from cookbook.ming_mini_2.thinker.dialog import DialogItem, messages_of, prompt_tokens
from cookbook.ming_mini_2.thinker.dialogs import with_context
from cookbook.ming_mini_2.thinker.evaluation.ask import chat_body
from cookbook.ming_mini_2.thinker.excluded import Excluded
from cookbook.ming_mini_2.thinker.prompts import OWN, ROUTE_PROMPTS
from cookbook.ming_mini_2.thinker.spoken_texts import SpokenText
from cookbook.ming_mini_2.thinker.tasks import MAKERS, earlier_item, groups
from sglang_omni.entrypoints.requests.chat import get_callable_tools
from sglang_omni.entrypoints.requests.messages import to_messages
from sglang_omni.models.chat import PromptAudio
from sglang_omni.models.ming.capabilities import RELEASED
from sglang_omni.models.ming.media_rules import clip_tokens, patch_grid, picture_tokens
from sglang_omni.models.ming.prompt.format import MingChatFormat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.pipeline.media_preprocessor import MediaInput
from sglang_omni.pipeline.preprocess import preprocess
from sglang_omni.pipeline.request import ChatRequest, MediaPart, Message, TextPart
from sglang_omni.pipeline.transcribe import build_transcription_prompt, build_translation_prompt
from sglang_omni.protocol.chat import ChatBody
from sglang_omni.protocol.sampling import SamplingParams
from tests.cookbook.thinker.conftest import LEXICON

SAMPLES = 30_000
CONTEXT = 8192


@pytest.fixture(scope="module")
def chat_format(folder: Path) -> MingChatFormat:
    return MingChatFormat(folder)


def served(chat_format: MingChatFormat, item: Item) -> tuple[int, ...]:
    """Return the prompt that the server makes of the body of a request."""
    clip = np.zeros(SAMPLES, np.int16) if item.speech else None
    body = ChatBody.model_validate({"model": "ming-omni", **chat_body(item, clip)})
    messages = to_messages(body, lambda _: None)
    parts = [part for one in messages for part in one.content if isinstance(part, MediaPart)]
    request = ChatRequest(
        "1",
        messages,
        SamplingParams(),
        thinking=body.thinks,
        tools=get_callable_tools(body),
    )
    media = [medium(part, item) for part in parts]
    return preprocess(request, media, chat_format, CONTEXT).ids


def medium(part: MediaPart, item: Item) -> MediaInput:
    """Return a medium as the server knows it once it is decoded."""
    if part.kind == "audio":
        return MediaInput(part, b"", clip_tokens(SAMPLES))
    if isinstance(item, DialogItem) and item.film:
        grid = patch_grid(item.film.draw().shape)
        return MediaInput(part, b"", picture_tokens(grid), grid, item.film.seconds)
    assert item.scene
    grid = patch_grid((1, *item.scene.size, 3))
    return MediaInput(part, b"", picture_tokens(grid), grid)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__qualname__)
def test_text_prompts_are_the_servers(
    maker: object, tokenizer: ThinkerTokenizer, chat_format: MingChatFormat
) -> None:
    for number in range(12):
        item = maker(Random(number), LEXICON)  # type: ignore[operator]
        assert prompt_tokens(tokenizer, item) == served(chat_format, item)


@pytest.mark.parametrize("kind", ["text", "picture", "film"])
def test_prompts_after_earlier_turns_are_the_servers(
    kind: Kind, tokenizer: ThinkerTokenizer, chat_format: MingChatFormat, excluded: Excluded
) -> None:
    rng, with_before = Random(1), 0
    for items in islice(groups(kind, 1, LEXICON, "train", excluded), 8 if kind == "film" else 40):
        item = with_context(items[0], rng, lambda: earlier_item(rng, LEXICON, "train", excluded))
        with_before += len(messages_of(item)) > 1
        assert prompt_tokens(tokenizer, item) == served(chat_format, item)
    assert with_before


@pytest.mark.parametrize("prompt", ROUTE_PROMPTS)
def test_a_route_asks_in_front_of_the_clip(
    prompt: str, tokenizer: ThinkerTokenizer, chat_format: MingChatFormat
) -> None:
    part = MediaPart("audio", ("x",), "file")
    request = ChatRequest("1", (Message("user", (TextPart(prompt), part)),), SamplingParams())
    media = [MediaInput(part, b"", clip_tokens(SAMPLES))]
    wanted = preprocess(request, media, chat_format, CONTEXT).ids
    drawn = (transcription(SpokenText("Hello there."), Random(n)) for n in range(500))
    item = next(one for one in drawn if one.question == prompt and not one.media_first)
    assert prompt_tokens(tokenizer, item, clip_tokens(SAMPLES)) == wanted


def test_the_prompts_of_both_routes_are_trained() -> None:
    for capabilities in (OWN, RELEASED):
        assert build_transcription_prompt(capabilities) in ROUTE_PROMPTS
        assert build_translation_prompt(capabilities) in ROUTE_PROMPTS
    assert build_transcription_prompt(RELEASED, "en") in ROUTE_PROMPTS


def test_a_spoken_question_is_a_clip_alone(
    tokenizer: ThinkerTokenizer, chat_format: MingChatFormat
) -> None:
    item = SpokenText("What is two plus two?", "4", "number").question()
    rows = clip_tokens(SAMPLES)
    (message,) = messages_of(item, rows)
    assert message.content == (PromptAudio(rows),)
    assert prompt_tokens(tokenizer, item, rows) == served(chat_format, item)
