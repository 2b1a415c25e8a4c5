"""Convert items to token ids: exactly the prompt that the server builds, then the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from cookbook.ming_mini.thinker.items import Item
from sglang_omni.models.chat import Item as PromptItem
from sglang_omni.models.chat import PromptAudio, PromptImage
from sglang_omni.models.ming.media_rules import patch_grid, picture_tokens
from sglang_omni.models.ming.prompt.chat import ROLE_END, render_chat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer

SYSTEMS = ("You are a helpful assistant.", "You are Ming-mini.", "Answer briefly.")
"""System messages, besides the prompt's own, that should not change the answer."""


@dataclass(frozen=True)
class TextRun:
    """A run of text in a message."""

    text: str


@dataclass(frozen=True)
class ChatMessage:
    """One message of a chat."""

    role: str
    content: tuple[PromptItem, ...]


@dataclass(frozen=True)
class Example:
    """Token ids of a dialog with its last answer, which starts at `answer`.

    `task` is the task's name. `media` is the number of its picture or clip in the shard, or -1.
    """

    ids: tuple[int, ...]
    answer: int
    task: str
    media: int = -1


def user_message(item: Item, clip_rows: int = 0) -> ChatMessage:
    """Build the user's message of an item; a clip takes `clip_rows` tokens."""
    media: list[PromptItem] = []
    if item.scene:
        media.append(PromptImage(picture_tokens(patch_grid((1, *item.scene.size, 3)))))
    elif item.speech is not None:
        media.append(PromptAudio(clip_rows))
    text: list[PromptItem] = [TextRun(item.question)] if item.question else []
    return ChatMessage("user", tuple(media + text if item.media_first else text + media))


def prompt_ids(
    tokenizer: ThinkerTokenizer,
    item: Item,
    clip_rows: int = 0,
    earlier: Sequence[Item] = (),
    system: str | None = None,
) -> tuple[int, ...]:
    """Return the prompt of an item after `earlier` text exchanges, as the server renders it."""
    turns = [ChatMessage("system", (TextRun(system),))] if system else []
    for one in earlier:
        turns += [user_message(one), ChatMessage("assistant", (TextRun(one.answer),))]
    turns.append(user_message(item, clip_rows))
    return tokenizer.encode(render_chat(turns)).ids


def answer_ids(tokenizer: ThinkerTokenizer, item: Item) -> tuple[int, ...]:
    """Return the tokens of the answer, and the token that ends it."""
    return (*tokenizer.encode_text(item.answer), tokenizer.token_id(ROLE_END.token))
