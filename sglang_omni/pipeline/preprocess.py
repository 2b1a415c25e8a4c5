"""Stages 1 and 4: render messages to a prompt, and join it with its features for the thinker."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from sglang_omni.engines.encoder.cache import Embedding
from sglang_omni.engines.thinker.contract import Features, ThinkerRequest
from sglang_omni.models.chat import ChatFormat, Item, TokenizedPrompt, Turn
from sglang_omni.pipeline.media_preprocessor import MediaInput
from sglang_omni.pipeline.request import ChatRequest, MediaPart, TextPart
from sglang_omni.protocol.errors import ContextExceeded, OmniError
from sglang_omni.protocol.sampling import Grammar, SamplingParams
from sglang_omni.protocol.tools import ToolCall, ToolResult

# Characters of text per token of the context, beyond which a prompt cannot fit. The longest tokens
# of ordinary text have about this many.
CHARACTERS_PER_TOKEN = 8
_MESSAGE_SIZE = 32
_TOOL_SIZE = 1 << 10


@dataclass(frozen=True)
class _Turn:
    """A message whose media are replaced by their placeholders."""

    role: str
    content: tuple[Item, ...]


def preprocess(
    request: ChatRequest,
    media: Sequence[MediaInput],
    chat: ChatFormat,
    context_length: int,
) -> TokenizedPrompt:
    """Render a chat and tokenize it. A long text takes seconds: run this off the event loop.

    A prompt that is given as tokens is only checked.

    Args:
        request: The chat.
        media: The media of `request.media`, in order. The sound of a video follows it.
        chat: The model's prompt format.
        context_length: The thinker's context, in tokens.

    Raises:
        InvalidRequest: A message is invalid; the error names it.
        ContextExceeded: The prompt leaves no room for an answer.
    """
    field = "messages" if request.prompt_ids is None else "prompt"
    check_text(request, context_length)
    prompt = tokenize(request, media, chat)
    has_sound = any(medium.sound for medium in media)
    hint = " or leave out the sound of videos (use_audio_in_video)" if has_sound else ""
    check_prompt_length(prompt, context_length, field, hint)
    return prompt


def check_prompt_length(
    prompt: TokenizedPrompt, context_length: int, field: str, hint: str = ""
) -> None:
    """Raise `ContextExceeded`, naming the field, if a prompt leaves no room for an answer."""
    if len(prompt.ids) >= context_length:
        raise ContextExceeded(
            f"the prompt has {len(prompt.ids)} tokens, but the context has {context_length}; "
            f"shorten the {field}{hint}",
            param=field,
        )


def tokenize(
    request: ChatRequest, media: Sequence[MediaInput], chat: ChatFormat
) -> TokenizedPrompt:
    """Return the tokens of a prompt of any length. Raises `InvalidRequest` as `preprocess` does."""
    if request.prompt_ids is not None:
        return TokenizedPrompt(request.prompt_ids)
    return chat.tokenize(build_turns(request, media), request.thinking, request.tools)


def build_turns(request: ChatRequest, media: Sequence[MediaInput]) -> list[Turn]:
    """Return the messages of a chat with placeholders for its media."""
    remaining_media = iter(media)
    return [
        _Turn(
            message.role,
            tuple(
                item
                for part in message.content
                for item in (
                    next(remaining_media).prompt_items if isinstance(part, MediaPart) else (part,)
                )
            ),
        )
        for message in request.messages
    ]


def check_text(request: ChatRequest, context_length: int) -> None:
    """Reject text that cannot fit the context, before it is tokenized."""
    num_characters, limit = _count_characters(request), CHARACTERS_PER_TOKEN * context_length
    if num_characters > limit:
        raise ContextExceeded(
            f"the prompt has {num_characters} characters of text, but at most {limit} can fit the "
            "context; shorten the messages",
            param="messages",
        )


def estimate_text_work(request: ChatRequest) -> int:
    """Return the work to render and tokenize a prompt, in characters of text.

    Each message and each tool counts as a fixed number of additional characters.
    """
    return (
        _count_characters(request)
        + _MESSAGE_SIZE * len(request.messages)
        + _TOOL_SIZE * len(request.tools)
    )


def _count_characters(request: ChatRequest) -> int:
    """Return the number of characters in the messages' texts."""
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
    """Join a prompt and its features to a thinker request.

    The answer may use the tokens that the prompt leaves of the context. Raises `OmniError` if an
    encoder returned another number of rows than the prompt has placeholders.
    """
    max_tokens = context_length - len(prompt.ids)
    sampling = replace(
        apply_answer_grammar(request, chat),
        max_tokens=min(request.sampling.max_tokens, max_tokens),
    )
    features = tuple(_features(prompt, media, embeddings))
    return ThinkerRequest(prompt.ids, sampling, features, request.tenant)


def apply_answer_grammar(request: ChatRequest, chat: ChatFormat) -> SamplingParams:
    """Return the request's sampling, with a grammar if its JSON schema alone is not enough."""
    sampling, tools = request.sampling, request.tools
    lark = chat.answer_grammar(tools, request.tool_choice, sampling.json_schema, request.thinking)
    if lark is None:
        return sampling
    grammar = Grammar(lark, "tools" if tools else "response_format")
    return replace(sampling, json_schema=None, grammar=grammar)


def _features(
    prompt: TokenizedPrompt, media: Sequence[MediaInput], embeddings: Sequence[Embedding]
) -> Iterator[Features]:
    runs = iter(prompt.runs)
    for medium, embedding in zip(media, embeddings, strict=True):
        # Each frame pair of a video has its own run of placeholders and is one block in time.
        blocks = [(1, *medium.grid[1:])] * medium.grid[0] if medium.grid else []
        offsets = tuple(islice(runs, max(len(blocks), 1)))
        _check_rows(medium, embedding, sum(last + 1 - first for first, last in offsets))
        yield Features(
            modality=medium.part.kind,
            rows=embedding.rows,
            layout=embedding.layout,
            offsets=offsets,
            content_hash=int.from_bytes(medium.key[:8], "little"),
            grid=tuple(blocks),
        )


def _check_rows(medium: MediaInput, embedding: Embedding, num_placeholders: int) -> None:
    num_rows = embedding.layout.shape[0]
    if num_rows != num_placeholders:
        raise OmniError(
            f"{medium.part.field}: the encoder returned {num_rows} feature rows for "
            f"{num_placeholders} placeholders"
        )
