"""The chat prompt of Ming-flash-omni-2.0, as the processor of the released model writes it.

    <role>SYSTEM</role>{system}\\n\\ndetailed thinking off<|role_end|>
    <role>HUMAN</role>{user}<|role_end|><role>ASSISTANT</role>{answer}<|role_end|> ...
    <role>HUMAN</role>{user}<|role_end|><role>ASSISTANT</role>

There is no line break between turns. Media stand where their message has them:

    image    <image><imagePatch> x n</image>\\n
    video    <video>, then for each pair of frames <0.5 seconds><image><framePatch> x n</image>,
             then </video>
    audio    <audio><audioPatch> x n</audio>

A prompt is a sequence of pieces, so that only the template can produce control tokens: text that
a user wrote stays text, whatever it spells. (The released processor counts a literal "<image>" in
the text as a picture's place, and then loses the picture.)
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sglang_omni.models.chat import Item, PromptAudio, PromptImage, PromptVideo, Turn
from sglang_omni.models.ming.prompt.segments import Piece, PlaceholderRun, SpecialToken
from sglang_omni.models.ming.prompt.tools import call_pieces, result_pieces, tools_pieces
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
    """A rendered chat: control tokens, placeholders and ordinary text in reading order.

    Neighbouring text is one piece, because the tokenizer merges across what the template and
    the message contribute ("。" and the blank line after it share a token).
    """

    pieces: tuple[Piece, ...]

    def __str__(self) -> str:
        """The prompt as one string; ambiguous if a message spells a control token."""
        return "".join(map(_spell, self.pieces))


def render_chat(
    messages: Sequence[Turn], thinking: bool = False, tools: Sequence[Tool] = ()
) -> Prompt:
    """Render a chat up to the point where the assistant speaks.

    A leading system message replaces the default sentence only; the list of `tools`, if there are
    any, and the line that switches `thinking` follow. Raises `InvalidRequest` naming the message
    at fault when the roles do not make a chat: nothing to answer, a system message that is not
    the first, or a last message that is neither the user's nor a tool's.
    """
    system: Sequence[Piece] = (DEFAULT_SYSTEM,)
    turns = list(messages)
    if turns and turns[0].role == "system":
        system, turns = _content(turns[0]), turns[1:]
    _check_roles(turns, first=len(messages) - len(turns))
    switch = "on" if thinking else "off"
    listed = list(tools_pieces(tools))
    line = f"\ndetailed thinking {switch}" if listed else f"\n\ndetailed thinking {switch}"
    pieces = [*_turn("SYSTEM", [*system, *listed, line])]
    for turn in turns:
        pieces += _turn(SPEAKERS[turn.role], _content(turn))
    return Prompt((*_joined(pieces), ROLE, SPEAKERS["assistant"], ROLE_CLOSE))


def _turn(speaker: str, content: Iterable[Piece]) -> Iterator[Piece]:
    yield from (ROLE, speaker, ROLE_CLOSE)
    yield from content
    yield ROLE_END


def _content(turn: Turn) -> list[Piece]:
    return [piece for item in turn.content for piece in _item(item)]


def _item(item: Item) -> Iterator[Piece]:
    match item:
        case PromptImage(tokens):
            yield from (IMAGE, PlaceholderRun(IMAGE_PATCH, tokens), IMAGE_CLOSE, "\n")
        case PromptVideo():
            yield VIDEO
            yield from film_pieces(item)
            yield VIDEO_CLOSE
        case PromptAudio(tokens):
            yield from (AUDIO, PlaceholderRun(AUDIO_PATCH, tokens), AUDIO_CLOSE)
        case ToolCall():
            yield from call_pieces(item)
        case ToolResult():
            yield from result_pieces(item)
        case _:
            yield item.text


def film_pieces(film: PromptVideo) -> Iterator[Piece]:
    """What stands between the tags of a video: each pair of frames with its time before it."""
    for second in film.seconds:
        yield f"<{second:.1f} seconds>"
        yield from (IMAGE, PlaceholderRun(FRAME_PATCH, film.tokens), IMAGE_CLOSE)


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces with neighbouring text made one, and empty text left out."""
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        if text:
            yield text
            text = ""
        yield piece
    if text:
        yield text


def _spell(piece: Piece) -> str:
    match piece:
        case SpecialToken(token):
            return token
        case PlaceholderRun(token, count):
            return token * count
        case _:
            return piece


def _check_roles(turns: Sequence[Turn], first: int) -> None:
    """`first` is the index of `turns[0]` among the messages of the request."""
    for index, turn in enumerate(turns, first):
        if turn.role == "system":
            raise InvalidRequest(
                "a system message must be the first message", param=f"messages[{index}].role"
            )
        if turn.role not in SPEAKERS:
            raise InvalidRequest(
                f"role {turn.role!r} is not one of system, user, assistant, tool",
                param=f"messages[{index}].role",
            )
    if not turns:
        raise InvalidRequest("there is no user message to answer", param="messages")
    if turns[-1].role not in ("user", "tool"):
        raise InvalidRequest(
            "the last message must be the user's", param=f"messages[{first + len(turns) - 1}].role"
        )
