"""Items that are dialogs: earlier turns, tools, reasoning and films, as the server renders them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cookbook.ming_mini.thinker.dialogs import ChatMessage, Example, TextRun, user_message
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini_2.thinker.film import Film
from sglang_omni.models.chat import PromptVideo
from sglang_omni.models.ming.prompt.chat import ROLE_END, Prompt, render_chat
from sglang_omni.models.ming.prompt.segments import PromptSegment
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.prompt.tools import render_tool_call
from sglang_omni.models.reasoning import CLOSE, OPEN
from sglang_omni.protocol.tools import Tool, ToolCall, ToolResult

Answer = Sequence[PromptSegment]


@dataclass(frozen=True)
class DialogItem(Item):
    """An item with what else the server's prompt and the model's answer may hold.

    Attributes:
        before: Earlier messages, system messages first.
        tools: The functions that are offered.
        thinking: Whether reasoning is switched on.
        thought: The reasoning before the answer, if it is.
        calls: The calls that are the answer; its text is then empty.
        result: What a function returned, in place of the user's last message.
        film: A film in the user's message.
        schema: The JSON schema of the answer, for measurements: no prompt has it.
    """

    before: tuple[ChatMessage, ...] = ()
    tools: tuple[Tool, ...] = ()
    thinking: bool = False
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    result: ToolResult | None = None
    film: Film | None = None
    schema: Mapping[str, Any] | None = None

    @property
    def key(self) -> str:
        """Return the content; a film or a dialog is told apart as a whole."""
        if self.film:
            return self.film.key
        own = super().key
        result = self.result.text if self.result else ""
        return " ".join([*map(message_text, self.before), own, result]).strip()


def message_text(message: ChatMessage) -> str:
    """Return a message as text, to tell it from others."""
    return " ".join(_item_text(item) for item in message.content)


def _item_text(item: object) -> str:
    match item:
        case ToolCall(name, arguments):
            return f"{name} {arguments}"
        case ToolResult(text) | TextRun(text):
            return text
    return "medium"


def text_message(role: str, text: str) -> ChatMessage:
    """Return a message of text alone."""
    return ChatMessage(role, (TextRun(text),))


def exchange(item: Item) -> tuple[ChatMessage, ChatMessage]:
    """Return an item of text as two earlier messages."""
    return user_message(item), text_message("assistant", item.answer)


def as_dialog(item: Item, **changes: Any) -> DialogItem:
    """Return an item as a dialog with some fields changed."""
    if isinstance(item, DialogItem):
        return replace(item, **changes)
    return DialogItem(**{**vars(item), **changes})


def messages_of(item: Item, clip_rows: int = 0) -> list[ChatMessage]:
    """Return all messages of an item in order; a clip takes `clip_rows` tokens."""
    if not isinstance(item, DialogItem):
        return [user_message(item, clip_rows)]
    if item.result:
        return [*item.before, ChatMessage("tool", (item.result,))]
    last = user_message(item, clip_rows)
    if item.film:
        film = PromptVideo(item.film.pair_tokens, item.film.seconds)
        content = (film, *last.content) if item.media_first else (*last.content, film)
        last = ChatMessage("user", content)
    return [*item.before, last]


def prompt_tokens(tokenizer: ThinkerTokenizer, item: Item, clip_rows: int = 0) -> tuple[int, ...]:
    """Return the prompt of an item, token for token as the server renders it."""
    thinking, tools = False, tuple[Tool, ...]()
    if isinstance(item, DialogItem):
        thinking, tools = item.thinking, item.tools
    return tokenizer.encode(render_chat(messages_of(item, clip_rows), thinking, tools)).ids


def answer_segments(item: Item) -> list[PromptSegment]:
    """Return the answer as the model is to write it, with reasoning and calls."""
    if not isinstance(item, DialogItem):
        return [item.answer]
    thought = f"{OPEN}\n{item.thought}\n{CLOSE}\n\n" if item.thinking else ""
    calls = _join_calls(item.calls)
    return [thought + item.answer, *calls]


def _join_calls(calls: Iterable[ToolCall]) -> list[PromptSegment]:
    segments: list[PromptSegment] = []
    for call in calls:
        segments += [*(["\n"] if segments else []), *render_tool_call(call)]
    return segments


def answer_tokens(tokenizer: ThinkerTokenizer, item: Item) -> tuple[int, ...]:
    """Return the tokens of the answer, and the token that ends it."""
    segments = tuple(segment for segment in answer_segments(item) if segment != "")
    return (*tokenizer.encode(Prompt(segments)).ids, tokenizer.token_id(ROLE_END.token))


def example_of(
    tokenizer: ThinkerTokenizer, item: Item, clip_rows: int = 0, media: int = -1
) -> Example:
    """Return the tokens of an item; `media` is the number of its medium in the shard."""
    prompt = prompt_tokens(tokenizer, item, clip_rows)
    return Example(prompt + answer_tokens(tokenizer, item), len(prompt), item.task, media)


def call_of(name: str, arguments: Mapping[str, Any]) -> ToolCall:
    """Return a call with its arguments spaced as the server's grammar spaces them."""
    return ToolCall(name, json.dumps(arguments, ensure_ascii=False))
