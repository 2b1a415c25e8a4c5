"""The text fields of `POST /v1/audio/transcriptions`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import FormBody, RequestPriority, Timeout


def _check_response_format(response_format: str) -> str:
    if response_format in ("verbose_json", "srt", "vtt", "diarized_json"):
        raise PydanticCustomError(
            "response_format", "this model gives no timestamps or speakers; use json or text"
        )
    return response_format


class TranscriptionForm(FormBody):
    """The text fields of a request."""

    model: str
    language: Annotated[str | None, Field(max_length=32)] = None
    prompt: Annotated[str | None, Field(max_length=2000, description="Words to expect")] = None
    response_format: Annotated[
        Literal["json", "text", "verbose_json", "srt", "vtt", "diarized_json"],
        Field(description="json or text; the others are rejected, because they need timestamps"),
        AfterValidator(_check_response_format),
    ] = "json"
    temperature: Annotated[float, Field(ge=0, le=1)] = 0.0
    max_tokens: Annotated[
        int | None, Field(ge=1, description="Maximum length of the transcript; an extension")
    ] = None
    stream: bool = False
    priority: RequestPriority = "normal"
    timeout: Timeout | None = None
