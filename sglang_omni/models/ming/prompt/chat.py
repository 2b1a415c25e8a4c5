r"""The chat prompt of Ming-flash-omni-2.0, as the processor of the released model writes it.

    <role>SYSTEM</role>{system}\n\ndetailed thinking off<|role_end|>
    <role>HUMAN</role>{user}<|role_end|><role>ASSISTANT</role>{answer}<|role_end|> ...
    <role>HUMAN</role>{user}<|role_end|><role>ASSISTANT</role>

There is no line break between turns. Media keep their place in the message:

    image    <image><imagePatch> x n</image>\n
    video    <video>, then for each pair of frames <0.5 seconds><image><framePatch> x n</image>,
             then </video>
    audio    <audio><audioPatch> x n</audio>

A prompt is a sequence of segments, so that only the template can produce special tokens: text of a
user stays text, even if it spells one. (The released processor takes a literal "<image>" in the
text for the place of an image, and then loses the image.)
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from sglang_omni.models.chat import Item, PromptAudio, PromptImage, PromptVideo, Turn
from sglang_omni.models.ming.prompt.segments import PlaceholderRun, PromptSegment, SpecialToken
from sglang_omni.models.ming.prompt.tools import (
    render_tool_call,
    render_tool_list,
    render_tool_result,
)
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.tools import Tool, ToolCall, ToolResult

DEFAULT_SYSTEM = "你是一个友好的AI助手。"
SPEAKERS = {"user": "HUMAN", "assistant": "ASSISTANT", "tool": "OBSERVATION"}

ROLE = SpecialToken("<role>")
ROLE_CLOSE = SpecialToken("</role>")
ROLE_END = SpecialToken("<|role_end|>")
IMAGE, IMAGE_CLOSE = SpecialToken("<image>"), SpecialToken("</image>")
VIDEO, VIDEO_CLOSE = SpecialToken("<video>"), SpecialToken("</video>")
AUDIO, AUDIO_CLOSE = SpecialToken("<audio>"), SpecialToken("</audio>")
IMAGE_PATCH, FRAME_PATCH, AUDIO_PATCH = "<imagePatch>", "<framePatch>", "<audioPatch>"


@dataclass(frozen=True)
class Prompt:
    """A rendered chat: special tokens, placeholders and ordinary text in reading order.

    Adjacent text is one segment, because the tokenizer merges characters of the template with
    characters of the message ("。" and the blank line after it share a token).
    """

    segments: tuple[PromptSegment, ...]

    def __str__(self) -> str:
        """Return the prompt as one string; ambiguous if a message spells a special token."""
        return "".join(map(_to_text, self.segments))


def render_chat(
    messages: Sequence[Turn], thinking: bool = False, tools: Sequence[Tool] = ()
) -> Prompt:
    """Render a chat up to the point where the assistant answers.

    Leading system messages replace only the default sentence. The list of `tools`, if there are
    any, and the line that switches `thinking` follow them.

    Raises:
        InvalidRequest: There is no message to answer, a system message follows another one, or the
            last message is neither the user's nor a tool's. `param` names the message.
    """
    segments = _render_turns(messages, thinking, tools)
    last = len(messages) - 1
    if messages[last].role not in ("user", "tool"):
        raise InvalidRequest("the last message must be the user's", param=f"messages[{last}].role")
    return Prompt((*segments, ROLE, SPEAKERS["assistant"], ROLE_CLOSE))


def render_whole_chat(
    messages: Sequence[Turn], thinking: bool = False, tools: Sequence[Tool] = ()
) -> Prompt:
    """Render a chat with its last answer, after which nothing follows.

    Raises:
        InvalidRequest: There is only a system message, or one follows another message. `param`
            names the message.
    """
    return Prompt(_render_turns(messages, thinking, tools))


def _render_turns(
    messages: Sequence[Turn], thinking: bool, tools: Sequence[Tool]
) -> tuple[PromptSegment, ...]:
    """Render the system message and all turns. Raises `InvalidRequest` for a role."""
    leading = list(takewhile(lambda turn: turn.role == "system", messages))
    system = _render_system(leading) if leading else [DEFAULT_SYSTEM]
    turns = messages[len(leading) :]
    _check_roles(turns, first=len(leading))
    switch = "on" if thinking else "off"
    tool_list = list(render_tool_list(tools))
    line = f"\ndetailed thinking {switch}" if tool_list else f"\n\ndetailed thinking {switch}"
    segments = [*_render_turn("SYSTEM", [*system, *tool_list, line])]
    for turn in turns:
        segments += _render_turn(SPEAKERS[turn.role], _render_content(turn))
    return tuple(_join_text(segments))


def _render_system(turns: Sequence[Turn]) -> list[PromptSegment]:
    """Return the content of several system messages as that of one, with blank lines between."""
    segments: list[PromptSegment] = []
    for turn in turns:
        content = list(_join_text(_render_content(turn)))
        segments += ["\n\n", *content] if segments and content else content
    return segments


def _render_turn(speaker: str, content: Iterable[PromptSegment]) -> Iterator[PromptSegment]:
    yield from (ROLE, speaker, ROLE_CLOSE)
    yield from content
    yield ROLE_END


def _render_content(turn: Turn) -> list[PromptSegment]:
    return [segment for item in turn.content for segment in _render_item(item)]


def _render_item(item: Item) -> Iterator[PromptSegment]:
    match item:
        case PromptImage(tokens):
            yield from (IMAGE, PlaceholderRun(IMAGE_PATCH, tokens), IMAGE_CLOSE, "\n")
        case PromptVideo():
            yield VIDEO
            yield from render_video(item)
            yield VIDEO_CLOSE
        case PromptAudio(tokens):
            yield from (AUDIO, PlaceholderRun(AUDIO_PATCH, tokens), AUDIO_CLOSE)
        case ToolCall():
            yield from render_tool_call(item)
        case ToolResult():
            yield from render_tool_result(item)
        case _:
            yield item.text


def render_video(video: PromptVideo) -> Iterator[PromptSegment]:
    """Return the content of the video tags: each pair of frames after its time."""
    for second in video.seconds:
        yield f"<{second:.1f} seconds>"
        yield from (IMAGE, PlaceholderRun(FRAME_PATCH, video.tokens), IMAGE_CLOSE)


def _join_text(segments: Iterable[PromptSegment]) -> Iterator[PromptSegment]:
    """Join adjacent text, and drop empty text."""
    text = ""
    for segment in segments:
        if isinstance(segment, str):
            text += segment
            continue
        if text:
            yield text
            text = ""
        yield segment
    if text:
        yield text


def _to_text(segment: PromptSegment) -> str:
    match segment:
        case SpecialToken(token):
            return token
        case PlaceholderRun(token, count):
            return token * count
        case _:
            return segment


def _check_roles(turns: Sequence[Turn], first: int) -> None:
    """Check the roles. `first` is the index of `turns[0]` in the messages of the request."""
    for index, turn in enumerate(turns, first):
        if turn.role == "system":
            raise InvalidRequest(
                "system messages must come before all others", param=f"messages[{index}].role"
            )
        if turn.role not in SPEAKERS:
            raise InvalidRequest(
                f"role {turn.role!r} is not one of system, user, assistant, tool",
                param=f"messages[{index}].role",
            )
    if not turns:
        raise InvalidRequest("there is no user message to answer", param="messages")
