"""The body of `POST /v1/chat/completions`. The route checks rules between fields."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import (
    MAX_MESSAGES,
    MAX_PARTS,
    MAX_TOOLS,
    Body,
    JsonSchema,
    RefAudio,
    RefText,
    RequestPriority,
    SampleRate,
    Seed,
    ShortName,
    Timeout,
    VoiceName,
)
from sglang_omni.protocol.functions import PastCall, ToolChoice, ToolSpec
from sglang_omni.protocol.media import (
    AudioUrlField,
    Content,
    ImageUrlField,
    Part,
    TextContentPart,
    VideoUrlField,
)
from sglang_omni.protocol.sampling import SamplingParams

# Characters of a stop string. The whole answer is searched for it.
MAX_STOP_CHARACTERS = 1000


def _to_list(stop: Any) -> Any:
    return [stop] if isinstance(stop, str) else stop


def _check_top_k(top_k: int) -> int:
    if top_k == 0:
        raise PydanticCustomError("top_k", "must be at least 1, or -1 for the whole vocabulary")
    return top_k


def _require_false(value: bool) -> bool:
    if value:
        raise PydanticCustomError("only_false", "must be false; this server does not support it")
    return value


Stop = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=MAX_STOP_CHARACTERS)]],
    BeforeValidator(_to_list, json_schema_input_type=str | list[str]),
    Field(max_length=4),
]
TokenId = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]


class PastAudio(Body):
    """The audio of an earlier answer, by its id.

    The server keeps its transcript for an hour; a transcript in the request replaces it at any
    time.
    """

    id: ShortName
    transcript: str = ""
    data: str = ""
    expires_at: int = 0


class ChatMessage(Body):
    """One message of the conversation.

    An earlier answer may be sent back unchanged. A `tool` message has the result of one of its
    calls.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    audio: PastAudio | None = None
    tool_calls: (
        Annotated[list[PastCall], Field(min_length=1, max_length=MAX_TOOLS, fail_fast=True)] | None
    ) = None
    tool_call_id: ShortName | None = None
    reasoning_content: Annotated[
        str, Field(description="Accepted, not used: earlier reasoning is not part of the prompt")
    ] = ""
    refusal: Annotated[str, Field(description="Accepted, not used")] = ""
    name: Annotated[str, Field(description="Accepted, not used")] = ""
    content: Content = Field(default=[], validate_default=True)

    @field_validator("audio")
    @classmethod
    def _require_assistant_for_audio(
        cls, audio: PastAudio | None, info: ValidationInfo
    ) -> PastAudio | None:
        if info.data.get("role") != "assistant":
            raise PydanticCustomError("role", "only an assistant message may have audio")
        return audio

    @field_validator("tool_calls", "tool_call_id")
    @classmethod
    def _require_role(cls, value: Any, info: ValidationInfo) -> Any:
        role = "assistant" if info.field_name == "tool_calls" else "tool"
        if value is not None and info.data.get("role") != role:
            raise PydanticCustomError("role", f"only a message with role {role!r} may have it")
        return value

    @field_validator("content")
    @classmethod
    def _require_content(cls, content: list[Part], info: ValidationInfo) -> list[Part]:
        has_content = content or info.data.get("audio") or info.data.get("tool_calls")
        if not has_content and info.data.get("role") != "tool":
            raise PydanticCustomError("missing", "Field required")
        return content

    @field_validator("content")
    @classmethod
    def _require_user_for_media(cls, content: list[Part], info: ValidationInfo) -> list[Part]:
        if info.data.get("role") != "user" and not all(
            isinstance(part, TextContentPart) for part in content
        ):
            raise PydanticCustomError("role", "only a user message may contain media")
        return content

    @model_validator(mode="after")
    def _require_tool_call_id(self) -> "ChatMessage":
        if self.role == "tool" and self.tool_call_id is None:
            raise PydanticCustomError("tool_call_id", "a tool message needs a tool_call_id")
        return self


