"""What clients may send, field by field. Rules that join two fields live with the routes."""

import json
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sglang_omni.media.encode import AudioFormat
from sglang_omni.pipeline.request import SamplingParams

# A book: what is read aloud is cut as it is read. The body's limit, and the time that a request
# may take, bound it sooner.
MAX_SPEECH_CHARACTERS = 4_000_000
MAX_INSTRUCTION = 500
MAX_SEED = 2**63 - 1
MAX_TIMEOUT_S = 86_400


class Body(BaseModel):
    """Base of every object in a request: unknown fields and loose types are refused.

    A null field counts as absent: OpenAI's clients send either.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: item for name, item in value.items() if item is not None}
        return value


def _as_parts(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _as_list(stop: Any) -> Any:
    return [stop] if isinstance(stop, str) else stop


def _as_voice_name(voice: Any) -> Any:
    is_object = isinstance(voice, dict) and voice.keys() == {"id"}
    return voice["id"] if is_object else voice


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return text


def _top_k_in_range(top_k: int) -> int:
    if top_k == 0:
        raise PydanticCustomError("top_k", "must be at least 1, or -1 for the whole vocabulary")
    return top_k


def _only_false(value: bool) -> bool:
    if value:
        raise PydanticCustomError("only_false", "this server cannot do it: only false")
    return value


def _json_object(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise PydanticCustomError("arguments", "must be a JSON object in text")
    return text


def _as_instructions(value: Any) -> Any:
    return {"style": value} if isinstance(value, str) else value


NonEmpty = Annotated[str, Field(min_length=1)]
Source = Annotated[
    str,
    Field(min_length=1, description="http(s) URL, data URI, or path on the server if allowed"),
]


def _as_url(value: Any) -> Any:
    return {"url": value} if isinstance(value, str) else value


def _as_video(value: Any) -> Any:
    return {"frames": value} if isinstance(value, list) else _as_url(value)


class ImageUrl(Body):
    """Where an image is. `low` detail bounds it to 512 x 512 pixels' worth."""

    url: Source
    detail: Literal["auto", "low", "high"] = "auto"


class AudioUrl(Body):
    """Where an audio clip is."""

    url: Source


class VideoUrl(Body):
    """Where a video is: one file, or its frames in order, two for each second."""

    url: Source | None = None
    frames: Annotated[list[Source], Field(min_length=2)] | None = None

    @model_validator(mode="after")
    def _either(self) -> "VideoUrl":
        if (self.url is None) == (self.frames is None):
            raise PydanticCustomError("video_url", "needs either url or frames")
        return self


class InputAudio(Body):
    """An audio clip inside the request, base64. The file itself tells its format."""

    data: NonEmpty
    format: NonEmpty


AnImage = Annotated[ImageUrl, BeforeValidator(_as_url, json_schema_input_type=str | ImageUrl)]
AClip = Annotated[AudioUrl, BeforeValidator(_as_url, json_schema_input_type=str | AudioUrl)]
AVideo = Annotated[
    VideoUrl, BeforeValidator(_as_video, json_schema_input_type=str | list[str] | VideoUrl)
]


class TextPart(Body):
    """Text of a message."""

    type: Literal["text"]
    text: str


class ImagePart(Body):
    """An image of a message."""

    type: Literal["image_url"]
    image_url: AnImage


class InputAudioPart(Body):
    """An audio clip of a message, in OpenAI's form."""

    type: Literal["input_audio"]
    input_audio: InputAudio


class AudioPart(Body):
    """An audio clip of a message, by address."""

    type: Literal["audio_url"]
    audio_url: AClip


class VideoPart(Body):
    """A video of a message."""

    type: Literal["video_url"]
    video_url: AVideo


Part = Annotated[
    TextPart | ImagePart | InputAudioPart | AudioPart | VideoPart, Field(discriminator="type")
]
Content = Annotated[list[Part], BeforeValidator(_as_parts, json_schema_input_type=str | list[Part])]
VoiceName = Annotated[
    str,
    BeforeValidator(_as_voice_name, json_schema_input_type=str | dict[Literal["id"], str]),
    Field(description="A preset's or stored voice's name, or an object with its `id`"),
]
RefAudio = Annotated[
    Source | None,
    Field(description="A recording of 1 to 30 s to speak like, in place of a voice; an extension"),
]
RefText = Annotated[
    str | None, Field(max_length=1000, description="What the recording says; an extension")
]
Stop = Annotated[
    list[NonEmpty],
    BeforeValidator(_as_list, json_schema_input_type=str | list[str]),
    Field(max_length=4),
]
SampleRate = Annotated[int, Field(ge=8000, le=48_000, description="Hz; an extension")]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
AskedPriority = Annotated[
    Literal["high", "normal", "low"],
    Field(description="Whose turn comes first where requests wait; an extension"),
]
Timeout = Annotated[
    float,
    Field(gt=0, le=MAX_TIMEOUT_S, description="Seconds the whole answer may take; an extension"),
]


