"""From items to token ids: exactly the prompt that the server builds, then the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from cookbook.ming_mini.thinker.items import Item
from sglang_omni.models.chat import Item as PromptItem
from sglang_omni.models.chat import PromptAudio, PromptImage
from sglang_omni.models.ming.media_rules import patch_grid, picture_tokens
from sglang_omni.models.ming.prompt.chat import ROLE_END, render_chat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer

SYSTEMS = ("You are a helpful assistant.", "You are Ming-mini.", "Answer briefly.")
"""System messages, besides the prompt's own, that make no difference."""


@dataclass(frozen=True)
class Words:
    """A run of text of a message."""

    text: str


@dataclass(frozen=True)
class Said:
    """One message."""

    role: str
    content: tuple[PromptItem, ...]


@dataclass(frozen=True)
class Example:
    """Token ids of a dialog with its last answer, which starts at `answer`; `task` by name.

    `media` is the number of its picture or clip in the shard, or -1.
    """

    ids: tuple[int, ...]
    answer: int
    task: str
    media: int = -1


def question(item: Item, clip_rows: int = 0) -> Said:
    """The user's message of an item; a clip takes `clip_rows` tokens."""
    media: list[PromptItem] = []
    if item.scene:
        media.append(PromptImage(picture_tokens(patch_grid((1, *item.scene.size, 3)))))
    elif item.speech is not None:
        media.append(PromptAudio(clip_rows))
    text: list[PromptItem] = [Words(item.question)] if item.question else []
    return Said("user", tuple(media + text if item.media_first else text + media))


def prompt_ids(
    tokenizer: ThinkerTokenizer,
    item: Item,
    clip_rows: int = 0,
    earlier: Sequence[Item] = (),
    system: str | None = None,
) -> tuple[int, ...]:
    """The prompt of an item after `earlier` text exchanges, as the server renders it."""
    turns = [Said("system", (Words(system),))] if system else []
    for one in earlier:
        turns += [question(one), Said("assistant", (Words(one.answer),))]
    turns.append(question(item, clip_rows))
    return tokenizer.encode(render_chat(turns)).ids


def answer_ids(tokenizer: ThinkerTokenizer, item: Item) -> tuple[int, ...]:
    """The answer and the token that ends it."""
    return (*tokenizer.encode_text(item.answer), tokenizer.token_id(ROLE_END.token))