class ChatAudio(Body):
    """Voice and format of a spoken answer. Defaults: the server's voice, wav."""

    voice: VoiceName | None = None
    ref_audio: RefAudio = None
    ref_text: RefText = None
    format: Literal["wav", "pcm16", "mp3", "opus", "aac", "flac"] = "wav"
    sample_rate: SampleRate | None = None


class StreamOptions(Body):
    """Options of a streamed answer."""

    include_usage: bool = False


class ChatTemplateOptions(Body):
    """Options of the prompt. If unset, `reasoning_effort` decides."""

    enable_thinking: bool | None = None


class NamedSchema(Body):
    """The schema of the answer. It is always enforced, whatever `strict` says."""

    name: ShortName
    description: Annotated[str, Field(description="Accepted, not used")] = ""
    schema_: Annotated[JsonSchema, Field(alias="schema")]
    strict: bool = True


class PlainFormat(Body):
    """Ordinary text, or any JSON object."""

    type: Literal["text", "json_object"]


class SchemaFormat(Body):
    """JSON that follows a schema."""

    type: Literal["json_schema"]
    json_schema: NamedSchema


_LAST_MESSAGE_MEDIA = Field(
    fail_fast=True,
    max_length=MAX_PARTS,
    description="Media of the last message: images and videos before its text, audio after it",
)


class ChatBody(Body):
    """The body of `POST /v1/chat/completions`."""

    model: str
    messages: Annotated[
        list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)
    ]
    modalities: Annotated[list[Literal["text", "audio"]], Field(min_length=1, max_length=2)] = (
        Field(default=["text"])
    )
    audio: ChatAudio | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] = SamplingParams.temperature
    top_p: Annotated[float, Field(gt=0, le=1)] = SamplingParams.top_p
    top_k: Annotated[int, Field(ge=-1), AfterValidator(_check_top_k)] = SamplingParams.top_k
    min_p: Annotated[float, Field(ge=0, le=1)] = SamplingParams.min_p
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] = SamplingParams.repetition_penalty
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] = 0.0
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] = 0.0
    logit_bias: Annotated[
        dict[TokenId, Annotated[float, Field(ge=-100, le=100)]],
        Field(max_length=300, description="Token ids, as text, and the bias added to their logits"),
    ] = Field(default={})
    stop: Stop = Field(default=[])
    seed: Seed | None = None
    priority: RequestPriority = "normal"
    timeout: Timeout | None = None
    n: Annotated[int, Field(ge=1, le=8)] = 1
    logprobs: bool = False
    top_logprobs: Annotated[int | None, Field(ge=0, le=20)] = None
    tools: Annotated[list[ToolSpec], Field(max_length=MAX_TOOLS, fail_fast=True)] = Field(
        default=[]
    )
    tool_choice: ToolChoice = Field(default="auto", validate_default=True)
    parallel_tool_calls: bool = True
    response_format: Annotated[PlainFormat | SchemaFormat, Field(discriminator="type")] = (
        PlainFormat(type="text")
    )
    reasoning_effort: Annotated[
        Literal["none", "minimal", "low", "medium", "high", "xhigh"],
        Field(description="'none' and 'minimal' disable reasoning, the others do not limit it"),
    ] = "none"
    store: Annotated[bool, AfterValidator(_require_false)] = False
    user: Annotated[str, Field(description="Accepted, not used")] = ""
    images: Annotated[list[ImageUrlField], _LAST_MESSAGE_MEDIA] = Field(default=[])
    videos: Annotated[list[VideoUrlField], _LAST_MESSAGE_MEDIA] = Field(default=[])
    audios: Annotated[list[AudioUrlField], _LAST_MESSAGE_MEDIA] = Field(default=[])
    chat_template_kwargs: ChatTemplateOptions = ChatTemplateOptions()

    @property
    def wants_text(self) -> bool:
        """Return whether the answer contains text."""
        return "text" in self.modalities

    @property
    def wants_audio(self) -> bool:
        """Return whether the answer contains audio."""
        return "audio" in self.modalities

    @property
    def thinks(self) -> bool:
        """Return whether the model reasons before it answers."""
        enabled = self.chat_template_kwargs.enable_thinking
        return self.reasoning_effort not in ("none", "minimal") if enabled is None else enabled