SpokenText = Annotated[
    str, Field(min_length=1, max_length=MAX_SPEECH_CHARACTERS), AfterValidator(_not_blank)
]
TokenId = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
Feature = Annotated[str, Field(min_length=1, max_length=50)]


class PastAudio(Body):
    """The audio of an earlier answer, by its id. The server remembers what was said in it for an
    hour; the transcript, sent back, stands for it always."""

    id: str
    transcript: str = ""
    data: str = ""
    expires_at: int = 0


class FunctionCall(Body):
    """What an earlier answer called; `arguments` is a JSON object in text."""

    name: NonEmpty
    arguments: Annotated[str, AfterValidator(_json_object)]


class PastCall(Body):
    """A call of an earlier answer, sent back as it came."""

    id: NonEmpty
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessage(Body):
    """One turn. An earlier answer may be sent back as it came; a `tool` turn tells what one of its
    calls returned."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    audio: PastAudio | None = None
    tool_calls: Annotated[list[PastCall], Field(min_length=1)] | None = None
    tool_call_id: NonEmpty | None = None
    reasoning_content: Annotated[
        str, Field(description="Accepted, not used: earlier thoughts are not thought again")
    ] = ""
    refusal: Annotated[str, Field(description="Accepted, not used")] = ""
    name: Annotated[str, Field(description="Accepted, not used")] = ""
    content: Content = Field(default=[], validate_default=True)

    @field_validator("audio")
    @classmethod
    def _only_the_assistant_spoke(
        cls, audio: PastAudio | None, info: ValidationInfo
    ) -> PastAudio | None:
        if info.data.get("role") != "assistant":
            raise PydanticCustomError("role", "only an assistant message may have audio")
        return audio

    @field_validator("tool_calls", "tool_call_id")
    @classmethod
    def _each_has_its_role(cls, value: Any, info: ValidationInfo) -> Any:
        role = "assistant" if info.field_name == "tool_calls" else "tool"
        if value is not None and info.data.get("role") != role:
            raise PydanticCustomError("role", f"only {role} messages have it")
        return value

    @field_validator("content")
    @classmethod
    def _says_something(cls, content: list[Part], info: ValidationInfo) -> list[Part]:
        says = content or info.data.get("audio") or info.data.get("tool_calls")
        if not says and info.data.get("role") != "tool":
            raise PydanticCustomError("missing", "Field required")
        return content

    @field_validator("content")
    @classmethod
    def _only_users_show(cls, content: list[Part], info: ValidationInfo) -> list[Part]:
        if info.data.get("role") != "user" and not all(isinstance(p, TextPart) for p in content):
            raise PydanticCustomError("role", "only a user message may hold media")
        return content

    @model_validator(mode="after")
    def _answers_a_call(self) -> "ChatMessage":
        if self.role == "tool" and self.tool_call_id is None:
            raise PydanticCustomError("tool_call_id", "a tool message needs a tool_call_id")
        return self


class ChatAudio(Body):
    """How a spoken answer should sound. Defaults: the server's voice, wav."""

    voice: VoiceName | None = None
    ref_audio: RefAudio = None
    ref_text: RefText = None
    format: Literal["wav", "pcm16", "mp3", "opus", "aac", "flac"] = "wav"
    sample_rate: SampleRate | None = None


class StreamOptions(Body):
    """Options of a streamed answer."""

    include_usage: bool = False


class ChatTemplateOptions(Body):
    """Options of the prompt. Where unset, `reasoning_effort` decides."""

    enable_thinking: bool | None = None


