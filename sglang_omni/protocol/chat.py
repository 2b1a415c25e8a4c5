"""The body of `POST /v1/chat/completions`. The route checks rules between fields."""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import (
    MAX_MESSAGES,
    MAX_PARTS,
    MAX_TOOLS,
    Body,
    JsonSchema,
    RefAudio,
    RefText,
    SampleRate,
    ShortName,
    VideoFps,
    VideoMaxFrames,
    VoiceName,
)
from sglang_omni.protocol.functions import PastCall, ToolChoice, ToolSpec
from sglang_omni.protocol.generation import ChoiceFields, ReasoningEffort
from sglang_omni.protocol.images import ConversationImageFields
from sglang_omni.protocol.media import (
    AudioUrlField,
    Content,
    ImagePart,
    ImageUrlField,
    Part,
    TextContentPart,
    VideoUrlField,
)


class PastAudio(Body):
    """The audio of an earlier answer, by its id.

    The server keeps its transcript for an hour; a transcript in the request replaces it at any
    time.
    """

    id: ShortName
    transcript: str = ""
    data: str = ""
    expires_at: int = 0


class PastImage(ImagePart):
    """An image of an earlier answer, sent back unchanged."""

    index: Annotated[int, Field(description="Accepted, not used")] = 0
    size: Annotated[str, Field(description="Accepted, not used")] = ""
    seed: Annotated[int, Field(description="Accepted, not used")] = 0


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
    images: Annotated[
        list[PastImage],
        Field(
            max_length=MAX_PARTS,
            fail_fast=True,
            description="Images of an earlier answer; they follow its text",
        ),
    ] = Field(default=[])
    reasoning_content: Annotated[
        str, Field(description="Accepted, not used: earlier reasoning is not part of the prompt")
    ] = ""
    refusal: Annotated[str, Field(description="Accepted, not used")] = ""
    content: Content = Field(default=[], validate_default=True)

    @field_validator("audio")
    @classmethod
    def _require_assistant_for_audio(
        cls, audio: PastAudio | None, info: ValidationInfo
    ) -> PastAudio | None:
        if info.data.get("role") != "assistant":
            raise PydanticCustomError("role", "only an assistant message may have audio")
        return audio

    @field_validator("images")
    @classmethod
    def _require_assistant_for_images(
        cls, images: list[PastImage], info: ValidationInfo
    ) -> list[PastImage]:
        if images and info.data.get("role") != "assistant":
            raise PydanticCustomError(
                "role", "only an assistant message may have images; put others into its content"
            )
        return images

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
        given = (content, *map(info.data.get, ("audio", "tool_calls", "images")))
        if not any(given) and info.data.get("role") != "tool":
            raise PydanticCustomError("missing", "Field required")
        return content

    @field_validator("content")
    @classmethod
    def _require_user_for_media(cls, content: list[Part], info: ValidationInfo) -> list[Part]:
        role = info.data.get("role")
        # Some programs keep the images of an answer among its parts.
        allowed = (TextContentPart, ImagePart) if role == "assistant" else (TextContentPart,)
        if role != "user" and not all(isinstance(part, allowed) for part in content):
            raise PydanticCustomError(
                "role", "only a user message may contain media, and an answer images"
            )
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


class ChatBody(ChoiceFields):
    """The body of `POST /v1/chat/completions`."""

    messages: Annotated[
        list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)
    ]
    modalities: Annotated[
        list[Literal["text", "audio", "image"]], Field(min_length=1, max_length=3)
    ] = Field(default=["text"])
    audio: ChatAudio | None = None
    image: Annotated[
        ConversationImageFields | None, Field(description="How an image is drawn; an extension")
    ] = None
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
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
    reasoning_effort: ReasoningEffort = "none"
    images: Annotated[list[ImageUrlField], _LAST_MESSAGE_MEDIA] = Field(default=[])
    videos: Annotated[list[VideoUrlField], _LAST_MESSAGE_MEDIA] = Field(default=[])
    audios: Annotated[list[AudioUrlField], _LAST_MESSAGE_MEDIA] = Field(default=[])
    use_audio_in_video: Annotated[
        bool | None,
        Field(
            description="Whether the sound of videos is heard; unset: if the model can. "
            "An extension"
        ),
    ] = None
    video_fps: VideoFps | None = None
    video_max_frames: VideoMaxFrames | None = None
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
    def wants_words(self) -> bool:
        """Return whether the answer contains text or audio."""
        return self.wants_text or self.wants_audio

    @property
    def wants_image(self) -> bool:
        """Return whether the answer contains an image."""
        return "image" in self.modalities

    @property
    def image_fields(self) -> ConversationImageFields:
        """Return how an image is drawn."""
        return self.image or ConversationImageFields()

    @property
    def thinks(self) -> bool:
        """Return whether the model reasons before it answers."""
        enabled = self.chat_template_kwargs.enable_thinking
        return self.reasoning_effort not in ("none", "minimal") if enabled is None else enabled
