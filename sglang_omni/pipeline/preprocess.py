"""Stages 1 and 4: messages to a prompt, and the prompt with its features to a thinker request."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from sglang_omni.engines.encoder.cache import Embedding
from sglang_omni.engines.thinker.contract import Features, Grammar, SamplingParams, ThinkerRequest
from sglang_omni.models.chat import ChatFormat, Item, TokenizedPrompt
from sglang_omni.pipeline.media_preprocessor import MediaInput
from sglang_omni.pipeline.request import ChatRequest, MediaPart, TextPart
from sglang_omni.protocol.errors import ContextExceeded, OmniError
from sglang_omni.protocol.tools import ToolCall, ToolResult

# A prompt of more characters for each token of the context cannot fit it: the longest tokens of
# ordinary text have about as many.
CHARACTERS_PER_TOKEN = 8
_MESSAGE_SIZE = 32
_TOOL_SIZE = 1 << 10


@dataclass(frozen=True)
class _Turn:
    """A message with its media measured."""

    role: str
    content: tuple[Item, ...]


def preprocess(
    request: ChatRequest,
    media: Sequence[MediaInput],
    chat: ChatFormat,
    context_length: int,
) -> TokenizedPrompt:
    """The rendered chat in tokens; `media` are those of `request.media`, in order.

    A long text takes seconds: run it off the event loop. Raises `InvalidRequest` naming the message
    at fault, `ContextExceeded` when the prompt leaves no room for an answer in `context_length`
    tokens.
    """
    _check_text(request, context_length)
    opened = iter(media)
    turns = [
        _Turn(
            message.role,
            tuple(
                next(opened).item if isinstance(part, MediaPart) else part
                for part in message.content
            ),
        )
        for message in request.messages
    ]
    prompt = chat.tokenize(turns, request.thinking, request.tools)
    if len(prompt.ids) >= context_length:
        raise ContextExceeded(
            f"the prompt has {len(prompt.ids)} tokens, the context {context_length}",
            param="messages",
        )
    return prompt


def _check_text(request: ChatRequest, context_length: int) -> None:
    """Refuse, before it is tokenised, what no context of so many tokens can hold."""
    characters, limit = _characters(request), CHARACTERS_PER_TOKEN * context_length
    if characters > limit:
        raise ContextExceeded(
            f"the prompt has {characters} characters of text; {limit} can fit the context",
            param="messages",
        )


def text_size(request: ChatRequest) -> int:
    """Return how much work a prompt's text is, in characters: each message, and each function that
    may be called, costs as much as some more."""
    return (
        _characters(request)
        + _MESSAGE_SIZE * len(request.messages)
        + _TOOL_SIZE * len(request.tools)
    )


def _characters(request: ChatRequest) -> int:
    """Characters of the messages' texts."""
    size = 0
    for message in request.messages:
        for part in message.content:
            match part:
                case TextPart(text) | ToolResult(text):
                    size += len(text)
                case ToolCall(_, arguments):
                    size += len(arguments)
    return size


def aggregate(
    request: ChatRequest,
    prompt: TokenizedPrompt,
    media: Sequence[MediaInput],
    embeddings: Sequence[Embedding],
    chat: ChatFormat,
    context_length: int,
) -> ThinkerRequest:
    """Join a prompt and its features; the answer may fill what the context leaves.

    Raises `OmniError` when an encoder made more or fewer rows than the prompt has places.
    """
    room = context_length - len(prompt.ids)
    sampling = replace(
        constrained(request, chat), max_tokens=min(request.sampling.max_tokens, room)
    )
    features = tuple(_features(prompt, media, embeddings))
    return ThinkerRequest(prompt.ids, sampling, features, request.tenant)


def constrained(request: ChatRequest, chat: ChatFormat) -> SamplingParams:
    """The request's sampling, under a grammar where its schema alone does not give the form."""
    sampling, tools = request.sampling, request.tools
    lark = chat.answer_grammar(tools, request.calling, sampling.json_schema, request.thinking)
    if lark is None:
        return sampling
    grammar = Grammar(lark, "tools" if tools else "response_format")
    return replace(sampling, json_schema=None, grammar=grammar)


def _features(
    prompt: TokenizedPrompt, media: Sequence[MediaInput], embeddings: Sequence[Embedding]
) -> Iterator[Features]:
    runs = iter(prompt.runs)
    for medium, embedding in zip(media, embeddings, strict=True):
        # Each pair of a video's frames is a run of its own, and a block of one step of time.
        blocks = [(1, *medium.grid[1:])] * medium.grid[0] if medium.grid else []
        places = tuple(islice(runs, max(len(blocks), 1)))
        _check(medium, embedding, sum(last + 1 - first for first, last in places))
        yield Features(
            modality=medium.part.kind,
            rows=embedding.rows,
            layout=embedding.layout,
            offsets=places,
            content_hash=int.from_bytes(medium.key[:8], "little"),
            grid=tuple(blocks),
        )


def _check(medium: MediaInput, embedding: Embedding, places: int) -> None:
    rows = embedding.layout.shape[0]
    if rows != places:
        raise OmniError(
            f"{medium.part.field}: the encoder made {rows} feature rows for {places} places"
        )