class FunctionSpec(Body):
    """A function that the model may call; `parameters` is a JSON schema."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: Annotated[
        bool,
        AfterValidator(_only_false),
        Field(description="Only false"),
    ] = False


class ToolSpec(Body):
    """A tool; there are functions only."""

    type: Literal["function"]
    function: FunctionSpec


class NamedSchema(Body):
    """The schema that the answer shall keep to. It is always kept to, `strict` or not."""

    name: NonEmpty
    description: Annotated[str, Field(description="Accepted, not used")] = ""
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    strict: bool = True


class PlainFormat(Body):
    """Ordinary text, or some JSON object."""

    type: Literal["text", "json_object"]


class SchemaFormat(Body):
    """JSON of a schema."""

    type: Literal["json_schema"]
    json_schema: NamedSchema


_LAST_MESSAGE = Field(
    description="Media of the last message: images and videos before its text, audio after it"
)


class ChatBody(Body):
    """The body of `POST /v1/chat/completions`."""

    model: str
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    modalities: Annotated[list[Literal["text", "audio"]], Field(min_length=1, max_length=2)] = [
        "text"
    ]
    audio: ChatAudio | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] = SamplingParams.temperature
    top_p: Annotated[float, Field(gt=0, le=1)] = SamplingParams.top_p
    top_k: Annotated[int, Field(ge=-1), AfterValidator(_top_k_in_range)] = SamplingParams.top_k
    min_p: Annotated[float, Field(ge=0, le=1)] = SamplingParams.min_p
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] = SamplingParams.repetition_penalty
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] = 0.0
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] = 0.0
    logit_bias: Annotated[
        dict[TokenId, Annotated[float, Field(ge=-100, le=100)]],
        Field(max_length=300, description="Token ids, as text, to what their logits gain"),
    ] = {}
    stop: Stop = []
    seed: Seed | None = None
    priority: AskedPriority = "normal"
    timeout: Timeout | None = None
    n: Annotated[int, Field(ge=1, le=8)] = 1
    logprobs: bool = False
    top_logprobs: Annotated[int | None, Field(ge=0, le=20)] = None
    tools: Annotated[list[ToolSpec], Field(max_length=128)] = []
    tool_choice: Annotated[
        Any, Field(description="'auto' or 'none'; nothing else can be enforced")
    ] = "auto"
    parallel_tool_calls: bool = True
    response_format: Annotated[PlainFormat | SchemaFormat, Field(discriminator="type")] = (
        PlainFormat(type="text")
    )
    reasoning_effort: Annotated[
        Literal["none", "minimal", "low", "medium", "high", "xhigh"],
        Field(description="'none' and 'minimal' think not at all, the others as long as they like"),
    ] = "none"
    store: Annotated[bool, AfterValidator(_only_false)] = False
    user: Annotated[str, Field(description="Accepted, not used")] = ""
    images: Annotated[list[AnImage], _LAST_MESSAGE] = []
    videos: Annotated[list[AVideo], _LAST_MESSAGE] = []
    audios: Annotated[list[AClip], _LAST_MESSAGE] = []
    chat_template_kwargs: ChatTemplateOptions = ChatTemplateOptions()

    @property
    def wants_text(self) -> bool:
        """Whether the answer is shown as text."""
        return "text" in self.modalities

    @property
    def wants_audio(self) -> bool:
        """Whether the answer is spoken."""
        return "audio" in self.modalities

    @property
    def thinks(self) -> bool:
        """Whether the model reasons before it answers."""
        asked = self.chat_template_kwargs.enable_thinking
        return self.reasoning_effort not in ("none", "minimal") if asked is None else asked


class Instructions(Body):
    """How to speak, by the fields that the model knows. Without an English name for a value, write
    the model's own, which are Chinese."""

    emotion: Feature | None = None
    dialect: Feature | None = None
    style: Annotated[str, Field(min_length=1, max_length=MAX_INSTRUCTION)] | None = None
    speed: Feature | None = None
    pitch: Feature | None = None
    volume: Feature | None = None


class SpeechOptions(Body):
    """Everything but the text that a reading of it may be asked for."""

    voice: VoiceName | None = None
    ref_audio: RefAudio = None
    ref_text: RefText = None
    instructions: Annotated[
        Instructions | None,
        BeforeValidator(_as_instructions, json_schema_input_type=str | Instructions),
        Field(description="Free text (a style), or fields; an extension of OpenAI's string"),
    ] = None
    task: Annotated[
        Literal["speech", "music", "sound"],
        Field(description="What the text is: words to speak, or a description; an extension"),
    ] = "speech"
    response_format: AudioFormat = "wav"
    speed: Annotated[float, Field(ge=0.25, le=4)] = 1.0
    sample_rate: SampleRate | None = None
    max_seconds: Annotated[
        float | None, Field(gt=0, le=3600, description="Of speech at speed 1; an extension")
    ] = None
    seed: Seed | None = None
    cfg: Annotated[
        float | None, Field(ge=0, le=10, description="Strength of guidance; an extension")
    ] = None
    sigma: Annotated[
        float | None, Field(ge=0, le=2, description="Scale of the sampler's noise; an extension")
    ] = None
    temperature: Annotated[
        float | None, Field(ge=0, le=5, description="Of the sampler's noise; an extension")
    ] = None
    priority: AskedPriority = "normal"
    timeout: Timeout | None = None


class SpeechBody(SpeechOptions):
    """The body of `POST /v1/audio/speech`.

    Without `stream_format`, pcm, mp3, opus and aac are streamed; wav and flac, whose headers tell
    their length, are complete files.
    """

    model: str
    input: SpokenText
    stream_format: Literal["audio", "sse"] | None = None

    @property
    def streamed(self) -> bool:
        """Whether bytes leave as they are synthesised."""
        return self.stream_format is not None or self.response_format not in ("wav", "flac")
